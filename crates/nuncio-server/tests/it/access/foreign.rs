//! Somebody else's tasks: as if there were none.

use super::{Keys, holding, told};
use crate::harness::{
    Answer, Gate, Peer, World, asking, counted, eventually, everywhere, script, send,
};
use nuncio_server::core::{
    CancelTask, ContextId, DeletePushConfig, GetPushConfig, GetTask, ListPushConfigs, ListTasks,
    Message, Metadata, PushConfig, PushConfigId, Request, SendMessage, SetPushConfig, Task, TaskId,
    TaskState,
};
use serde_json::json;
use std::sync::atomic::Ordering;

/// Everything that can be asked of a task by its id.
fn everything_about(id: &TaskId, context: &ContextId, message: &SendMessage) -> Vec<Request> {
    let config_id: PushConfigId = "hook".parse().expect("an id");
    let config = PushConfig {
        id: Some(config_id.clone()),
        url: "https://example.com/hook".into(),
        token: None,
        authentication: None,
    };
    let to_task = asking::to_task(message.clone(), id);
    let in_context = asking::in_context(to_task.clone(), context);
    let elsewhere = ContextId::new("elsewhere").expect("an id");
    vec![
        Request::GetTask(GetTask {
            id: id.clone(),
            history_length: Some(0),
        }),
        Request::CancelTask(CancelTask {
            id: id.clone(),
            metadata: Metadata::new(),
        }),
        asking::to_follow(id),
        Request::SendMessage(to_task.clone()),
        Request::SendMessage(asking::at_once(to_task.clone())),
        Request::SendStreamingMessage(to_task.clone()),
        // Neither the context it has nor another one makes a difference.
        Request::SendMessage(in_context.clone()),
        Request::SendStreamingMessage(in_context),
        Request::SendMessage(asking::in_context(to_task, &elsewhere)),
        Request::CreatePushConfig(SetPushConfig {
            task_id: id.clone(),
            config,
        }),
        Request::GetPushConfig(GetPushConfig {
            task_id: id.clone(),
            config_id: Some(config_id.clone()),
        }),
        Request::ListPushConfigs(ListPushConfigs {
            task_id: id.clone(),
            page_size: None,
            page_token: None,
        }),
        Request::DeletePushConfig(DeletePushConfig {
            task_id: id.clone(),
            config_id,
        }),
    ]
}

