//! Agents that break the rules, crash, hang, flood or give up.

use crate::harness::{Gate, House, World, asking, everywhere, script, send};
use nuncio_server::{
    AgentError, Turn, TurnResult, Update,
    core::{
        Artifact, ArtifactId, ArtifactUpdate, ContextId, Metadata, Part, StatusUpdate, TaskId,
        TaskState, TaskStatus, Timestamp,
    },
};
use std::time::Duration;

fn artifact(turn: &Turn, append: bool) -> ArtifactUpdate {
    ArtifactUpdate {
        task_id: turn.task_id().clone(),
        context_id: turn.context_id().clone(),
        artifact: Artifact::new(ArtifactId::new("a").expect("an id"), vec![Part::text("a")]),
        append,
        last_chunk: true,
        metadata: Metadata::new(),
    }
}

fn status(turn: &Turn, state: TaskState) -> StatusUpdate {
    StatusUpdate {
        task_id: turn.task_id().clone(),
        context_id: turn.context_id().clone(),
        status: TaskStatus {
            state,
            message: None,
            timestamp: Some(Timestamp::now()),
        },
        metadata: Metadata::new(),
    }
}

/// Breaks the rule that its message names.
async fn break_a_rule(turn: Turn) -> TurnResult {
    match turn.message().text().as_str() {
        "message and task" => {
            turn.working().await?;
            turn.reply(vec![Part::text("and a message")])
        }
        "append to nothing" => {
            turn.emit(Update::Artifact(artifact(&turn, true))).await?;
            turn.complete()
        }
        "back to submitted" => {
            turn.working().await?;
            turn.status(TaskState::Submitted, None).await?;
            turn.complete()
        }
        "no state" => turn.end(TaskState::Unspecified, None),
        "another task's status" => {
            let mut update = status(&turn, TaskState::Working);
            update.task_id = TaskId::new("another").expect("an id");
            turn.emit(Update::Status(update)).await?;
            turn.complete()
        }
        "another context's artifact" => {
            let mut update = artifact(&turn, false);
            update.context_id = ContextId::new("another").expect("an id");
            turn.emit(Update::Artifact(update)).await?;
            turn.complete()
        }
        "nothing" => turn.leave(),
        "gives up for no reason" => Err(AgentError::TurnOver),
        "says nothing of its fault" => {
            // The fault counts even if the agent does not pass it on.
            let fault = turn.emit(Update::Artifact(artifact(&turn, true))).await;
            assert!(matches!(fault, Err(AgentError::Fault(_))));
            let more = turn.working().await;
            assert!(matches!(more, Err(AgentError::Fault(_))));
            turn.complete()
        }
        "flood" => loop {
            turn.text_artifact("more", "more").await?;
        },
        "fat" => {
            turn.text_artifact("fat", "x".repeat(100_000)).await?;
            turn.complete()
        }
        "fine" => turn.ask("again?"),
        other => panic!("not told about: {other}"),
    }
}

const RULES: [(&str, &str); 11] = [
    ("message and task", "both a message and a task"),
    (
        "append to nothing",
        "appended to artifact \"a\", which the task does not have",
    ),
    ("back to submitted", "from Working to Submitted"),
    ("no state", "to Unspecified"),
    ("another task's status", "another task or context"),
    ("another context's artifact", "another task or context"),
    ("nothing", "ended its turn without an answer"),
    ("gives up for no reason", "ended its turn without an answer"),
    ("says nothing of its fault", "appended to artifact"),
    ("flood", "the limit of 50 updates in one turn"),
    ("fat", "the limit of 65536 bytes in one turn"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_rule_is_an_invalid_agent_response_and_a_failed_task_that_says_why() {
    everywhere(async |world: World| {
        let house = House::with(world, script(break_a_rule), |setting| {
            setting.limits(|limits| {
                limits.turn_updates = 50;
                limits.turn_bytes = 64 << 10;
            })
        });
        let peer = house.peer(world.dialect);
        for (rule, says) in RULES {
            // In the first turn of a task, and in a later one.
            let refused = peer.send(send(rule)).await.unwrap_err();
            assert_eq!(refused.code, -32006, "{rule}");
            assert!(
                refused.message.contains(says),
                "{rule}: {}",
                refused.message
            );
            let task = peer.say("fine").await;
            let refused = peer
                .send(asking::to_task(send(rule), &task.id))
                .await
                .unwrap_err();
            assert_eq!(refused.code, -32006, "{rule}");
            let page = peer.list(Default::default()).await.unwrap();
            for task in &page.tasks[..2] {
                assert_eq!(task.status.state, TaskState::Failed, "{rule}");
                let why = task.status.message.as_ref().unwrap().text();
                assert!(why.contains(says), "{rule}: {why}");
            }
            assert_eq!(page.tasks[0].id, task.id);
            // A stream shows the failed task; the fault is not the caller's.
            let told = peer.stream_send(send(rule)).await.rest().await;
            let last = told.last().unwrap().status();
            assert_eq!(last.status.state, TaskState::Failed, "{rule}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_fails_its_own_task_and_does_not_say_how() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            match turn.message().text().as_str() {
                "before" => panic!("the secret cause"),
                "after" => {
                    turn.text_artifact("half", "half").await?;
                    tokio::task::yield_now().await;
                    panic!("the secret cause")
                }
                _ => turn.complete(),
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for (text, artifacts) in [("before", 0), ("after", 1)] {
            let task = peer.say(text).await;
            assert_eq!(task.status.state, TaskState::Failed);
            assert_eq!(task.status.message.unwrap().text(), "The agent crashed.");
            assert_eq!(task.artifacts.len(), artifacts);
        }
        assert_eq!(peer.say("fine").await.status.state, TaskState::Completed);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_takes_too_long_fails() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            if turn.message().text() == "late" {
                turn.working().await?;
            }
            std::future::pending().await
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.turn = Duration::from_millis(50))
        });
        let peer = house.peer(world.dialect);
        for text in ["late", "silent"] {
            let task = peer.say(text).await;
            assert_eq!(task.status.state, TaskState::Failed);
            let why = task.status.message.unwrap().text();
            assert_eq!(why, "The agent did not finish within 0.05 s.");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_own_reason_reaches_the_caller() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            match turn.message().text().as_str() {
                "error" => Err(AgentError::failed("no paper")),
                "fail" => turn.fail("no ink"),
                _ => turn.reject("no time"),
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for (text, state, why) in [
            ("error", TaskState::Failed, "no paper"),
            ("fail", TaskState::Failed, "no ink"),
            ("reject", TaskState::Rejected, "no time"),
        ] {
            let task = peer.say(text).await;
            assert_eq!(task.status.state, state);
            assert_eq!(task.status.message.unwrap().text(), why);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_far_ahead_of_the_store_waits_for_it() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            for n in 0..500 {
                turn.text_artifact("n", n.to_string()).await?;
            }
            turn.complete()
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.uncommitted_updates = 3)
        });
        let task = house.peer(world.dialect).say("go").await;
        assert_eq!(task.artifacts.len(), 500);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_agent_that_hangs_does_not_hold_the_others_up() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                if turn.message().text() == "hang" {
                    turn.working().await?;
                    wait.pass().await;
                }
                turn.complete()
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for _ in 0..20 {
            peer.send(asking::at_once(send("hang"))).await.unwrap();
        }
        assert_eq!(peer.say("quick").await.status.state, TaskState::Completed);
        gate.open_wide();
    })
    .await;
}
