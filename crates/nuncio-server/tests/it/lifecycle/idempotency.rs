//! Sends that are repeated.

use crate::harness::{
    FailingStore, Gate, House, Setting, State, World, asking, counted, everywhere, script, send,
};
use nuncio_server::{
    core::{Part, Request, Response, TaskState},
    store::MemoryStore,
};
use std::sync::atomic::Ordering;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_message_under_the_same_key_runs_once() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move {
            let text = turn.message().text();
            turn.complete_with(text)
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let keyed = peer.with("Idempotency-Key", "k1");
        let first = keyed.say("hello").await;
        // Another message id, and other metadata: it is the parts that count.
        let mut again = send("hello");
        again.message.metadata.insert("attempt", 2);
        assert_eq!(keyed.send(again).await.unwrap(), first);
        // As a stream, too: the task and its end.
        let told = keyed.stream_send(send("hello")).await.rest().await;
        assert_eq!(told[0].task().id, first.id);
        assert_eq!(told.last().unwrap().brief(), "status Completed hello");
        assert_eq!(runs.load(Ordering::SeqCst), 1);

        // Another message under it is a mistake, …
        let refused = keyed.send(send("other")).await.unwrap_err();
        assert_eq!((refused.code, refused.field()), (-32602, Some("message")));
        // … under another key or none it is just another message.
        assert_ne!(
            peer.with("Idempotency-Key", "k2").say("hello").await.id,
            first.id
        );
        assert_ne!(peer.say("hello").await.id, first.id);
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_at_once_run_once_and_get_the_same_answer() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let (agent, runs) = counted(move |turn| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                turn.complete_with("once")
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect).with("Idempotency-Key", "k");
        let mut all = Vec::new();
        for _ in 0..10 {
            let peer = peer.clone();
            all.push(tokio::spawn(async move { peer.say("hello").await }));
        }
        gate.open();
        let mut tasks = Vec::new();
        for one in all {
            tasks.push(one.await.unwrap());
        }
        assert!(tasks.iter().all(|task| *task == tasks[0]));
        assert_eq!(tasks[0].status.state, TaskState::Completed);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_waits_for_the_turn_that_is_running() {
    everywhere(async |world: World| {
        let (begun, gate) = (Gate::new(), Gate::new());
        let (begin, wait) = (begun.clone(), gate.clone());
        let (agent, runs) = counted(move |turn| {
            let (begin, wait) = (begin.clone(), wait.clone());
            async move {
                turn.working().await?;
                begin.open();
                wait.pass().await;
                turn.text_artifact("a", "a").await?;
                turn.complete()
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect).with("Idempotency-Key", "k");
        peer.send(asking::at_once(send("hello"))).await.unwrap();
        begun.reached().await;
        let retry = {
            let peer = peer.clone();
            tokio::spawn(async move { peer.say("hello").await })
        };
        let mut stream = peer.stream_send(send("hello")).await;
        assert_eq!(stream.frame().await.task().history.len(), 1);
        gate.open();
        assert_eq!(
            stream.rest().await.last().unwrap().brief(),
            "status Completed"
        );
        assert_eq!(retry.await.unwrap().status.state, TaskState::Completed);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_a_newer_message_is_a_new_message() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.ask("more?") });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let keyed = peer.with("Idempotency-Key", "k");
        let task = peer.say("hello").await;
        let yes = || asking::to_task(send("yes"), &task.id);
        let first = keyed.send(yes()).await.unwrap();
        assert_eq!(keyed.send(yes()).await.unwrap(), first);
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        peer.send(asking::to_task(send("no"), &task.id))
            .await
            .unwrap();
        let again = keyed.send(yes()).await.unwrap();
        assert_eq!(
            again.history.iter().filter(|m| m.text() == "yes").count(),
            2
        );
        assert_eq!(runs.load(Ordering::SeqCst), 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_bare_messages_runs_once_under_a_key_too() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.reply(vec![Part::text("pong")]) });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect).with("Idempotency-Key", "k");
        let ping = || Request::SendMessage(send("ping"));
        // For the retry to find the answer there must be a task.
        let first = match peer.ask(&ping()).await.unwrap() {
            Response::SentTask(task) => task,
            other => panic!("not a task: {other:?}"),
        };
        assert_eq!(first.status.message.as_ref().unwrap().text(), "pong");
        assert_eq!(peer.ask(&ping()).await.unwrap(), Response::SentTask(first));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_ids_are_keys_only_where_that_is_turned_on() {
    for on in [false, true] {
        everywhere(async |world: World| {
            let (agent, runs) = counted(|turn| async move { turn.complete() });
            let house = House::with(world, agent, |setting| {
                setting.build(move |builder| builder.idempotent_message_ids(on))
            });
            let peer = house.peer(world.dialect);
            let message = send("hello");
            let first = peer.send(message.clone()).await.unwrap();
            let second = peer.send(message.clone()).await.unwrap();
            assert_eq!(first.id == second.id, on);
            // Another message that happens to have the id is another message.
            let mut other = message;
            other.message.parts = vec![Part::text("other")];
            assert_ne!(peer.send(other).await.unwrap().id, first.id);
            assert_eq!(runs.load(Ordering::SeqCst), if on { 2 } else { 3 });
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_none_is_refused() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        for key in ["", &"k".repeat(257), "ä"] {
            let refused = peer
                .with("Idempotency-Key", key)
                .send(send("hi"))
                .await
                .unwrap_err();
            assert_eq!(
                (refused.code, refused.field()),
                (-32602, Some("Idempotency-Key"))
            );
        }
        let longest = "k".repeat(256);
        peer.with("Idempotency-Key", &longest).say("hi").await;
    })
    .await;
}

/// A send under a key keeps others of that key out, and may have to load a task, which keeps
/// others of that task out. With one set of locks for both, one in 64 of these hangs for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_tasks_do_not_lock_each_other_out() {
    let world = World::ALL[1];
    let house = House::of(world, script(|turn| async move { turn.ask("more?") }));
    let peer = house.peer(world.dialect);
    for n in 0..300 {
        let task = peer.say("hi").await;
        let keyed = peer.with("Idempotency-Key", &format!("k{n}"));
        let answer = keyed.send(asking::to_task(send("on"), &task.id));
        crate::harness::soon("an answer under a key", answer)
            .await
            .unwrap();
    }
}

/// Messages that reach the store in one go each keep their own key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_stored_together_keep_their_keys() {
    let world = World::ALL[1];
    let store = FailingStore::new(MemoryStore::new());
    let begun = Gate::new();
    let begin = begun.clone();
    let (agent, runs) = counted(move |turn| {
        let begin = begin.clone();
        async move {
            turn.working().await?;
            begin.open();
            turn.canceled().await;
            turn.cancel()
        }
    });
    let setting = Setting::new(world.store).store(store.clone());
    let house = setting.serve(agent, &State::new());
    let peer = house.peer(world.dialect);
    let task = peer.send(asking::at_once(send("work"))).await.unwrap();
    begun.reached().await;
    crate::harness::eventually("the task works", async || {
        let state = peer.get(&task.id).await.unwrap().status.state;
        (state == TaskState::Working).then_some(())
    })
    .await;

    let held = store.hold();
    let say = |n: usize| asking::at_once(asking::to_task(send(&format!("m{n}")), &task.id));
    let key = |n: usize| match n {
        // One without a key between them.
        3 => peer.clone(),
        n => peer.with("Idempotency-Key", &format!("k{n}")),
    };
    let mut senders = Vec::new();
    for n in 0..6 {
        let (peer, message) = (key(n), say(n));
        senders.push(tokio::spawn(
            async move { peer.send(message).await.unwrap() },
        ));
        if n == 0 {
            held.reached().await;
        }
    }
    // All but the first wait behind it; if one is late, the test is easier to pass.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    held.release();
    for sender in senders {
        sender.await.unwrap();
    }
    assert_eq!(peer.get(&task.id).await.unwrap().history.len(), 7);
    for n in [0, 1, 2, 4, 5] {
        // A newer message has come since for all but the last, so that is the only retry that is
        // recognised as one; the others' keys must be known all the same.
        let other = asking::at_once(asking::to_task(send("other words"), &task.id));
        let refused = key(n).send(other).await.unwrap_err();
        assert_eq!(
            (refused.code, refused.field()),
            (-32602, Some("message")),
            "k{n}"
        );
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
