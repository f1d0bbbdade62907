//! Listing tasks.

use crate::harness::{Dialect, House, Peer, World, asking, everywhere, script, send};
use nuncio_server::core::{ContextId, ListTasks, Operation, Task, TaskState, Timestamp};
use serde_json::json;

/// Ends as its message says.
fn as_told() -> crate::harness::Script {
    script(|turn| async move {
        turn.text_artifact("a", "a").await?;
        match turn.message().text().as_str() {
            "ask" => turn.ask("what?"),
            "fail" => turn.fail("no"),
            _ => turn.complete(),
        }
    })
}

/// Twelve tasks in two contexts, oldest first.
async fn twelve(peer: &Peer) -> Vec<Task> {
    let mut tasks = Vec::new();
    for n in 0..12 {
        let context = ContextId::new(["even", "odd"][n % 2]).expect("an id");
        let text = ["done", "ask", "fail"][n % 3];
        tasks.push(
            peer.send(asking::in_context(send(text), &context))
                .await
                .expect("the message is taken"),
        );
    }
    tasks
}

async fn all_pages(peer: &Peer, mut list: ListTasks) -> Vec<Task> {
    let mut all = Vec::new();
    loop {
        let page = peer.list(list.clone()).await.expect("there is a page");
        assert!(page.tasks.len() <= page.page_size as usize);
        all.extend(page.tasks);
        if page.next_page_token.is_empty() {
            return all;
        }
        list.page_token = Some(page.next_page_token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_any_size_hold_every_task_once_newest_status_first() {
    everywhere(async |world: World| {
        let house = House::of(world, as_told());
        let peer = house.peer(world.dialect);
        let made = twelve(&peer).await;
        for size in [
            None,
            Some(1),
            Some(2),
            Some(5),
            Some(6),
            Some(11),
            Some(12),
            Some(100),
        ] {
            let list = ListTasks {
                page_size: size,
                ..ListTasks::default()
            };
            let first = peer.list(list.clone()).await.unwrap();
            assert_eq!(
                (first.page_size, first.total_size),
                (size.unwrap_or(50), 12)
            );
            let all = all_pages(&peer, list).await;
            assert_eq!(all.len(), 12);
            let order: Vec<_> = all
                .iter()
                .map(|task| (task.status.timestamp.unwrap(), task.id.clone()))
                .collect();
            assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
            assert!(
                made.iter()
                    .all(|task| all.iter().any(|other| other.id == task.id))
            );
        }
        // A task that moves on moves to the front.
        let asked = made
            .iter()
            .find(|task| task.status.state == TaskState::InputRequired);
        let asked = asked.unwrap().id.clone();
        peer.send(asking::to_task(send("done"), &asked))
            .await
            .unwrap();
        let page = peer.list(ListTasks::default()).await.unwrap();
        assert_eq!(page.tasks[0].id, asked);
        assert_eq!(page.total_size, 12);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_narrow_both_the_page_and_the_total() {
    everywhere(async |world: World| {
        let house = House::of(world, as_told());
        let peer = house.peer(world.dialect);
        let made = twelve(&peer).await;
        let contexts = [None, Some("even"), Some("odd"), Some("neither")];
        let states = [
            None,
            Some(TaskState::Completed),
            Some(TaskState::InputRequired),
            Some(TaskState::Failed),
            Some(TaskState::Working),
        ];
        let mid = made[6].status.timestamp.unwrap();
        let times = [None, Some(mid), Some(Timestamp::now().plus_millis(60_000))];
        for context in contexts {
            for state in states {
                for after in times {
                    let list = ListTasks {
                        context_id: context.map(|c| ContextId::new(c).unwrap()),
                        state,
                        status_after: after,
                        page_size: Some(3),
                        ..ListTasks::default()
                    };
                    let fits = |task: &&Task| {
                        context.is_none_or(|c| task.context_id.as_str() == c)
                            && state.is_none_or(|s| task.status.state == s)
                            && after.is_none_or(|t| task.status.timestamp.unwrap() >= t)
                    };
                    let expected = made.iter().filter(fits).count();
                    let page = peer.list(list.clone()).await.unwrap();
                    assert_eq!(page.total_size, expected as u64, "{list:?}");
                    let all = all_pages(&peer, list.clone()).await;
                    assert_eq!(all.len(), expected, "{list:?}");
                    assert!(all.iter().all(|task| fits(&task)));
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_and_history_are_shown_as_asked_for() {
    everywhere(async |world: World| {
        let house = House::of(world, as_told());
        let peer = house.peer(world.dialect);
        let task = peer.say("ask").await;
        let answer = peer.call(Operation::ListTasks, &json!({})).await.json();
        let listed = &answer["result"]["tasks"][0];
        assert!(listed.get("artifacts").is_none(), "{listed}");
        assert_eq!(listed["history"].as_array().unwrap().len(), 1);
        assert_eq!(answer["result"]["nextPageToken"], "");
        let with = ListTasks {
            include_artifacts: true,
            history_length: Some(0),
            ..ListTasks::default()
        };
        let page = peer.list(with).await.unwrap();
        assert_eq!(page.tasks[0].artifacts, task.artifacts);
        assert_eq!(page.tasks[0].history, []);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_token_or_size_is_named() {
    everywhere(async |world: World| {
        let house = House::of(world, as_told());
        let peer = house.peer(world.dialect);
        twelve(&peer).await;
        let list = ListTasks {
            page_size: Some(3),
            ..ListTasks::default()
        };
        let token = peer.list(list).await.unwrap().next_page_token;
        let tampered = [
            "x".to_owned(),
            "====".to_owned(),
            "ä".to_owned(),
            format!("{token}!"),
            token[1..].to_owned(),
            token[..8].to_owned(),
            // `:`, `a:b` and `1:` in base64.
            "Og".to_owned(),
            "YTpi".to_owned(),
            "MTo".to_owned(),
            "x".repeat(10_000),
        ];
        for token in tampered {
            let list = ListTasks {
                page_token: Some(token.clone()),
                ..ListTasks::default()
            };
            let refused = peer.list(list).await.unwrap_err();
            assert_eq!(
                (refused.code, refused.field()),
                (-32602, Some("pageToken")),
                "{token}"
            );
        }
        for size in [
            json!(0),
            json!(101),
            json!(-1),
            json!(1.5),
            json!("many"),
            json!([]),
        ] {
            let answer = peer
                .call(Operation::ListTasks, &json!({"pageSize": size}))
                .await
                .json();
            assert_eq!(answer["error"]["code"], -32602, "{size}");
            assert!(
                answer["error"]["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("pageSize")
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_of_one_version_whatever_the_tasks_were_made_in() {
    let world = World::ALL[0];
    let house = House::of(world, as_told());
    let (old, new) = (house.peer(Dialect::V0_3), house.peer(Dialect::V1_0));
    old.say("done").await;
    new.say("done").await;
    let text = old.call(Operation::ListTasks, &json!({})).await.text();
    assert!(
        !text.contains("TASK_STATE") && !text.contains("ROLE_"),
        "{text}"
    );
    let text = new.call(Operation::ListTasks, &json!({})).await.text();
    assert!(
        !text.contains(r#""kind""#) && !text.contains(r#""user""#),
        "{text}"
    );
}
