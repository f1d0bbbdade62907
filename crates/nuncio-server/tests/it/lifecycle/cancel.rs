//! Canceling.

use crate::harness::{
    Connection, Gate, House, World, asking, eventually, everywhere, script, send,
};
use nuncio_server::core::{CancelTask, Metadata, Request, TaskState};
use std::time::Duration;

/// Tells the test when it watches for a cancel, and then does as its message says.
fn watching(watches: &Gate) -> crate::harness::Script {
    let watches = watches.clone();
    script(move |turn| {
        let watches = watches.clone();
        async move {
            turn.working().await?;
            assert!(!turn.is_canceled());
            watches.open();
            match turn.message().text().as_str() {
                "deaf" => std::future::pending().await,
                text => {
                    let text = text.to_owned();
                    turn.canceled().await;
                    match text.as_str() {
                        "cancel" => turn.cancel(),
                        "complete" => turn.complete_with("I was just done"),
                        "ask" => turn.ask("really?"),
                        "leave" => turn.leave(),
                        "error" => Err(nuncio_server::AgentError::TurnOver),
                        "fail" => turn.fail("no"),
                        other => panic!("as told: {other}"),
                    }
                }
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_agent_makes_of_it_a_canceled_task_ends() {
    everywhere(async |world: World| {
        let watches = Gate::new();
        let house = House::of(world, watching(&watches));
        let peer = house.peer(world.dialect);
        for (what, state) in [
            ("cancel", TaskState::Canceled),
            ("complete", TaskState::Completed),
            ("ask", TaskState::Canceled),
            ("leave", TaskState::Canceled),
            ("error", TaskState::Canceled),
            ("fail", TaskState::Failed),
            ("panic", TaskState::Canceled),
        ] {
            let mut waiting = peer.stream_send(send(what)).await;
            let task = waiting.frame().await.task();
            watches.reached().await;
            let answer = peer.cancel(&task.id).await;
            // A task that ended otherwise was not canceled.
            match &answer {
                Ok(task) => assert_eq!(task.status.state, TaskState::Canceled),
                Err(error) => assert_eq!(error.code, -32002),
            }
            assert_eq!(answer.is_ok(), state == TaskState::Canceled, "{what}");
            assert_eq!(
                peer.get(&task.id).await.unwrap().status.state,
                state,
                "{what}"
            );
            let last = waiting.rest().await.pop().unwrap();
            assert_eq!(last.status().status.state, state);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_watched_and_does_not_end_is_stopped_after_the_grace_time() {
    everywhere(async |world: World| {
        let watches = Gate::new();
        let house = House::with(world, watching(&watches), |setting| {
            setting.limits(|limits| {
                limits.cancel_grace = Duration::from_millis(50);
                limits.turns = 1;
            })
        });
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("deaf"))).await.unwrap();
        watches.reached().await;
        let canceled = peer.cancel(&task.id).await.unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled);
        // Its place is free.
        let next = eventually("the turn is gone", async || {
            let request = Request::SendMessage(asking::at_once(send("cancel")));
            let body = peer.body(request.operation(), &peer.params(&request));
            (peer.post(&body).await.head.status == 200).then_some(())
        });
        next.await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_holds_even_if_its_sender_goes_away() {
    let watches = Gate::new();
    let world = World::ALL[1];
    let agent = watching(&watches);
    let server = nuncio_server::Server::builder(agent)
        .limits(nuncio_server::Limits {
            cancel_grace: Duration::from_millis(400),
            ..Default::default()
        })
        .build();
    let mounted = crate::harness::Mounted::serve(server.router()).await;
    let peer = crate::harness::Peer::new(mounted.address, world.dialect);
    let task = peer.send(asking::at_once(send("deaf"))).await.unwrap();
    watches.reached().await;
    let mut connection = Connection::open(mounted.address).await;
    let cancel = CancelTask {
        id: task.id.clone(),
        metadata: Metadata::new(),
    };
    connection
        .write(&peer.request_bytes(&Request::CancelTask(cancel)))
        .await;
    // Long enough for the request to be read, short enough for the grace time. If this is too
    // short the test is easier to pass, never harder.
    tokio::time::sleep(Duration::from_millis(100)).await;
    if peer.get(&task.id).await.unwrap().status.state == TaskState::Working {
        connection.reset();
    }
    eventually("the task is canceled", async || {
        let state = peer.get(&task.id).await.unwrap().status.state;
        (state == TaskState::Canceled).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resting_task_is_canceled_at_once_and_only_once() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.ask("and?") }));
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        let mut stream = peer.subscribe(&task.id).await;
        stream.frame().await;
        let canceled = peer.cancel(&task.id).await.unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled);
        // The question is not lost.
        assert_eq!(canceled.history.len(), 2);
        assert_eq!(stream.briefs().await, ["status Canceled"]);
        assert_eq!(peer.cancel(&task.id).await.unwrap_err().code, -32002);
        assert_eq!(peer.get(&task.id).await.unwrap(), canceled);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_task_cannot_be_canceled() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        assert_eq!(peer.cancel(&task.id).await.unwrap_err().code, -32002);
        assert_eq!(peer.get(&task.id).await.unwrap(), task);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_at_once_agree() {
    everywhere(async |world: World| {
        let watches = Gate::new();
        let house = House::of(world, watching(&watches));
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("cancel"))).await.unwrap();
        watches.reached().await;
        let mut all = Vec::new();
        for _ in 0..8 {
            let (peer, id) = (peer.clone(), task.id.clone());
            all.push(tokio::spawn(async move { peer.cancel(&id).await }));
        }
        let mut canceled = 0;
        for one in all {
            match one.await.unwrap() {
                Ok(task) => {
                    assert_eq!(task.status.state, TaskState::Canceled);
                    canceled += 1;
                }
                // It came when all was over.
                Err(error) => assert_eq!(error.code, -32002),
            }
        }
        assert!(canceled >= 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_and_completion_may_race_and_one_wins() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.working().await?;
            tokio::task::yield_now().await;
            turn.text_artifact("a", "a").await?;
            turn.complete()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for _ in 0..40 {
            let task = peer.send(asking::at_once(send("go"))).await.unwrap();
            let answer = peer.cancel(&task.id).await;
            let now = peer.get(&task.id).await.unwrap();
            match answer {
                Ok(canceled) => assert_eq!(now, canceled),
                Err(error) => {
                    assert_eq!(error.code, -32002);
                    assert_eq!(now.status.state, TaskState::Completed);
                }
            }
            assert_eq!(peer.get(&task.id).await.unwrap(), now);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_turn_is_canceled_like_the_first() {
    everywhere(async |world: World| {
        let (begun, go) = (Gate::new(), Gate::new());
        let (begin, wait) = (begun.clone(), go.clone());
        let agent = script(move |turn| {
            let (begin, wait) = (begin.clone(), wait.clone());
            async move {
                turn.working().await?;
                begin.open();
                if turn.message().text() == "first" {
                    wait.pass().await;
                    return turn.ask("next?");
                }
                std::future::pending().await
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.turns = 1)
        });
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("first"))).await.unwrap();
        begun.reached().await;
        let second = asking::at_once(asking::to_task(send("second"), &task.id));
        peer.send(second).await.unwrap();
        go.open();
        begun.reached().await;
        assert_eq!(
            peer.cancel(&task.id).await.unwrap().status.state,
            TaskState::Canceled
        );
        eventually("the turn is gone", async || {
            let request = Request::SendMessage(asking::at_once(send("first")));
            let body = peer.body(request.operation(), &peer.params(&request));
            (peer.post(&body).await.head.status == 200).then_some(())
        })
        .await;
    })
    .await;
}
