//! The fold that makes a task of its log, against every short log.

use crate::samples::id;
use nuncio_core::wire::stored;
use nuncio_core::{
    Artifact, ArtifactUpdate, Fault, LogEvent, Message, Metadata, Part, Role, StatusUpdate, Task,
    TaskOutline, TaskState, TaskStatus, Timestamp,
};
use proptest::prelude::*;

fn message(n: u32, role: Role) -> Message {
    Message::new(
        id(&format!("m-{n}")),
        role,
        vec![Part::text(format!("text {n}"))],
    )
}

fn born() -> Task {
    let at = Timestamp::from_millis(0);
    Task::submitted(id("t-1"), id("c-1"), message(0, Role::User), at)
}

/// An event of this task or, now and then, of another. The number makes it distinct.
fn event() -> impl Strategy<Value = LogEvent> {
    let whose = prop_oneof![20 => Just("t-1"), 1 => Just("t-2")];
    let state = prop_oneof![
        6 => Just(TaskState::Working),
        1 => prop::sample::select(&TaskState::ALL[..]),
    ];
    let n = any::<u32>();
    prop_oneof![
        3 => n.prop_map(|n| LogEvent::Message(message(n, Role::User))),
        8 => (whose.clone(), state, n, any::<bool>()).prop_map(|(task, state, n, says)| {
            LogEvent::Status(StatusUpdate {
                task_id: id(task),
                context_id: id("c-1"),
                status: TaskStatus {
                    state,
                    message: says.then(|| message(n, Role::Agent)),
                    timestamp: Some(Timestamp::from_millis(n.into())),
                },
                metadata: Metadata::new(),
            })
        }),
        8 => (whose, 0..3_u8, n, any::<bool>(), any::<bool>()).prop_map(|(task, a, n, append, last)| {
            let parts = vec![Part::text(format!("chunk {n}"))];
            LogEvent::Artifact(ArtifactUpdate {
                task_id: id(task),
                context_id: id("c-1"),
                artifact: Artifact::new(id(&format!("a-{a}")), parts),
                append,
                last_chunk: last,
                metadata: Metadata::new(),
            })
        }),
        1 => Just(LogEvent::Created(born())),
    ]
}

fn log() -> impl Strategy<Value = Vec<LogEvent>> {
    prop::collection::vec(event(), 0..24)
}

proptest! {
    #[test]
    fn the_first_terminal_state_wins(log in log()) {
        let mut task = born();
        let mut end: Option<Task> = None;
        for event in &log {
            let outcome = task.apply(event);
            if let Some(end) = &end {
                prop_assert_eq!(outcome, Err(Fault::AfterEnd(end.status.state)));
                prop_assert_eq!(&task, end);
            } else if task.status.state.is_terminal() {
                end = Some(task.clone());
            }
        }
    }

    #[test]
    fn a_fault_is_foreseen_and_changes_nothing(log in log()) {
        let mut task = born();
        let mut outline = TaskOutline::from(&task);
        for event in &log {
            let before = task.clone();
            let foreseen = task.check(event);
            prop_assert_eq!(&outline.apply(event), &foreseen);
            prop_assert_eq!(&task.apply(event), &foreseen);
            prop_assert_eq!(outline.state(), task.status.state);
            if foreseen.is_err() {
                prop_assert_eq!(&task, &before);
            }
        }
    }

    #[test]
    fn chunks_join_in_order_and_a_new_artifact_replaces(log in log()) {
        let mut task = born();
        let mut expected: Vec<(nuncio_core::ArtifactId, Vec<Part>)> = Vec::new();
        for event in &log {
            let applied = task.apply(event).is_ok();
            if let (LogEvent::Artifact(update), true) = (event, applied) {
                let known = expected.iter_mut().find(|(id, _)| *id == update.artifact.id);
                let parts = update.artifact.parts.clone();
                match (known, update.append) {
                    (Some((_, all)), true) => all.extend(parts),
                    (Some((_, all)), false) => *all = parts,
                    (None, append) => {
                        prop_assert!(!append);
                        expected.push((update.artifact.id.clone(), parts));
                    }
                }
            }
        }
        let made: Vec<_> =
            task.artifacts.into_iter().map(|artifact| (artifact.id, artifact.parts)).collect();
        prop_assert_eq!(made, expected);
    }

    #[test]
    fn everything_said_stays_in_the_order_it_was_said(log in log()) {
        let mut task = born();
        let mut said = task.history.clone();
        for event in &log {
            if task.apply(event).is_ok() {
                match event {
                    LogEvent::Message(message) => said.push(message.clone()),
                    LogEvent::Status(update) => said.extend(update.status.message.clone()),
                    LogEvent::Artifact(_) | LogEvent::Created(_) => {}
                }
            }
        }
        let mut kept = task.history;
        kept.extend(task.status.message);
        prop_assert_eq!(kept, said);
    }

    #[test]
    fn a_task_folded_from_its_stored_log_is_the_task(log in log()) {
        let mut task = born();
        let mut entries = vec![stored::encode_event(&LogEvent::Created(task.clone()))];
        for event in &log {
            if task.apply(event).is_ok() {
                entries.push(stored::encode_event(event));
            }
        }
        let mut entries = entries.iter().map(|bytes| stored::decode_event(bytes).unwrap());
        let Some(LogEvent::Created(mut folded)) = entries.next() else { panic!("no first entry") };
        for entry in entries {
            folded.apply(&entry).unwrap();
        }
        let checkpoint = stored::decode_task(&stored::encode_task(&task)).unwrap();
        prop_assert_eq!(&folded, &task);
        prop_assert_eq!(&checkpoint, &task);
    }
}
