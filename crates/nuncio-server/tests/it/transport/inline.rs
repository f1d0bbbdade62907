//! The plain transport: whoever sends a message follows it, and nobody else does.

use super::{assert_is_evented, assert_is_inline, three_steps};
use crate::harness::{
    Frame, Gate, House, Setting, World, asking, eventually, everywhere, script, send,
};
use nuncio_server::core::{ListTasks, Operation, Request, TaskState};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inline_takes_messages_and_shows_tasks() {
    everywhere(async |world: World| {
        let house = House::with(world, three_steps(), Setting::inline);
        let peer = house.peer(world.dialect);
        let asked = peer.say("ask").await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let more = asking::to_task(send("end"), &asked.id);
        let ended = peer.send(more).await.unwrap();
        assert_eq!(
            (&ended.id, ended.status.state),
            (&asked.id, TaskState::Completed)
        );
        assert_eq!(peer.get(&ended.id).await.unwrap(), ended);
        let resting = peer.say("ask").await;
        let canceled = peer.cancel(&resting.id).await.unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled);
        let page = peer.list(ListTasks::default()).await.unwrap();
        assert_eq!(page.total_size, 2);
        let again = peer.with("Idempotency-Key", "k");
        let first = again.send(send("end")).await.unwrap();
        assert_eq!(again.send(send("end")).await.unwrap().id, first.id);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inline_refuses_what_only_evented_has() {
    everywhere(async |world: World| {
        let house = House::with(world, three_steps(), Setting::inline);
        let peer = house.peer(world.dialect);
        let ids = [peer.say("ask").await.id, peer.say("end").await.id];
        for id in &ids {
            assert_is_inline(&peer, id).await;
        }
        let house = House::of(world, three_steps());
        let peer = house.peer(world.dialect);
        let id = peer.say("end").await.id;
        assert_is_evented(&peer, &id).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inline_stream_says_the_same_but_has_no_places_to_resume_from() {
    everywhere(async |world: World| {
        let inline = House::with(world, three_steps(), Setting::inline);
        let evented = House::of(world, three_steps());
        let [inline, evented] = [&inline, &evented].map(|house| house.peer(world.dialect));
        let (mut told, mut tasks) = (Vec::new(), Vec::new());
        for peer in [&inline, &evented] {
            let mut stream = peer.stream_send(send("ask")).await;
            let mut frames = stream.rest().await;
            let id = frames[0].task().id;
            let mut stream = peer.stream_send(asking::to_task(send("end"), &id)).await;
            frames.extend(stream.rest().await);
            told.push(frames.iter().map(Frame::brief).collect::<Vec<_>>());
            let numbered = peer.address == evented.address;
            assert!(frames.iter().all(|frame| frame.id.is_some() == numbered));
            tasks.push(peer.get(&id).await.unwrap());
        }
        assert_eq!(told[0], told[1]);
        assert_eq!(told[0].len(), 8, "{told:?}");
        assert!(
            tasks
                .iter()
                .all(|task| task.status.state == TaskState::Completed)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_outlives_its_inline_stream() {
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
        let house = House::with(world, agent, Setting::inline);
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("hi")).await;
        let id = stream.frame().await.task().id;
        stream.reset();
        gate.open();
        eventually("the task completes", async || {
            let task = peer.get(&id).await.unwrap();
            (task.status.state == TaskState::Completed).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_can_be_off_and_the_card_says_so() {
    everywhere(async |world: World| {
        for on in [true, false] {
            let house = House::with(world, three_steps(), |setting| {
                setting.build(move |builder| builder.streaming(on))
            });
            let peer = house.peer(world.dialect);
            let card = peer.fetch("/.well-known/agent-card.json", &[]).await.json();
            assert_eq!(card["capabilities"]["streaming"], on);
            let id = peer.say("ask").await.id;
            if on {
                continue;
            }
            for request in [
                Request::SendStreamingMessage(send("hi")),
                Request::SendStreamingMessage(asking::to_task(send("hi"), &id)),
                asking::to_follow(&id),
                asking::to_follow(&"missing".parse().unwrap()),
            ] {
                assert_eq!(peer.refused_stream(&request).await.code, -32004);
            }
            // Before the parameters are looked at.
            let answer = peer.call(Operation::SendStreamingMessage, &json!({})).await;
            assert_eq!(answer.json()["error"]["code"], -32004);
            assert_eq!(answer.json()["result"], Value::Null);
            let page = peer.list(ListTasks::default()).await.unwrap();
            assert_eq!((page.total_size, &page.tasks[0].id), (1, &id));
        }
    })
    .await;
}
