//! The task, and the fold that makes one out of its log.

use crate::{
    Artifact, ArtifactId, ContextId, LogEvent, Message, Metadata, TaskId, TaskState, Timestamp,
};
use std::collections::HashSet;

/// A unit of work (A2A 1.0 §4.1.1).
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Made by the server.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// Where it stands.
    pub status: TaskStatus,
    /// What it made so far.
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    pub history: Vec<Message>,
    /// Extra facts.
    pub metadata: Metadata,
}

/// Where a task stands (A2A 1.0 §4.1.2).
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the agent says about it.
    pub message: Option<Message>,
    /// Since when.
    pub timestamp: Option<Timestamp>,
}

/// How much of a task an answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskView {
    /// The last so many messages of the history; `None` for all of it.
    pub history: Option<u32>,
    /// Whether artifacts are shown.
    pub artifacts: bool,
}

impl TaskView {
    /// All there is.
    pub const WHOLE: Self = Self {
        history: None,
        artifacts: true,
    };
}

/// What an agent did that the protocol does not allow. Each is answered as
/// `InvalidAgentResponse` and fails the turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A bare message and a task's update in one turn.
    #[error("the agent answered with both a message and a task: a turn is one or the other")]
    MessageAndTask,
    /// A chunk for an artifact that the task does not have.
    #[error(
        "the agent appended to artifact {0:?}, which the task does not have: send it first without append"
    )]
    UnknownArtifact(ArtifactId),
    /// An update after the task had ended.
    #[error("the agent sent an update after the task had ended as {0:?}")]
    AfterEnd(TaskState),
    /// A status that can't follow the one before.
    #[error("the agent moved the task from {from:?} to {to:?}, which no task may do")]
    IllegalState {
        /// Where the task was.
        from: TaskState,
        /// Where the agent put it.
        to: TaskState,
    },
    /// An update that names another task.
    #[error("the agent sent an update for another task or context")]
    WrongTask,
    /// The turn ended and had said nothing at all.
    #[error("the agent ended its turn without an answer")]
    NoAnswer,
    /// More updates or bytes in one turn than the server's limits allow.
    #[error("the agent exceeded the limit of {limit} {what} in one turn")]
    Flood {
        /// The limit in force.
        limit: u64,
        /// What it counts.
        what: &'static str,
    },
}

impl Task {
    /// A task just taken in, with its first message in the history.
    #[must_use]
    pub fn submitted(id: TaskId, context_id: ContextId, message: Message, at: Timestamp) -> Self {
        Self {
            id,
            context_id,
            status: TaskStatus {
                state: TaskState::Submitted,
                message: None,
                timestamp: Some(at),
            },
            artifacts: Vec::new(),
            history: vec![message],
            metadata: Metadata::new(),
        }
    }

    /// Whether `event` may be the next entry of this task's log.
    ///
    /// # Errors
    /// The [`Fault`] that it would be.
    pub fn check(&self, event: &LogEvent) -> Result<(), Fault> {
        let has = |id: &ArtifactId| self.artifacts.iter().rev().any(|a| a.id == *id);
        check(&self.id, &self.context_id, self.status.state, has, event)
    }

    /// Makes `event` the next entry: the task becomes what it says.
    ///
    /// A status's message moves to the history when something newer is said; a chunk with
    /// `append` joins its artifact; an artifact without it replaces the one of that id.
    ///
    /// # Errors
    /// The [`Fault`] that [`check`](Self::check) finds; the task is then unchanged.
    pub fn apply(&mut self, event: &LogEvent) -> Result<(), Fault> {
        self.check(event)?;
        match event {
            LogEvent::Created(_) => {}
            LogEvent::Message(message) => {
                self.history.extend(self.status.message.take());
                self.history.push(message.clone());
            }
            LogEvent::Status(update) => {
                self.history.extend(self.status.message.take());
                self.status = update.status.clone();
                self.metadata.merge(update.metadata.clone());
            }
            LogEvent::Artifact(update) => {
                let known = self
                    .artifacts
                    .iter_mut()
                    .rev()
                    .find(|a| a.id == update.artifact.id);
                match (known, update.append) {
                    (Some(artifact), true) => artifact.join(update.artifact.clone()),
                    (Some(artifact), false) => *artifact = update.artifact.clone(),
                    (None, _) => self.artifacts.push(update.artifact.clone()),
                }
            }
        }
        Ok(())
    }

    /// The task as an answer shows it.
    #[must_use]
    pub fn view(&self, view: TaskView) -> Self {
        let keep = view.history.map_or(self.history.len(), |n| n as usize);
        let skip = self.history.len().saturating_sub(keep);
        Self {
            id: self.id.clone(),
            context_id: self.context_id.clone(),
            status: self.status.clone(),
            artifacts: if view.artifacts {
                self.artifacts.clone()
            } else {
                Vec::new()
            },
            history: self.history[skip..].to_vec(),
            metadata: self.metadata.clone(),
        }
    }
}

/// As much of a task as the rules need: what a writer keeps of entries that are not committed
/// yet, without a second copy of the task.
#[derive(Debug, Clone)]
pub struct TaskOutline {
    id: TaskId,
    context_id: ContextId,
    state: TaskState,
    artifacts: HashSet<ArtifactId>,
}

impl TaskOutline {
    /// The state after all entries so far.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.state
    }

    /// Takes note of the next entry, by the rules of [`Task::check`].
    ///
    /// # Errors
    /// The [`Fault`] that it would be; the outline is then unchanged.
    pub fn apply(&mut self, event: &LogEvent) -> Result<(), Fault> {
        let has = |id: &ArtifactId| self.artifacts.contains(id);
        check(&self.id, &self.context_id, self.state, has, event)?;
        match event {
            LogEvent::Status(update) => self.state = update.status.state,
            LogEvent::Artifact(update) => {
                if !self.artifacts.contains(&update.artifact.id) {
                    self.artifacts.insert(update.artifact.id.clone());
                }
            }
            LogEvent::Created(_) | LogEvent::Message(_) => {}
        }
        Ok(())
    }
}

impl From<&Task> for TaskOutline {
    fn from(task: &Task) -> Self {
        Self {
            id: task.id.clone(),
            context_id: task.context_id.clone(),
            state: task.status.state,
            artifacts: task.artifacts.iter().map(|a| a.id.clone()).collect(),
        }
    }
}

/// The rules of a log, for a task of this id and context, in this state, with these artifacts.
fn check(
    id: &TaskId,
    context_id: &ContextId,
    state: TaskState,
    has_artifact: impl Fn(&ArtifactId) -> bool,
    event: &LogEvent,
) -> Result<(), Fault> {
    if state.is_terminal() {
        return Err(Fault::AfterEnd(state));
    }
    match event {
        LogEvent::Created(_) => Err(Fault::WrongTask),
        LogEvent::Message(_) => Ok(()),
        LogEvent::Status(update) => {
            if update.task_id != *id || update.context_id != *context_id {
                return Err(Fault::WrongTask);
            }
            let to = update.status.state;
            if state.may_become(to) {
                Ok(())
            } else {
                Err(Fault::IllegalState { from: state, to })
            }
        }
        LogEvent::Artifact(update) => {
            if update.task_id != *id || update.context_id != *context_id {
                return Err(Fault::WrongTask);
            }
            if update.append && !has_artifact(&update.artifact.id) {
                return Err(Fault::UnknownArtifact(update.artifact.id.clone()));
            }
            Ok(())
        }
    }
}
