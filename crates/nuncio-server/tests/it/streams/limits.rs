//! How long streams stay open, and how many.

use crate::harness::{
    Connection, Gate, House, World, asking, counted, eventually, everywhere, script, send,
};
use nuncio_server::core::{Request, TaskState};
use std::{sync::atomic::Ordering, time::Duration};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_stream_is_closed_and_the_task_goes_on() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                turn.working().await?;
                wait.pass().await;
                turn.complete()
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.stream_idle = Duration::from_millis(60))
        });
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("go")).await;
        let task = stream.frame().await.task();
        assert_eq!(stream.briefs().await, ["status Working"]);
        assert_eq!(
            peer.get(&task.id).await.unwrap().status.state,
            TaskState::Working
        );
        gate.open();
        eventually("the task completes", async || {
            let task = peer.get(&task.id).await.unwrap();
            (task.status.state == TaskState::Completed).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_was_away_longer_than_the_idle_limit_still_hears_everything() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.working().await?;
            for _ in 0..12 {
                turn.text_artifact("much", "x".repeat(256 << 10)).await?;
            }
            turn.complete()
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.stream_idle = Duration::from_millis(1000))
        });
        let peer = house.peer(world.dialect);
        let narrow = Connection::open_narrow(house.address).await;
        let request = Request::SendStreamingMessage(send("go"));
        let mut stream = peer.stream_on(narrow, &request).await.unwrap();
        stream.frame().await;
        // Away. If this is too short the test is easier to pass, never harder.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let frames = stream.rest().await;
        assert_eq!(frames.last().unwrap().brief(), "status Completed");
        assert_eq!(frames.len(), 14);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_too_many_is_refused_before_its_message_is_taken_in() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move {
            if turn.message().text() == "stay" {
                turn.working().await?;
                turn.canceled().await;
                return turn.cancel();
            }
            turn.complete()
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| {
                limits.streams = 1;
                limits.keep_alive = Duration::from_millis(20);
            })
        });
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("stay")).await;
        let task = stream.frame().await.task();
        let too_many = [
            Request::SendStreamingMessage(send("more")),
            asking::to_follow(&task.id),
        ];
        for request in &too_many {
            let answer = peer.try_stream(request).await.unwrap_err();
            assert_eq!(answer.head.status, 503);
            assert!(answer.head.get("retry-after").is_some());
            assert_eq!(answer.json()["error"]["code"], -32603);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(peer.list(Default::default()).await.unwrap().total_size, 1);
        // The place is free again once its client is gone.
        stream.reset();
        eventually("a place for a stream", async || {
            peer.try_stream(&too_many[0]).await.ok().map(drop)
        })
        .await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_the_server_stops_and_can_be_resumed() {
    let world = World::ALL[5];
    let state = crate::harness::State::new();
    let agent = || {
        script(|turn| async move {
            turn.text_artifact("a", "one").await?;
            turn.ask("more?")
        })
    };
    let mut house = crate::harness::Setting::new(world.store).serve(agent(), &state);
    let peer = house.peer(world.dialect);
    let task = peer.say("go").await;
    let mut stream = peer.subscribe(&task.id).await;
    let last = stream.frame().await.id.unwrap();
    house.tell_to_stop();
    assert_eq!(stream.briefs().await, Vec::<String>::new());
    drop(house);

    let house = crate::harness::Setting::new(world.store).serve(agent(), &state);
    let peer = house.peer(world.dialect);
    let mut stream = peer.resubscribe(&task.id, last).await;
    assert_eq!(stream.frame().await.task(), task);
    peer.send(asking::to_task(send("more"), &task.id))
        .await
        .unwrap();
    assert_eq!(stream.frame().await.brief(), "artifact one");
    house.stop();
}
