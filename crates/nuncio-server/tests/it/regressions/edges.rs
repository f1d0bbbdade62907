//! Access and the edges of requests.

use crate::harness::{House, World, asking, everywhere, script, send};
use nuncio_server::Update;
use nuncio_server::core::{
    ContextId, ListTasks, Metadata, Operation, StatusUpdate, TaskState, TaskStatus, Timestamp,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_metadata_does_not_override_the_servers() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let mut metadata = Metadata::new();
            metadata.insert("price", "server");
            let update = StatusUpdate {
                task_id: turn.task_id().clone(),
                context_id: turn.context_id().clone(),
                status: TaskStatus {
                    state: TaskState::InputRequired,
                    message: None,
                    timestamp: Some(Timestamp::now()),
                },
                metadata,
            };
            turn.emit(Update::Status(update)).await?;
            turn.leave()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let cheap = || {
            let mut send = send("cheap");
            send.metadata.insert("price", "client");
            send.message.metadata.insert("price", "client");
            send
        };
        let task = peer.send(cheap()).await.unwrap();
        assert_eq!(task.metadata.get("price"), Some(&json!("server")));
        let task = peer.send(asking::to_task(cheap(), &task.id)).await.unwrap();
        assert_eq!(task.metadata.get("price"), Some(&json!("server")));
        assert_eq!(
            task.history[0].metadata.get("price"),
            Some(&json!("client"))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_in_the_body_opens_no_other_scope() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        for tenant in ["other", "", "anonymous"] {
            let get = json!({"id": task.id.as_str(), "tenant": tenant});
            let answer = peer.call(Operation::GetTask, &get).await.json();
            assert_eq!(answer["result"]["id"], task.id.as_str());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_behind_the_end_is_empty() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        for _ in 0..3 {
            peer.say("hi").await;
        }
        let two = ListTasks {
            page_size: Some(2),
            ..ListTasks::default()
        };
        let first = peer.list(two.clone()).await.unwrap();
        assert_eq!(first.tasks.len(), 2);
        let rest = ListTasks {
            page_token: Some(first.next_page_token),
            ..two
        };
        let second = peer.list(rest.clone()).await.unwrap();
        assert_eq!(
            (second.tasks.len(), second.next_page_token.as_str()),
            (1, "")
        );
        // A token that points behind the last task there is: 0:x is older than all of them.
        let behind = ListTasks {
            page_token: Some("MDp4".into()),
            ..rest
        };
        let behind = peer.list(behind).await.unwrap();
        assert_eq!((behind.tasks.len(), behind.total_size), (0, 3));
        assert_eq!(behind.next_page_token, "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_underscore_or_a_percent_in_an_id_means_itself() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        for context in ["a_b", "axb", "a%b", "a_b_c", "a:b", "ä b/c"] {
            let context = ContextId::new(context).unwrap();
            for _ in 0..2 {
                let task = peer
                    .send(asking::in_context(send("hi"), &context))
                    .await
                    .unwrap();
                assert_eq!(task.context_id, context);
            }
            let mut list = ListTasks {
                context_id: Some(context.clone()),
                page_size: Some(1),
                ..ListTasks::default()
            };
            let mut found = 0;
            loop {
                let page = peer.list(list.clone()).await.unwrap();
                assert_eq!(page.total_size, 2);
                assert!(page.tasks.iter().all(|task| task.context_id == context));
                found += page.tasks.len();
                if page.next_page_token.is_empty() {
                    break;
                }
                list.page_token = Some(page.next_page_token);
            }
            assert_eq!(found, 2);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_timestamp_after_is_honoured() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        let at = task.status.timestamp.unwrap();
        for (after, found) in [(at.plus_millis(-1), 1), (at, 1), (at.plus_millis(1), 0)] {
            let list = ListTasks {
                status_after: Some(after),
                ..ListTasks::default()
            };
            let page = peer.list(list).await.unwrap();
            assert_eq!((page.tasks.len(), page.total_size), (found, found as u64));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_json_is_answered_in_json_and_bad_parameters_are_no_parse_error() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let answer = peer.post(b"{\"jsonrpc\": ").await;
        assert_eq!(answer.head.get("content-type"), Some("application/json"));
        assert_eq!(answer.json()["error"]["code"], -32700);
        let answer = peer.call(Operation::GetTask, &json!({"id": 7})).await;
        assert_eq!(answer.json()["error"]["code"], -32602);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_any_version_is_accepted() {
    let house = House::of(World::ALL[0], script(|turn| async move { turn.complete() }));
    for version in [
        "2.0", "0.2", "1", "one", "1.0.0.0", "1.0-rc", "0.3, 1.0", "v1.0",
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}).to_string();
        let headers = [
            ("A2A-Version", version),
            ("Content-Type", "application/json"),
        ];
        let bytes = crate::harness::request("POST", "/", &headers, body.as_bytes());
        let mut connection = crate::harness::Connection::open(house.address).await;
        connection.write(&bytes).await;
        let answer = connection.answer().await.json();
        assert_eq!(answer["error"]["code"], -32009, "{version}: {answer}");
        assert_eq!(answer["id"], 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_does_not_believe_the_host_header() {
    let house = House::of(World::ALL[0], script(|turn| async move { turn.complete() }));
    let peer = house.peer(World::ALL[0].dialect);
    for header in ["Host", "X-Forwarded-Host", "Forwarded", "X-Original-Host"] {
        let evil = if header == "Forwarded" {
            "host=evil.example"
        } else {
            "evil.example"
        };
        let path = "/.well-known/agent-card.json";
        let answer = peer.fetch(path, &[(header, evil)]).await;
        assert_eq!(answer.head.status, 200);
        assert!(!answer.text().contains("evil"), "{}", answer.text());
        assert!(answer.text().contains(&house.address.to_string()));
    }
}
