//! A store that fails: nothing that was acknowledged is lost, nothing stays stuck.

use crate::harness::{
    FailingStore, Gate, House, Peer, Setting, State, World, asking, eventually, everywhere, script,
    send,
};
use nuncio_server::{
    core::{Part, TaskId, TaskState},
    store::MemoryStore,
};
use std::sync::Arc;

const WORLDS: [World; 2] = [World::ALL[0], World::ALL[1]];

type Failing = Arc<FailingStore<MemoryStore>>;

fn serve(world: World, agent: crate::harness::Script) -> (House, Peer, Failing) {
    let store = FailingStore::new(MemoryStore::new());
    let setting = Setting::new(world.store).store(store.clone());
    let house = setting.serve(agent, &State::new());
    let peer = house.peer(world.dialect);
    (house, peer, store)
}

async fn ends_as(peer: &Peer, id: &TaskId, state: TaskState) -> nuncio_server::core::Task {
    eventually("the task ends", async || {
        let task = peer.get(id).await.expect("the task is there");
        task.status.state.is_terminal().then(|| {
            assert_eq!(task.status.state, state);
            task
        })
    })
    .await
}

/// Works in steps: one chunk each time it is let go; `end` ends it.
fn stepwise(gate: &Gate) -> crate::harness::Script {
    let gate = gate.clone();
    script(move |turn| {
        let gate = gate.clone();
        async move {
            turn.working().await?;
            for n in 0..5 {
                turn.text_artifact("step", n.to_string()).await?;
                gate.pass().await;
            }
            turn.complete()
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_stored_is_an_internal_error_and_runs_nothing() {
    for world in WORLDS {
        let (_house, peer, store) = serve(world, script(|turn| async move { turn.ask("more?") }));
        let task = peer.say("hi").await;
        store.break_down();
        for message in [
            send("new"),
            asking::at_once(send("new, at once")),
            asking::to_task(send("more"), &task.id),
        ] {
            let refused = peer.send(message.clone()).await.unwrap_err();
            assert_eq!(refused.code, -32603);
            // What went wrong inside stays inside.
            assert_eq!(refused.message, "Internal error");
            let request = nuncio_server::core::Request::SendStreamingMessage(message);
            assert_eq!(peer.refused_stream(&request).await.code, -32603);
        }
        assert_eq!(peer.cancel(&task.id).await.unwrap_err().code, -32603);
        store.repair();
        assert_eq!(peer.get(&task.id).await.unwrap(), task);
        assert_eq!(peer.list(Default::default()).await.unwrap().total_size, 1);
        let more = peer
            .send(asking::to_task(send("more"), &task.id))
            .await
            .unwrap();
        assert_eq!(
            more.history.iter().filter(|m| m.text() == "more").count(),
            1
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_store_fails_fails_once_the_store_works_again() {
    for world in WORLDS {
        let gate = Gate::new();
        let (_house, peer, store) = serve(world, stepwise(&gate));
        let mut stream = peer.stream_send(send("go")).await;
        let id = stream.frame().await.task().id;
        stream.frame().await;
        assert_eq!(stream.frame().await.brief(), "artifact 0");
        let waiting = {
            let (peer, id) = (peer.clone(), id.clone());
            tokio::spawn(async move { peer.send(asking::to_task(send("wait"), &id)).await })
        };
        eventually("the message is in the history", async || {
            (peer.get(&id).await.unwrap().history.len() == 2).then_some(())
        })
        .await;
        store.break_down();
        gate.open();
        // Everybody who waits is told, each in their way.
        assert_eq!(waiting.await.unwrap().unwrap_err().code, -32603);
        let told = stream.rest().await;
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].error().code, -32603);
        // What was acknowledged is there, and nothing else is.
        let task = peer.get(&id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Working);
        assert_eq!((task.artifacts.len(), task.history.len()), (1, 2));
        store.repair();
        let task = ends_as(&peer, &id, TaskState::Failed).await;
        assert_eq!((task.artifacts.len(), task.history.len()), (1, 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_turn_that_was_lost_is_taken_care_of_however_often_the_store_fails() {
    for world in WORLDS {
        let gate = Gate::new();
        let (_house, peer, store) = serve(world, stepwise(&gate));
        let mut ids = Vec::new();
        for _ in 0..6 {
            ids.push(peer.send(asking::at_once(send("go"))).await.unwrap().id);
        }
        for id in &ids {
            eventually("it is at work", async || {
                (peer.get(id).await.unwrap().artifacts.len() == 1).then_some(())
            })
            .await;
        }
        store.break_down();
        gate.open_wide();
        eventually("all were refused", async || {
            (store.refused() >= 6).then_some(())
        })
        .await;
        // It comes back for two writes, and fails again.
        store.repair();
        store.break_after(2);
        eventually("it was tried again", async || {
            (store.refused() >= 7).then_some(())
        })
        .await;
        store.repair();
        for id in &ids {
            ends_as(&peer, id, TaskState::Failed).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_waits_is_told_that_its_turn_is_over() {
    for world in WORLDS {
        for waits_for in ["cancel", "message", "room"] {
            let (begun, gate, over) = (Gate::new(), Gate::new(), Gate::new());
            let (begin, wait, end) = (begun.clone(), gate.clone(), over.clone());
            let agent = script(move |mut turn| {
                let (begin, wait, end) = (begin.clone(), wait.clone(), end.clone());
                async move {
                    turn.working().await?;
                    begin.open();
                    wait.pass().await;
                    turn.working().await?;
                    match waits_for {
                        "cancel" => turn.canceled().await,
                        "message" => assert!(turn.next_message().await.is_err()),
                        _ => while turn.working().await.is_ok() {},
                    }
                    end.open();
                    turn.complete()
                }
            });
            let (_house, peer, store) = serve(world, agent);
            let task = peer.send(asking::at_once(send("go"))).await.unwrap();
            begun.reached().await;
            eventually("it is at work", async || {
                let state = peer.get(&task.id).await.unwrap().status.state;
                (state == TaskState::Working).then_some(())
            })
            .await;
            store.break_down();
            gate.open();
            over.reached().await;
            store.repair();
            ends_as(&peer, &task.id, TaskState::Failed).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_begun_after_the_failure_is_not_taken_for_the_lost_one() {
    for world in WORLDS {
        let (lost, gate) = (Gate::new(), Gate::new());
        let (lose, wait) = (lost.clone(), gate.clone());
        let agent = script(move |turn| {
            let (lose, wait) = (lose.clone(), wait.clone());
            async move {
                turn.working().await?;
                lose.pass().await;
                if turn.message().text() == "second" {
                    wait.pass().await;
                }
                turn.text_artifact("a", "a").await?;
                turn.complete()
            }
        });
        // So that the lost turn is looked for only when the test says so: at the next start.
        let store = FailingStore::new(MemoryStore::new());
        let setting = Setting::new(world.store).store(store.clone());
        let setting = setting.limits(|limits| {
            limits.lease = std::time::Duration::from_millis(900);
        });
        let house = setting.serve(agent, &State::new());
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("first"))).await.unwrap();
        eventually("it is at work", async || {
            let state = peer.get(&task.id).await.unwrap().status.state;
            (state == TaskState::Working).then_some(())
        })
        .await;
        store.break_down();
        lost.open_wide();
        eventually("the turn is lost", async || {
            (store.refused() > 0).then_some(())
        })
        .await;
        store.repair();
        // Whichever comes first: recovery fails the task and the message is refused, or the
        // message begins a turn and recovery leaves that alone.
        let second = asking::at_once(asking::to_task(send("second"), &task.id));
        match peer.send(second).await {
            Ok(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(700)).await;
                gate.open();
                ends_as(&peer, &task.id, TaskState::Completed).await;
            }
            Err(_) => {
                ends_as(&peer, &task.id, TaskState::Failed).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_message_needs_no_store() {
    everywhere(async |world: World| {
        let store = FailingStore::new(MemoryStore::new());
        store.break_down();
        let agent = script(|turn| async move { turn.reply(vec![Part::text("pong")]) });
        let setting = Setting::new(world.store).store(store);
        let house = setting.serve(agent, &State::new());
        let peer = house.peer(world.dialect);
        let told = peer.stream_send(send("ping")).await.briefs().await;
        assert_eq!(told, ["message pong"]);
    })
    .await;
}
