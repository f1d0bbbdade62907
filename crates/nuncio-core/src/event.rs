//! Events: what a stream carries, and what a task's log holds.

use crate::{Artifact, ContextId, Message, Metadata, Task, TaskId, TaskStatus};

/// What a stream sends (A2A 1.0 §3.2.3 `StreamResponse`).
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The task as it stands.
    Task(Task),
    /// A bare message: the whole answer, with no task behind it.
    Message(Message),
    /// A change of status.
    Status(StatusUpdate),
    /// A new artifact or a chunk of one.
    Artifact(ArtifactUpdate),
}

/// A task's status changed (A2A 1.0 §4.2.1).
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// The new status.
    pub status: TaskStatus,
    /// Laid over the task's metadata.
    pub metadata: Metadata,
}

/// A task made an artifact, or a further chunk of one (A2A 1.0 §4.2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// The artifact or the chunk.
    pub artifact: Artifact,
    /// Whether the parts go behind those already there; otherwise they replace the artifact.
    pub append: bool,
    /// Whether no more chunks follow.
    pub last_chunk: bool,
    /// Extra facts about the event; not kept in the task.
    pub metadata: Metadata,
}

/// One entry of a task's log. The task is what [`Task::apply`] makes of its entries in order.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEvent {
    /// The task began as this. Always entry 1, and only that.
    Created(Task),
    /// A user's further message reached the task.
    Message(Message),
    /// The status changed.
    Status(StatusUpdate),
    /// An artifact or a chunk of one came.
    Artifact(ArtifactUpdate),
}
