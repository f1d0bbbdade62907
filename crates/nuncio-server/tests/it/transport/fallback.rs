//! An evented server without its runtime answers as an inline one.

use super::{PUSH, assert_is_evented, assert_is_inline, three_steps};
use crate::harness::{Answer, Dialect, Gate, Mounted, Peer, World, everywhere, script, send};
use nuncio_server::{Limits, Server, Transport, core::Operation};
use serde_json::{Value, json};
use std::time::Duration;

/// Every operation, well asked and badly.
fn questions() -> Vec<(Operation, Value)> {
    let hook = json!({"url": "https://example.com/hook"});
    let message = json!({"messageId": "m", "role": "user", "parts": [{"text": "hi"}]});
    let with_hook = json!({
        "message": message,
        "configuration": {"pushNotificationConfig": hook},
    });
    let stray = json!({"message": {
        "messageId": "m", "role": "user", "parts": [{"text": "hi"}], "taskId": "missing",
    }});
    let mut questions = vec![
        (Operation::SendMessage, with_hook.clone()),
        (Operation::SendMessage, stray.clone()),
        (Operation::SendStreamingMessage, with_hook),
        (Operation::SendStreamingMessage, stray),
        (Operation::ListTasks, json!({})),
    ];
    for operation in Operation::ALL {
        if operation != Operation::ListTasks {
            questions.push((operation, json!({})));
            questions.push((operation, json!({"id": "missing", "taskId": "missing"})));
        }
    }
    for operation in PUSH {
        let params = json!({"taskId": "missing", "pushNotificationConfig": hook});
        questions.push((operation, params));
    }
    questions
}

async fn ask(peer: &Peer, (operation, params): &(Operation, Value)) -> Answer {
    let method = peer.dialect.method(*operation);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let mut answer = peer.post(body.to_string().as_bytes()).await;
    answer.head.headers.retain(|(name, _)| name != "date");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_runtime_evented_answers_byte_for_byte_as_inline() {
    let inline = Server::builder(three_steps())
        .transport(Transport::Inline)
        .build();
    let idle = Server::builder(three_steps())
        .transport(Transport::Evented)
        .build();
    let _runtime = inline.start().await.unwrap();
    let [inline, idle] = [inline, idle].map(|server| server.router());
    let (inline, idle) = (Mounted::serve(inline).await, Mounted::serve(idle).await);
    for World { dialect, .. } in World::ALL {
        let [inline, idle] = [&inline, &idle].map(|it| Peer::new(it.address, dialect));
        for question in questions() {
            for accept in ["application/json", "text/event-stream"] {
                let [inline, idle] = [&inline, &idle].map(|peer| peer.with("Accept", accept));
                let (expected, is) = (ask(&inline, &question).await, ask(&idle, &question).await);
                assert_eq!(is, expected, "{question:?} {dialect:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evented_is_whole_exactly_while_its_runtime_runs() {
    everywhere(async |world: World| {
        let state = crate::harness::State::new();
        let builder = Server::builder(three_steps()).store(world.store.open(state.folder()));
        let server = builder.build();
        let mounted = Mounted::serve(server.router()).await;
        let peer = Peer::new(mounted.address, world.dialect);
        let task = peer.say("end").await;
        for _ in 0..2 {
            assert_is_inline(&peer, &task.id).await;
            let mut stream = peer.stream_send(send("end")).await;
            let frames = stream.rest().await;
            assert_eq!(frames.len(), 4, "{frames:?}");
            assert!(frames.iter().all(|frame| frame.id.is_none()), "{frames:?}");
            let runtime = server.start().await.unwrap();
            // Of a task that was made without it, too.
            assert_is_evented(&peer, &task.id).await;
            let mut stream = peer.stream_send(send("end")).await;
            assert!(stream.rest().await.iter().all(|frame| frame.id.is_some()));
            drop(runtime);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_when_the_runtime_ends_hears_the_rest() {
    let gate = Gate::new();
    let wait = gate.clone();
    let agent = script(move |turn| {
        let wait = wait.clone();
        async move {
            turn.working().await?;
            wait.pass().await;
            turn.complete_with("done")
        }
    });
    let server = Server::builder(agent)
        .limits(Limits {
            // Nobody renews it any more.
            lease: Duration::from_secs(3600),
            ..Limits::default()
        })
        .build();
    let runtime = server.start().await.unwrap();
    let mounted = Mounted::serve(server.router()).await;
    let peer = Peer::new(mounted.address, Dialect::V1_0);
    let mut sender = peer.stream_send(send("hi")).await;
    let id = sender.frame().await.task().id;
    assert_eq!(sender.frame().await.brief(), "status Working");
    let mut follower = peer.subscribe(&id).await;
    assert_eq!(follower.frame().await.brief(), "task Working");
    drop(runtime);
    gate.open();
    for mut stream in [sender, follower] {
        assert_eq!(stream.briefs().await, ["status Completed done"]);
    }
}
