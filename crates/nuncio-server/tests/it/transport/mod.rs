//! The two transports, and the places a server may be put.

mod card;
mod fallback;
mod inline;
mod mounting;
mod paths;

use crate::harness::{Peer, Script, asking, script};
use nuncio_server::core::{Operation, TaskId};
use serde_json::{Value, json};

/// Works in three visible steps; asks back where it is told to.
fn three_steps() -> Script {
    script(|turn| async move {
        turn.working().await?;
        turn.text_artifact("a", "made").await?;
        match turn.message().text().as_str() {
            "ask" => turn.ask("what?"),
            _ => turn.complete_with("done"),
        }
    })
}

const PUSH: [Operation; 4] = [
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
];

/// The error of a call.
async fn code_of(peer: &Peer, operation: Operation, params: &Value) -> Value {
    let answer = peer.call(operation, params).await;
    assert_eq!(answer.head.status, 200, "{}", answer.text());
    answer.json()["error"]["code"].clone()
}

/// All that only the evented transport has is refused, whatever is asked of it.
async fn assert_is_inline(peer: &Peer, task: &TaskId) {
    for id in [
        json!(task.as_str()),
        json!("missing"),
        json!(7),
        Value::Null,
    ] {
        let params = json!({"id": id, "taskId": id});
        for peer in [peer.clone(), peer.with("Last-Event-ID", "1")] {
            assert_eq!(
                code_of(&peer, Operation::SubscribeToTask, &params).await,
                -32004
            );
        }
        for operation in PUSH {
            assert_eq!(code_of(peer, operation, &params).await, -32003);
        }
        assert_eq!(
            code_of(peer, Operation::GetExtendedAgentCard, &params).await,
            -32004
        );
    }
    let refused = peer.refused_stream(&asking::to_follow(task)).await;
    assert_eq!(refused.code, -32004);
}

/// What only the evented transport has is there.
async fn assert_is_evented(peer: &Peer, task: &TaskId) {
    let stream = peer.resubscribe(task, 1).await.rest().await;
    assert!(stream.iter().all(|frame| frame.id.is_some()), "{stream:?}");
    let expected = if peer.dialect.is_v1() { -32004 } else { -32007 };
    let code = code_of(peer, Operation::GetExtendedAgentCard, &json!({})).await;
    assert_eq!(code, expected);
}
