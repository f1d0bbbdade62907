//! Tasks that stop, start again, forget, or end in the wrong way.

use crate::harness::{
    Gate, House, Setting, State, StoreKind, World, asking, counted, eventually, everywhere, script,
    send,
};
use nuncio_server::{
    AgentError,
    core::{Artifact, ArtifactId, ListTasks, Message, Part, TaskId, TaskState},
    store::{Maintenance, MemoryStore, Retention},
};
use std::sync::{Arc, atomic::Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_answered_at_once_moves_on() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                turn.complete_with("done")
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("go"))).await.unwrap();
        assert_eq!(task.status.state, TaskState::Submitted);
        gate.open();
        eventually("the task completes", async || {
            let now = peer.get(&task.id).await.unwrap();
            (now.status.state == TaskState::Completed).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_continuation_keeps_the_task_its_artifacts_and_its_history() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let text = turn.message().text();
            turn.text_artifact("echo", text.clone()).await?;
            if text == "three" {
                turn.complete_with("bye")
            } else {
                turn.ask(format!("{text}?"))
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let first = peer.say("one").await;
        // By the task's id alone: the context is inferred.
        let second = peer
            .send(asking::to_task(send("two"), &first.id))
            .await
            .unwrap();
        assert_eq!(
            (&second.id, &second.context_id),
            (&first.id, &first.context_id)
        );
        // And with the context.
        let third =
            asking::in_context(asking::to_task(send("three"), &first.id), &first.context_id);
        let third = peer.send(third).await.unwrap();
        assert_eq!(third.id, first.id);
        assert_eq!(third.artifacts.len(), 3);
        let said: Vec<_> = third.history.iter().map(Message::text).collect();
        assert_eq!(said, ["one", "one?", "two", "two?", "three"]);
        assert_eq!(third.status.message.as_ref().unwrap().text(), "bye");
        assert_eq!(third.status.state, TaskState::Completed);
        assert_eq!(peer.list(ListTasks::default()).await.unwrap().total_size, 1);
        assert_eq!(peer.get(&first.id).await.unwrap(), third);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_an_unknown_task_makes_none() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let mine = TaskId::new("a-name-of-my-own").unwrap();
        let refused = peer
            .send(asking::to_task(send("hi"), &mine))
            .await
            .unwrap_err();
        assert_eq!(refused.code, -32001);
        assert_eq!(peer.list(ListTasks::default()).await.unwrap().total_size, 0);
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_has_ended_is_not_run_again() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("once").await;
        let refused = peer
            .send(asking::to_task(send("twice"), &task.id))
            .await
            .unwrap_err();
        if world.dialect.is_v1() {
            assert_eq!(refused.code, -32004);
        } else {
            assert_eq!(
                (refused.code, refused.field()),
                (-32602, Some("message.taskId"))
            );
        }
        assert_eq!(peer.get(&task.id).await.unwrap(), task);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn append_joins_and_its_absence_replaces() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            let part = |text: &str| {
                Artifact::new(ArtifactId::new("a").expect("an id"), vec![Part::text(text)])
            };
            turn.artifact_update(part("lost"), false, false).await?;
            turn.artifact_update(part("one"), false, false).await?;
            turn.artifact_update(part("two"), true, false).await?;
            turn.artifact_update(part("three"), true, true).await?;
            turn.complete()
        });
        let house = House::of(world, agent);
        let task = house.peer(world.dialect).say("go").await;
        assert_eq!(task.artifacts.len(), 1);
        let texts: Vec<_> = task.artifacts[0]
            .parts
            .iter()
            .filter_map(Part::as_text)
            .collect();
        assert_eq!(texts, ["one", "two", "three"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_after_the_end_leaves_the_task_as_it_ended() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.status(TaskState::Completed, None).await?;
            if turn.message().text() == "late" {
                tokio::task::yield_now().await;
            }
            let late = turn.text_artifact("late", "late").await;
            assert!(matches!(late, Err(AgentError::Fault(_))));
            late?;
            turn.fail("never seen")
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for text in ["at once", "late"] {
            let task = peer.say(text).await;
            assert_eq!(task.status.state, TaskState::Completed);
            assert_eq!(task.artifacts, []);
            assert_eq!(peer.get(&task.id).await.unwrap(), task);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_reaches_the_agent_and_is_not_undone_by_what_it_does_later() {
    everywhere(async |world: World| {
        let (watching, told, gate, after) = (Gate::new(), Gate::new(), Gate::new(), Gate::new());
        let (watch, tell, wait, done) =
            (watching.clone(), told.clone(), gate.clone(), after.clone());
        let agent = script(move |turn| {
            let (watch, tell, wait, done) =
                (watch.clone(), tell.clone(), wait.clone(), done.clone());
            async move {
                turn.working().await?;
                assert!(!turn.is_canceled());
                watch.open();
                turn.canceled().await;
                tell.open();
                // What it does next comes after the task was canceled.
                turn.status(TaskState::Canceled, None).await?;
                wait.pass().await;
                let late = turn.text_artifact("late", "late").await;
                assert!(late.is_err());
                done.open();
                turn.complete()
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("go"))).await.unwrap();
        watching.reached().await;
        let canceled = peer.cancel(&task.id).await.unwrap();
        assert_eq!(canceled.status.state, TaskState::Canceled);
        told.reached().await;
        gate.open();
        after.reached().await;
        assert_eq!(peer.get(&task.id).await.unwrap(), canceled);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_task_is_never_evicted() {
    let gate = Gate::new();
    let wait = gate.clone();
    let agent = script(move |turn| {
        let wait = wait.clone();
        async move {
            if turn.message().text() == "slow" {
                turn.working().await?;
                wait.pass().await;
            }
            turn.complete()
        }
    });
    let store = Arc::new(MemoryStore::new());
    let state = State::new();
    let house = Setting::new(StoreKind::Memory)
        .store(store.clone())
        .serve(agent, &state);
    let peer = house.peer(World::ALL[1].dialect);
    let slow = peer.send(asking::at_once(send("slow"))).await.unwrap();
    let quick = peer.say("quick").await;
    let policy = Retention {
        finished_before: None,
        entries_before: None,
        max_finished: Some(0),
    };
    while store.prune(&policy, 100).await.unwrap().tasks > 0 {}
    assert_eq!(peer.get(&quick.id).await.unwrap_err().code, -32001);
    let mut stream = peer.subscribe(&slow.id).await;
    gate.open();
    assert_eq!(
        stream.rest().await.last().unwrap().brief(),
        "status Completed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_completes_nothing_and_a_restart_forgets_nothing() {
    let state = State::new();
    let agent = || {
        script(|turn| async move {
            match turn.message().text().as_str() {
                "hang" => {
                    turn.text_artifact("half", "half").await?;
                    turn.canceled().await;
                    turn.cancel()
                }
                "ask" => turn.ask("what?"),
                text => turn.complete_with(text),
            }
        })
    };
    let world = World::ALL[5];
    let house = Setting::new(StoreKind::Sqlite).serve(agent(), &state);
    let peer = house.peer(world.dialect);
    let done = peer.say("done").await;
    let asked = peer.say("ask").await;
    let mut hanging = peer.stream_send(send("hang")).await;
    let hanging = {
        let task = hanging.frame().await.task();
        assert_eq!(hanging.frame().await.brief(), "artifact half");
        task
    };
    house.die();

    let house = Setting::new(StoreKind::Sqlite).serve(agent(), &state);
    let peer = house.peer(world.dialect);
    assert_eq!(peer.get(&done.id).await.unwrap(), done);
    assert_eq!(peer.get(&asked.id).await.unwrap(), asked);
    let lost = peer.get(&hanging.id).await.unwrap();
    assert_eq!(lost.status.state, TaskState::Failed);
    assert!(
        lost.status
            .message
            .unwrap()
            .text()
            .contains("stopped while this task was running")
    );
    assert_eq!(lost.artifacts.len(), 1);
    assert_eq!(lost.history, hanging.history);
    // Life goes on.
    let on = peer
        .send(asking::to_task(send("go on"), &asked.id))
        .await
        .unwrap();
    assert_eq!(on.status.state, TaskState::Completed);
    assert_eq!(peer.list(ListTasks::default()).await.unwrap().total_size, 3);
}
