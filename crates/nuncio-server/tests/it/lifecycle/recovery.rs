//! Servers that die in the middle of a turn.

use crate::harness::{
    Gate, Script, Setting, State, World, asking, counted, eventually, script, send,
};
use nuncio_server::core::{Part, TaskState};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

const DIALECTS: [World; 2] = [World::ALL[4], World::ALL[5]];

/// Reports, tells the test, and then never ends.
fn hanging() -> Script {
    script(|turn| async move {
        let mut chunks = turn.chunks("half");
        chunks.send(Part::text("one")).await?;
        chunks.send(Part::text("two")).await?;
        std::future::pending().await
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_died_with_its_server_fails_its_task_and_says_why() {
    for world in DIALECTS {
        let state = State::new();
        let house = Setting::new(world.store).serve(hanging(), &state);
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("go")).await;
        let task = stream.frame().await.task();
        stream.frame().await;
        let last = stream.frame().await.id.unwrap();
        // One that had not even begun, and one that was never reported of.
        let silent = peer.send(asking::at_once(send("silent"))).await.unwrap();
        house.die();

        let house = Setting::new(world.store).serve(hanging(), &state);
        let peer = house.peer(world.dialect);
        for id in [&task.id, &silent.id] {
            let lost = peer.get(id).await.unwrap();
            assert_eq!(lost.status.state, TaskState::Failed);
            let why = lost.status.message.unwrap().text();
            assert!(
                why.starts_with("The server stopped while this task was running"),
                "{why}"
            );
        }
        // Who followed it comes back and is told.
        let told = peer.resubscribe(&task.id, last).await.rest().await;
        assert_eq!(told[0].task().artifacts[0].parts.len(), 2);
        assert_eq!(told[1].status().status.state, TaskState::Failed);
        assert_eq!(told.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_resumes_runs_its_lost_turns_again() {
    for world in DIALECTS {
        let state = State::new();
        let house = Setting::new(world.store).serve(hanging(), &state);
        let peer = house.peer(world.dialect);
        let keyed = peer.with("Idempotency-Key", "k");
        let task = keyed.send(asking::at_once(send("go on"))).await.unwrap();
        eventually("it reports", async || {
            (peer.get(&task.id).await.unwrap().artifacts.len() == 1).then_some(())
        })
        .await;
        house.die();

        let (begun, gate) = (Gate::new(), Gate::new());
        let (begin, wait) = (begun.clone(), gate.clone());
        let (agent, runs) = counted(move |turn| {
            let (begin, wait) = (begin.clone(), wait.clone());
            async move {
                assert!(turn.is_resumed());
                assert_eq!(turn.task().artifacts.len(), 1);
                begin.open();
                wait.pass().await;
                let text = turn.message().text();
                turn.complete_with(format!("{text}: done"))
            }
        });
        let house = Setting::new(world.store).serve(agent.resuming(), &state);
        begun.reached().await;
        let keyed = house.peer(world.dialect).with("Idempotency-Key", "k");
        // A retry of the send waits for the turn that is run again, and so does its stream.
        let retry = {
            let keyed = keyed.clone();
            tokio::spawn(async move { keyed.say("go on").await })
        };
        let mut stream = keyed.stream_send(send("go on")).await;
        assert_eq!(stream.frame().await.task().artifacts.len(), 1);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!retry.is_finished());
        gate.open();
        assert_eq!(stream.briefs().await, ["status Completed go on: done"]);
        assert_eq!(retry.await.unwrap().id, task.id);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resting_task_is_left_alone_by_a_restart() {
    for world in DIALECTS {
        let state = State::new();
        let agent = || {
            script(|turn| async move {
                match turn.message().text().as_str() {
                    "leave" => {
                        turn.working().await?;
                        turn.leave()
                    }
                    _ => turn.ask("more?"),
                }
            })
        };
        let house = Setting::new(world.store).serve(agent(), &state);
        let peer = house.peer(world.dialect);
        let tasks = [peer.say("ask").await, peer.say("leave").await];
        house.die();
        let house = Setting::new(world.store).serve(agent(), &state);
        let peer = house.peer(world.dialect);
        for task in tasks {
            assert_eq!(peer.get(&task.id).await.unwrap(), task);
            let next = peer
                .send(asking::to_task(send("ask"), &task.id))
                .await
                .unwrap();
            assert_eq!(next.status.state, TaskState::InputRequired);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_stop_lets_turns_end() {
    for world in DIALECTS {
        let (state, begun, gate) = (State::new(), Gate::new(), Gate::new());
        let (begin, wait) = (begun.clone(), gate.clone());
        let agent = script(move |turn| {
            let (begin, wait) = (begin.clone(), wait.clone());
            async move {
                turn.working().await?;
                begin.open();
                wait.pass().await;
                turn.complete()
            }
        });
        let mut house = Setting::new(world.store).serve(agent.clone(), &state);
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("go"))).await.unwrap();
        begun.reached().await;
        house.tell_to_stop();
        gate.open();
        house.ended();
        let house = Setting::new(world.store).serve(agent, &state);
        let task = house.peer(world.dialect).get(&task.id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_outlives_the_server() {
    for world in DIALECTS {
        let state = State::new();
        let runs = Arc::new(AtomicUsize::new(0));
        let agent = || {
            let runs = Arc::clone(&runs);
            script(move |turn| {
                runs.fetch_add(1, Ordering::SeqCst);
                async move { turn.complete() }
            })
        };
        let house = Setting::new(world.store).serve(agent(), &state);
        let keyed = house.peer(world.dialect).with("Idempotency-Key", "k");
        let task = keyed.say("hello").await;
        house.die();
        let house = Setting::new(world.store).serve(agent(), &state);
        let keyed = house.peer(world.dialect).with("Idempotency-Key", "k");
        assert_eq!(keyed.say("hello").await, task);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}
