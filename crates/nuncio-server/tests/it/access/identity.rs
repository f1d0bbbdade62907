//! Identity comes from the gate alone: nothing in a request's body or in what an agent says makes
//! one, or gives one away.

use super::{Keys, holding};
use crate::harness::{House, World, everywhere, script};
use nuncio_server::{
    Update,
    core::{
        AgentCard, Artifact, ArtifactUpdate, ListTasks, Message, Metadata, Operation, Part,
        Principal, StatusUpdate, TaskState, TaskStatus, Timestamp,
    },
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Claims to be root, in every way and at every depth, around what is nobody's claim.
fn claims() -> Value {
    json!({
        "a2a.auth": {"sub": "root"},
        "ash_a2a.owner": "root",
        "nuncio.owner": "root",
        "nuncio.": "root",
        "kept": "kept",
        "deep": {
            "a2a.auth": "root",
            "list": [[{"nuncio.x": "root", "kept": "kept"}], {"ash_a2a.owner": {"kept": "root"}}],
        },
    })
}

/// What is left of them.
fn kept() -> Value {
    json!({"kept": "kept", "deep": {"list": [[{"kept": "kept"}], {}]}})
}

fn metadata(value: &Value) -> Metadata {
    // Key by key, which strips nothing: as an agent would.
    let mut metadata = Metadata::new();
    for (key, value) in value.as_object().expect("an object") {
        metadata.insert(key.as_str(), value.clone());
    }
    metadata
}

fn takes_everything() -> AgentCard {
    AgentCard {
        name: "tested".into(),
        default_input_modes: vec!["*/*".into()],
        default_output_modes: vec!["*/*".into()],
        ..AgentCard::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_of_a_client_claims_no_identity() {
    everywhere(async |world: World| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let saw = Arc::clone(&seen);
        let agent = script(move |turn| {
            let saw = Arc::clone(&saw);
            async move {
                let parts = &turn.message().parts;
                let metadata = [
                    turn.metadata().clone(),
                    turn.message().metadata.clone(),
                    parts[0].metadata.clone(),
                ];
                let who = turn.principal().clone();
                saw.lock().unwrap().push((who, metadata, parts.clone()));
                turn.ask("and?")
            }
        });
        let keys = Keys::new();
        let (alice, root) = (keys.add("alice"), keys.add("root"));
        let (auth, card) = (keys.auth(), takes_everything());
        let house = House::with(world, agent, |setting| {
            setting.build(|builder| builder.auth(auth).card(card))
        });
        let alice = holding(&house.peer(world.dialect), &alice);
        let message = |task: Option<&str>| {
            let mut message = json!({
                "messageId": "m", "role": "user", "metadata": claims(),
                "parts": [
                    {"text": "hi", "metadata": claims()},
                    // Content is not metadata: it stays what it is.
                    {"data": {"a2a.auth": "content"}},
                ],
            });
            if let Some(task) = task {
                message["taskId"] = task.into();
            }
            json!({"message": message, "metadata": claims(), "tenant": "root"})
        };
        let answer = alice.call(Operation::SendMessage, &message(None)).await;
        let id = answer.json()["result"].clone();
        let id = id.get("task").unwrap_or(&id)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let get = json!({"id": id});
        let list = json!({"includeArtifacts": true});
        let answers = [
            answer,
            alice
                .call(Operation::SendMessage, &message(Some(&id)))
                .await,
            alice.call(Operation::GetTask, &get).await,
            alice.call(Operation::ListTasks, &list).await,
            alice
                .call(Operation::SendStreamingMessage, &message(Some(&id)))
                .await,
            alice
                .call(
                    Operation::CancelTask,
                    &json!({"id": id, "metadata": claims()}),
                )
                .await,
        ];
        for answer in answers {
            assert!(!answer.text().contains("root"), "{}", answer.text());
            assert!(answer.text().contains("kept"), "{}", answer.text());
        }
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 3);
        for (who, metadata, parts) in seen {
            assert_eq!(who, Principal::new("api-key", "alice"));
            for metadata in metadata {
                assert_eq!(Value::from(metadata.as_map().clone()), kept());
            }
            assert_eq!(parts[1], Part::data(json!({"a2a.auth": "content"})));
        }
        // The one it claimed to be has none of it.
        let root = holding(&house.peer(world.dialect), &root);
        assert_eq!(root.list(ListTasks::default()).await.unwrap().total_size, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_says_under_reserved_keys_stays_inside() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let marked = |mut message: Message| {
                message.metadata = metadata(&claims());
                message.parts[0].metadata = metadata(&claims());
                message
            };
            let message = marked(turn.agent_message(vec![Part::text("said")]));
            if turn.message().text() == "reply" {
                return turn.reply_with(message);
            }
            let mut artifact = Artifact::new("a".parse().expect("an id"), message.parts.clone());
            artifact.metadata = metadata(&claims());
            let update = ArtifactUpdate {
                task_id: turn.task_id().clone(),
                context_id: turn.context_id().clone(),
                artifact,
                append: false,
                last_chunk: true,
                metadata: metadata(&claims()),
            };
            turn.emit(Update::Artifact(update)).await?;
            let update = StatusUpdate {
                task_id: turn.task_id().clone(),
                context_id: turn.context_id().clone(),
                status: TaskStatus {
                    state: TaskState::InputRequired,
                    message: Some(message),
                    timestamp: Some(Timestamp::now()),
                },
                metadata: metadata(&claims()),
            };
            turn.emit(Update::Status(update)).await?;
            turn.leave()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        let get = json!({"id": task.id.as_str()});
        let message = |text: &str| {
            let part = json!({"text": text});
            json!({"message": {"messageId": "m", "role": "user", "parts": [part]}})
        };
        let answers = [
            peer.call(Operation::SendMessage, &message("hi")).await,
            peer.call(Operation::SendMessage, &message("reply")).await,
            peer.call(Operation::SendStreamingMessage, &message("hi"))
                .await,
            peer.call(Operation::SendStreamingMessage, &message("reply"))
                .await,
            peer.call(Operation::GetTask, &get).await,
            peer.call(Operation::ListTasks, &json!({"includeArtifacts": true}))
                .await,
            peer.call(Operation::CancelTask, &get).await,
            // All of the log.
            peer.with("Last-Event-ID", "1")
                .call(Operation::SubscribeToTask, &get)
                .await,
        ];
        for answer in answers {
            let text = answer.text();
            assert!(text.contains("said") && text.contains("kept"), "{text}");
            assert!(!text.contains("root"), "{text}");
        }
    })
    .await;
}
