//! Streams that lose, repeat, stall or end too early.

use crate::harness::{
    Connection, FailingStore, Frame, Gate, House, Mounted, Peer, World, asking, eventually,
    everywhere, script, send,
};
use nuncio_server::core::{Event, Part, Request, Task, TaskState};
use nuncio_server::{Server, store::MemoryStore};
use std::time::Duration;

/// The chunks of a task's only artifact.
fn chunks_of(task: &Task) -> Vec<String> {
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    parts.filter_map(Part::as_text).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_or_repeated_between_the_snapshot_and_the_stream() {
    const CHUNKS: usize = 600;
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let mut chunks = turn.chunks("numbers");
            for n in 0..CHUNKS {
                chunks.send(Part::text(n.to_string())).await?;
                if n % 3 == 0 {
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
            }
            chunks.finish(Part::text(CHUNKS.to_string())).await?;
            turn.complete()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("count"))).await.unwrap();
        let mut followers = Vec::new();
        while followers.len() < 30 && !peer.get(&task.id).await.unwrap().status.state.is_terminal()
        {
            let (peer, id) = (peer.clone(), task.id.clone());
            followers.push(tokio::spawn(async move {
                let Ok(mut stream) = peer.try_stream(&asking::to_follow(&id)).await else {
                    // It had ended by then.
                    return;
                };
                let mut seen = chunks_of(&stream.frame().await.task());
                for frame in stream.rest().await {
                    if let Event::Artifact(update) = frame.event() {
                        let parts = update.artifact.parts.iter();
                        let texts = parts.filter_map(Part::as_text).map(str::to_owned);
                        if update.append {
                            seen.extend(texts);
                        } else {
                            seen = texts.collect();
                        }
                    }
                }
                let all: Vec<_> = (0..=CHUNKS).map(|n| n.to_string()).collect();
                assert_eq!(seen, all);
            }));
        }
        assert!(!followers.is_empty());
        for follower in followers {
            follower.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_ten_thousand_events_goes_into_a_blocking_send() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let mut chunks = turn.chunks("burst");
            for n in 0..9_999 {
                chunks.send(Part::text(n.to_string())).await?;
            }
            chunks.finish(Part::text("9999")).await?;
            turn.complete()
        });
        let house = House::of(world, agent);
        let task = house.peer(world.dialect).say("burst").await;
        assert_eq!(task.status.state, TaskState::Completed);
        let all: Vec<_> = (0..10_000).map(|n| n.to_string()).collect();
        assert_eq!(chunks_of(&task), all);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_that_stops_reading_does_not_hold_the_task_up() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let begin = gate.clone();
        let agent = script(move |turn| {
            let begin = begin.clone();
            async move {
                turn.working().await?;
                begin.pass().await;
                for _ in 0..16 {
                    turn.text_artifact("much", "x".repeat(256 << 10)).await?;
                }
                turn.complete()
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let mut sender = peer.stream_send(send("go")).await;
        let task = sender.frame().await.task();
        let narrow = Connection::open_narrow(house.address).await;
        let mut deaf = peer
            .stream_on(narrow, &asking::to_follow(&task.id))
            .await
            .unwrap();
        deaf.frame().await;
        gate.open();
        let told = sender.rest().await;
        assert_eq!(
            told.last().unwrap().status().status.state,
            TaskState::Completed
        );
        // It missed nothing by not listening.
        let heard = deaf.rest().await;
        let said = |frames: &[Frame]| -> Vec<_> {
            frames
                .iter()
                .rev()
                .take(17)
                .map(|f| (f.id, f.json["result"].clone()))
                .collect()
        };
        assert_eq!(said(&heard), said(&told));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_frame_has_the_id_of_its_request() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.working().await?;
            turn.text_artifact("a", "a").await?;
            turn.complete()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("go")).await;
        let frames = stream.rest().await;
        assert_eq!(frames.len(), 4);
        assert!(frames[0].json["id"].is_u64());
        assert!(
            frames
                .iter()
                .all(|frame| frame.json["id"] == frames[0].json["id"])
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_stream_is_kept_alive() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.working().await?;
            turn.canceled().await;
            turn.cancel()
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.keep_alive = Duration::from_millis(20))
        });
        let mut stream = house.peer(world.dialect).stream_send(send("wait")).await;
        stream.frame().await;
        stream.frame().await;
        for _ in 0..3 {
            stream.comment().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_does_not_end_while_the_task_is_open() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            match turn.message().text().as_str() {
                "end" => turn.complete(),
                _ => turn.ask("and then?"),
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("begin").await;
        let mut stream = peer.subscribe(&task.id).await;
        assert_eq!(stream.frame().await.brief(), "task InputRequired");
        for _ in 0..3 {
            peer.send(asking::to_task(send("more"), &task.id))
                .await
                .unwrap();
            assert_eq!(
                stream.frame().await.brief(),
                "status InputRequired and then?"
            );
        }
        peer.send(asking::to_task(send("end"), &task.id))
            .await
            .unwrap();
        assert_eq!(stream.briefs().await, ["status Completed"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_neither_ends_the_task_nor_leaves_it_working() {
    everywhere(async |world: World| {
        let (begun, gate) = (Gate::new(), Gate::new());
        let (tell, wait) = (begun.clone(), gate.clone());
        let agent = script(move |turn| {
            let (tell, wait) = (tell.clone(), wait.clone());
            async move {
                turn.working().await?;
                tell.open();
                wait.pass().await;
                turn.text_artifact("late", "still here").await?;
                turn.complete()
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);

        // In the middle of a stream.
        let mut stream = peer.stream_send(send("stream")).await;
        let streamed = stream.frame().await.task().id;
        begun.reached().await;
        stream.reset();
        // While a send waits.
        let mut connection = Connection::open(house.address).await;
        connection
            .write(&peer.request_bytes(&Request::SendMessage(send("send"))))
            .await;
        begun.reached().await;
        let sent = eventually("the second task is known", async || {
            let page = peer.list(Default::default()).await.unwrap();
            let mut ids = page.tasks.into_iter().map(|task| task.id);
            ids.find(|id| *id != streamed)
        })
        .await;
        connection.reset();

        let mut followers = Vec::new();
        for id in [&streamed, &sent] {
            assert_eq!(peer.get(id).await.unwrap().status.state, TaskState::Working);
            followers.push(peer.subscribe(id).await);
        }
        gate.open_wide();
        for mut stream in followers {
            assert_eq!(
                stream.rest().await.last().unwrap().brief(),
                "status Completed"
            );
        }
        for id in [&streamed, &sent] {
            assert_eq!(peer.get(id).await.unwrap().artifacts.len(), 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_final_event_is_the_same_for_everybody() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                turn.working().await?;
                wait.pass().await;
                turn.complete_with("done")
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let mut sender = peer.stream_send(send("go")).await;
        let task = sender.frame().await.task();
        let mut others = Vec::new();
        for _ in 0..5 {
            others.push(peer.subscribe(&task.id).await);
        }
        for other in &mut others {
            other.frame().await;
        }
        gate.open();
        let last = sender.rest().await.pop().unwrap();
        for mut other in others {
            let theirs = other.rest().await.pop().unwrap();
            assert_eq!(
                (theirs.id, &theirs.json["result"]),
                (last.id, &last.json["result"])
            );
        }
        // And for who comes later.
        let mut later = peer.resubscribe(&task.id, 1).await;
        let theirs = later.rest().await.pop().unwrap();
        assert_eq!(
            (theirs.id, &theirs.json["result"]),
            (last.id, &last.json["result"])
        );
    })
    .await;
}

/// A client may go away at the worst moment: after its message was stored, before its turn
/// began. The message must be answered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_answered_whenever_its_sender_goes_away() {
    let agent = script(|turn| async move {
        turn.text_artifact("echo", turn.message().text()).await?;
        turn.ask("more?")
    });
    let store = FailingStore::new(MemoryStore::new());
    let server = Server::builder(agent).store(store.clone()).build();
    let mounted = Mounted::serve(server.router()).await;
    let peer = Peer::new(mounted.address, World::ALL[1].dialect);
    let task = peer.say("begin").await;
    let mut messages = 1;
    let leaving = [
        asking::to_task(send("more"), &task.id),
        asking::at_once(asking::to_task(send("more, at once"), &task.id)),
        asking::at_once(send("new, at once")),
    ];
    for message in leaving {
        let held = store.hold();
        let mut connection = Connection::open(mounted.address).await;
        let is_new = message.message.task_id.is_none();
        connection
            .write(&peer.request_bytes(&Request::SendMessage(message)))
            .await;
        held.reached().await;
        connection.reset();
        // Time for the server to notice. If it is too short, the test is easier to pass.
        tokio::time::sleep(Duration::from_millis(50)).await;
        held.release();
        messages += usize::from(!is_new);
        eventually("an answer to the message", async || {
            let page = peer.list(Default::default()).await.unwrap();
            let now = peer.get(&task.id).await.unwrap();
            let rests = |task: &Task| task.status.state == TaskState::InputRequired;
            let new = page.tasks.len() == 1 + usize::from(is_new);
            (now.artifacts.len() == messages && new && page.tasks.iter().all(rests)).then_some(())
        })
        .await;
    }
}
