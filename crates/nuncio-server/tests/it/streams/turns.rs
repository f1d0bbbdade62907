//! Several messages to one task: whose stream and whose wait ends when.

use crate::harness::{
    Gate, House, Script, World, asking, counted, eventually, everywhere, script, send,
};
use nuncio_server::core::{Message, Part, TaskState};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Echoes each message and asks for the next; `end` ends the task.
fn echo() -> Script {
    script(|turn| async move {
        let text = turn.message().text();
        turn.text_artifact("echo", text.clone()).await?;
        if text == "end" {
            turn.complete()
        } else {
            turn.ask(format!("{text}?"))
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turns_stream_ends_with_the_turn_and_shows_all_of_it() {
    everywhere(async |world: World| {
        let house = House::of(world, echo());
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("0")).await;
        let task = stream.frame().await.task();
        assert_eq!(
            stream.briefs().await,
            ["artifact 0", "status InputRequired 0?"]
        );
        // However fast the agent is, the stream begins with the task as of the message.
        for n in 1..40 {
            let next = asking::to_task(send(&n.to_string()), &task.id);
            let mut stream = peer.stream_send(next).await;
            let snapshot = stream.frame().await.task();
            assert_eq!(snapshot.artifacts.len(), n);
            assert_eq!(snapshot.history.last().unwrap().text(), n.to_string());
            let told = [
                format!("artifact {n}"),
                format!("status InputRequired {n}?"),
            ];
            assert_eq!(stream.briefs().await, told);
        }
        let mut stream = peer
            .stream_send(asking::to_task(send("end"), &task.id))
            .await;
        assert_eq!(stream.frame().await.brief(), "task InputRequired");
        assert_eq!(stream.briefs().await, ["artifact end", "status Completed"]);
    })
    .await;
}

/// Works until it is let go, then takes what was sent meanwhile.
fn taking(begun: &Gate, go: &Gate) -> Script {
    let (begun, go) = (begun.clone(), go.clone());
    script(move |mut turn| {
        let (begun, go) = (begun.clone(), go.clone());
        async move {
            turn.working().await?;
            begun.open();
            let text = turn.next_message().await?.text();
            turn.text_artifact("taken", text).await?;
            go.pass().await;
            turn.ask("more?")
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_turn_may_take_a_message_and_answers_both() {
    everywhere(async |world: World| {
        let (begun, go) = (Gate::new(), Gate::new());
        let house = House::of(world, taking(&begun, &go));
        let peer = house.peer(world.dialect);
        let mut first = peer.stream_send(send("one")).await;
        let task = first.frame().await.task();
        begun.reached().await;
        let mut second = peer
            .stream_send(asking::to_task(send("two"), &task.id))
            .await;
        assert_eq!(second.frame().await.brief(), "task Working");
        assert_eq!(second.frame().await.brief(), "artifact two");
        go.open();
        assert_eq!(second.briefs().await, ["status InputRequired more?"]);
        assert_eq!(
            first.briefs().await,
            [
                "status Working",
                "artifact two",
                "status InputRequired more?"
            ]
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_senders_of_a_taken_message_both_get_the_task() {
    everywhere(async |world: World| {
        let (begun, go) = (Gate::new(), Gate::new());
        go.open_wide();
        let house = House::of(world, taking(&begun, &go));
        let peer = house.peer(world.dialect);
        let first = {
            let peer = peer.clone();
            tokio::spawn(async move { peer.say("one").await })
        };
        begun.reached().await;
        let task = eventually("the task is known", async || {
            peer.list(Default::default()).await.unwrap().tasks.pop()
        })
        .await;
        let second = peer
            .send(asking::to_task(send("two"), &task.id))
            .await
            .unwrap();
        assert_eq!(second.status.state, TaskState::InputRequired);
        assert_eq!(first.await.unwrap(), second);
    })
    .await;
}

/// Works until it is let go, never takes a message, and never runs twice at once.
fn one_by_one(begun: &Gate, go: &Gate) -> Script {
    let (begun, go) = (begun.clone(), go.clone());
    let running = Arc::new(AtomicUsize::new(0));
    script(move |turn| {
        let (begun, go, running) = (begun.clone(), go.clone(), Arc::clone(&running));
        async move {
            assert_eq!(
                running.fetch_add(1, Ordering::SeqCst),
                0,
                "one turn at a time"
            );
            turn.working().await?;
            begun.open();
            go.pass().await;
            let text = turn.message().text();
            for n in 0..20 {
                turn.text_artifact("echo", format!("{text}{n}")).await?;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            if text == "end" {
                turn.complete()
            } else {
                turn.ask(format!("{text}?"))
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_not_taken_is_the_next_turn_and_its_stream_waits_for_that() {
    for recent in [1024, 1] {
        everywhere(async |world: World| {
            let (begun, go) = (Gate::new(), Gate::new());
            let house = House::with(world, one_by_one(&begun, &go), |setting| {
                // With one entry in memory, followers read from the store.
                setting.limits(|limits| limits.recent_updates = recent)
            });
            let peer = house.peer(world.dialect);
            let mut first = peer.stream_send(send("a")).await;
            let task = first.frame().await.task();
            begun.reached().await;
            let mut second = peer.stream_send(asking::to_task(send("b"), &task.id)).await;
            let third = {
                let (peer, id) = (peer.clone(), task.id.clone());
                tokio::spawn(async move { peer.send(asking::to_task(send("c"), &id)).await })
            };
            eventually("all are in the history", async || {
                (peer.get(&task.id).await.unwrap().history.len() == 3).then_some(())
            })
            .await;
            go.open();
            // The first has its answer, and nobody else has.
            let told = first.briefs().await;
            assert_eq!(told.last().unwrap(), "status InputRequired a?");
            begun.reached().await;
            assert!(!third.is_finished());
            go.open();
            let told = second.briefs().await;
            assert_eq!(told.last().unwrap(), "status InputRequired b?");
            assert!(told.contains(&"status InputRequired a?".to_owned()));
            assert!(told.contains(&"artifact b19".to_owned()));
            begun.reached().await;
            assert!(!third.is_finished());
            go.open();
            let task = third.await.unwrap().unwrap();
            assert_eq!(task.status.message.unwrap().text(), "c?");
            assert_eq!(task.artifacts.len(), 60);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_waits_while_the_task_ends_is_in_the_history_and_answered_with_the_end() {
    everywhere(async |world: World| {
        let (begun, go) = (Gate::new(), Gate::new());
        let house = House::of(world, one_by_one(&begun, &go));
        let peer = house.peer(world.dialect);
        let mut first = peer.stream_send(send("end")).await;
        let task = first.frame().await.task();
        begun.reached().await;
        let mut second = peer
            .stream_send(asking::to_task(send("late"), &task.id))
            .await;
        second.frame().await;
        let third = {
            let (peer, id) = (peer.clone(), task.id.clone());
            tokio::spawn(async move { peer.send(asking::to_task(send("later"), &id)).await })
        };
        eventually("all are in the history", async || {
            (peer.get(&task.id).await.unwrap().history.len() == 3).then_some(())
        })
        .await;
        go.open();
        assert_eq!(second.briefs().await.last().unwrap(), "status Completed");
        let task = third.await.unwrap().unwrap();
        assert_eq!(task.status.state, TaskState::Completed);
        let said: Vec<_> = task.history.iter().map(Message::text).collect();
        assert_eq!(said, ["end", "late", "later"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_at_once_are_answered_one_after_the_other() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move {
            let text = turn.message().text();
            tokio::task::yield_now().await;
            turn.text_artifact("echo", text).await?;
            turn.ask("more?")
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("first").await;
        let mut senders = Vec::new();
        for n in 0..12 {
            let (peer, id) = (peer.clone(), task.id.clone());
            senders.push(tokio::spawn(async move {
                let text = format!("n{n}");
                let next = asking::to_task(send(&text), &id);
                if n % 2 == 0 {
                    let task = peer.send(next).await.unwrap();
                    let is_mine = |part: &Part| part.as_text() == Some(&text);
                    let parts = || task.artifacts.iter().flat_map(|artifact| &artifact.parts);
                    assert_eq!(parts().filter(|part| is_mine(part)).count(), 1);
                } else {
                    let told = peer.stream_send(next).await.briefs().await;
                    assert!(told.contains(&format!("artifact {text}")), "{told:?}");
                    assert_eq!(told.last().unwrap(), "status InputRequired more?");
                }
            }));
        }
        for sender in senders {
            sender.await.unwrap();
        }
        assert_eq!(runs.load(Ordering::SeqCst), 13);
        let task = peer.get(&task.id).await.unwrap();
        assert_eq!(task.artifacts.len(), 13);
        let users = task
            .history
            .iter()
            .filter(|m| m.role == nuncio_server::core::Role::User);
        assert_eq!(users.count(), 13);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_may_end_with_the_task_still_working() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.working().await?;
            turn.leave()
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("one").await;
        assert_eq!(task.status.state, TaskState::Working);
        let mut stream = peer
            .stream_send(asking::to_task(send("two"), &task.id))
            .await;
        assert_eq!(stream.frame().await.brief(), "task Working");
        assert_eq!(stream.briefs().await, ["status Working"]);
        assert_eq!(
            peer.cancel(&task.id).await.unwrap().status.state,
            TaskState::Canceled
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_does_not_wait_for_ever_for_an_agents_first_word() {
    everywhere(async |world: World| {
        let go = Gate::new();
        let wait = go.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                turn.reply(vec![Part::text("at last")])
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.first_event = Duration::from_millis(20))
        });
        let peer = house.peer(world.dialect);
        let mut stream = peer.stream_send(send("hello")).await;
        let task = stream.frame().await.task();
        assert_eq!(task.status.state, TaskState::Submitted);
        assert_eq!(peer.get(&task.id).await.unwrap().id, task.id);
        go.open();
        // There is a task by now, so the bare message is what it ends with.
        assert_eq!(stream.briefs().await, ["status Completed at last"]);
    })
    .await;
}
