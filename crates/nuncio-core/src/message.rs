//! Messages: one turn of talk, by a user or an agent.

use crate::{ContextId, MessageId, Metadata, Part, TaskId};

/// Who says a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The client's side.
    User,
    /// The server's side.
    Agent,
}

/// A message (A2A 1.0 §4.1.4).
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Made by the sender.
    pub id: MessageId,
    /// The conversation it belongs to.
    pub context_id: Option<ContextId>,
    /// The task it belongs to.
    pub task_id: Option<TaskId>,
    /// Who says it.
    pub role: Role,
    /// What is said; never empty on the wire.
    pub parts: Vec<Part>,
    /// Extra facts.
    pub metadata: Metadata,
    /// URIs of the extensions that had a part in it.
    pub extensions: Vec<String>,
    /// Other tasks it refers to.
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
    /// A message with no task and no context yet.
    #[must_use]
    pub fn new(id: MessageId, role: Role, parts: Vec<Part>) -> Self {
        Self {
            id,
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: Metadata::new(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// All its text, one part after the other, a newline between them.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}