/// Asks under a fixed id, so that answers can be compared byte for byte.
async fn answer_to(peer: &Peer, request: &Request) -> Answer {
    let method = peer.dialect.method(request.operation());
    let params = peer.params(request);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    told(&peer.post(body.to_string().as_bytes()).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_task_answers_byte_for_byte_as_a_missing_one_whatever_it_is_doing() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let (agent, runs) = counted(move |turn| {
            let wait = wait.clone();
            async move {
                match turn.message().text().as_str() {
                    "work" => {
                        turn.working().await?;
                        wait.pass().await;
                        turn.complete()
                    }
                    "ask" => turn.ask("what?"),
                    _ => turn.complete(),
                }
            }
        });
        let keys = Keys::new();
        let (alice, bob) = (keys.add("alice"), keys.add("bob"));
        let house = keys.guard(world, agent);
        let alice = holding(&house.peer(world.dialect), &alice);
        let bob = holding(&house.peer(world.dialect), &bob);
        let working = alice.send(asking::at_once(send("work"))).await.unwrap();
        let working = eventually("the agent is at work", async || {
            let task = alice.get(&working.id).await.unwrap();
            (task.status.state == TaskState::Working).then_some(task)
        })
        .await;
        let theirs: Vec<Task> = vec![working, alice.say("ask").await, alice.say("end").await];
        let ran = runs.load(Ordering::SeqCst);
        // As long as a real id, and of the same form.
        let missing = TaskId::new("019a0000-0000-7000-8000-000000000000").unwrap();
        let message = send("is this yours?");
        for task in &theirs {
            let foreign = everything_about(&task.id, &task.context_id, &message);
            let missing = everything_about(&missing, &task.context_id, &message);
            for headers in [
                None,
                Some(("Last-Event-ID", "1")),
                Some(("Idempotency-Key", "k")),
                Some(("Accept", "text/event-stream")),
            ] {
                let bob = headers.map_or(bob.clone(), |(name, value)| bob.with(name, value));
                for (foreign, missing) in foreign.iter().zip(&missing) {
                    let (is, was) = (
                        answer_to(&bob, foreign).await,
                        answer_to(&bob, missing).await,
                    );
                    assert_eq!(is, was, "{foreign:?} {headers:?}");
                    let code = match foreign.operation().slash_name() {
                        name if name.contains("push") => "-32003",
                        _ => "-32001",
                    };
                    assert!(is.text().contains(code), "{foreign:?}: {}", is.text());
                }
            }
        }
        // And nothing came of it.
        assert_eq!(runs.load(Ordering::SeqCst), ran);
        for task in &theirs {
            assert_eq!(&alice.get(&task.id).await.unwrap(), task);
        }
        gate.open_wide();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_shows_the_callers_own_and_counts_no_others() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let (alice, bob, carol) = (keys.add("alice"), keys.add("bob"), keys.add("carol"));
        let house = keys.guard(world, script(|turn| async move { turn.complete() }));
        let [alice, bob, carol] =
            [alice, bob, carol].map(|key| holding(&house.peer(world.dialect), &key));
        let context = ContextId::new("shared").unwrap();
        let in_context = |text| asking::in_context(send(text), &context);
        for _ in 0..3 {
            alice.send(in_context("hers")).await.unwrap();
            bob.send(in_context("his")).await.unwrap();
        }
        bob.say("his alone").await;
        let one = ListTasks {
            page_size: Some(1),
            ..ListTasks::default()
        };
        let of_bob = bob.list(one.clone()).await.unwrap();
        for (peer, word, total) in [(&alice, "hers", 3), (&bob, "his", 4), (&carol, "", 0)] {
            let lists = [
                ListTasks::default(),
                ListTasks {
                    state: Some(TaskState::Completed),
                    ..ListTasks::default()
                },
                // A place in somebody else's list leads into one's own.
                ListTasks {
                    page_token: Some(of_bob.next_page_token.clone()),
                    ..ListTasks::default()
                },
            ];
            for list in lists {
                let page = peer.list(list).await.unwrap();
                assert_eq!(page.total_size, total);
                let texts = page.tasks.iter().map(|task| task.history[0].text());
                assert!(texts.into_iter().all(|text| text.starts_with(word)));
            }
            let list = ListTasks {
                context_id: Some(context.clone()),
                ..ListTasks::default()
            };
            let page = peer.list(list).await.unwrap();
            assert_eq!(page.total_size, total.min(3), "{word}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_of_somebody_elses_is_just_a_name() {
    everywhere(async |world: World| {
        // What the agent knows goes into the answer.
        let agent = script(|turn| async move {
            let known = turn.task().history;
            let texts: Vec<_> = known.iter().map(Message::text).collect();
            turn.ask(format!("I know: {}", texts.join(", ")))
        });
        let keys = Keys::new();
        let (alice, bob) = (keys.add("alice"), keys.add("bob"));
        let house = keys.guard(world, agent);
        let alice = holding(&house.peer(world.dialect), &alice);
        let bob = holding(&house.peer(world.dialect), &bob);
        let hers = alice.say("a secret").await;
        let his = bob
            .send(asking::in_context(send("tell me"), &hers.context_id))
            .await
            .unwrap();
        assert_ne!(his.id, hers.id);
        assert_eq!(his.context_id, hers.context_id);
        assert_eq!(his.status.message.unwrap().text(), "I know: tell me");
        assert_eq!(his.history.len(), 1);
        let list = ListTasks {
            context_id: Some(hers.context_id.clone()),
            ..ListTasks::default()
        };
        let page = bob.list(list.clone()).await.unwrap();
        assert_eq!((page.total_size, &page.tasks[0].id), (1, &his.id));
        let page = alice.list(list).await.unwrap();
        assert_eq!((page.total_size, &page.tasks[0].id), (1, &hers.id));
        assert_eq!(alice.get(&hers.id).await.unwrap(), hers);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_idempotency_key_of_two_callers_is_two_keys() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let keys = Keys::new();
        let (alice, bob) = (keys.add("alice"), keys.add("bob"));
        let house = keys.guard(world, agent);
        let peer = house.peer(world.dialect).with("Idempotency-Key", "same");
        let message = send("same");
        let hers = holding(&peer, &alice).send(message.clone()).await.unwrap();
        let his = holding(&peer, &bob).send(message.clone()).await.unwrap();
        assert_ne!(hers.id, his.id);
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        // Each key still does its work for its owner.
        let again = holding(&peer, &alice).send(message).await.unwrap();
        assert_eq!((again.id, runs.load(Ordering::SeqCst)), (hers.id, 2));
    })
    .await;
}
