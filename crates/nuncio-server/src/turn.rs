//! A turn, as the agent that runs it sees it.

use crate::{agent::AgentError, engine::Live};
use nuncio_core::{
    Artifact, ArtifactId, ArtifactUpdate, ContextId, LogEvent, Message, MessageId, Metadata, Part,
    Principal, Role, StatusUpdate, Task, TaskId, TaskState, TaskStatus, Timestamp,
};
use std::sync::Arc;

/// What a turn is about.
#[derive(Debug, Clone)]
pub(crate) struct TurnRequest {
    pub(crate) message: Message,
    pub(crate) metadata: Metadata,
    pub(crate) accepted_output_modes: Vec<String>,
    pub(crate) principal: Principal,
    pub(crate) resumed: bool,
}

/// How a turn ends: what [`Agent::run`](crate::Agent::run) returns.
pub type TurnResult = Result<Outcome, AgentError>;

/// The end of a turn, made by the ending methods of [`Turn`]. Since they take the turn, nothing
/// can be said after the end.
#[derive(Debug)]
pub struct Outcome(pub(crate) End);

#[derive(Debug)]
pub(crate) enum End {
    Status {
        state: TaskState,
        message: Option<Message>,
    },
    Message(Message),
    AsItStands,
}

/// One run of an agent: the message to answer, and the ways to answer it.
///
/// Reports ([`working`](Self::working), [`artifact`](Self::artifact), [`chunks`](Self::chunks), …)
/// return as soon as the report is queued for the store; they wait only where the agent is far
/// ahead of it. Nobody sees a report before it is committed.
#[derive(Debug)]
pub struct Turn {
    live: Arc<Live>,
    number: u64,
    request: TurnRequest,
}

impl Turn {
    pub(crate) fn new(live: Arc<Live>, number: u64, request: TurnRequest) -> Self {
        Self {
            live,
            number,
            request,
        }
    }

    /// The message to answer.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.request.message
    }

    /// The task's id.
    #[must_use]
    pub fn task_id(&self) -> &TaskId {
        self.live.id()
    }

    /// The id of the conversation the task belongs to.
    #[must_use]
    pub fn context_id(&self) -> &ContextId {
        self.live.context_id()
    }

    /// The task as committed so far: its history, its artifacts, where it stands. Before the
    /// first report of its first turn, the task as it would be created.
    #[must_use]
    pub fn task(&self) -> Task {
        self.live.task()
    }

    /// Who sent the message.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.request.principal
    }

    /// The metadata of the request (not of the message).
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.request.metadata
    }

    /// Media types the caller can use; empty means any.
    #[must_use]
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.request.accepted_output_modes
    }

    /// Whether this turn was lost with its process and is run again.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.request.resumed
    }

    /// Whether the task is to be canceled; see [`canceled`](Self::canceled).
    #[must_use]
    pub fn is_canceled(&self) -> bool {
        self.live.is_cancel_requested(self.number)
    }

    /// Resolves when the task is to be canceled. An agent that watches for it, by this or by
    /// [`is_canceled`](Self::is_canceled) or [`next_message`](Self::next_message), is given a
    /// grace time to end by itself; then, and any other agent at once, it is dropped at its next
    /// `await`.
    pub async fn canceled(&self) {
        self.live.cancel_requested(self.number).await;
    }

    /// Takes the next message that reached the task during this turn; waits for one if there is
    /// none. Messages that are not taken are answered by turns of their own. Where this future is
    /// dropped before it resolves, as in a `select!`, no message is lost.
    ///
    /// # Errors
    /// [`AgentError::TurnOver`] when the task is to be canceled.
    pub async fn next_message(&mut self) -> Result<&Message, AgentError> {
        self.request = self
            .live
            .take_message(self.number)
            .await
            .ok_or(AgentError::TurnOver)?;
        Ok(&self.request.message)
    }

    /// Reports that the task is at work.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn working(&self) -> Result<(), AgentError> {
        self.status(TaskState::Working, None).await
    }

    /// Reports that the task is at work, and what it is doing.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn progress(&self, text: impl Into<String> + Send) -> Result<(), AgentError> {
        let message = self.agent_message(vec![Part::text(text)]);
        self.status(TaskState::Working, Some(message)).await
    }

    /// Reports a whole artifact. One of the same id is replaced.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), AgentError> {
        self.artifact_update(artifact, false, true).await
    }

    /// Reports a whole artifact of text, with a new id.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn text_artifact(
        &self,
        name: &str,
        text: impl Into<String> + Send,
    ) -> Result<(), AgentError> {
        let artifact = Artifact::new(new_artifact_id(), vec![Part::text(text)]).named(name);
        self.artifact(artifact).await
    }

    /// Begins an artifact that is reported in chunks.
    #[must_use]
    pub fn chunks(&self, name: &str) -> Chunks<'_> {
        Chunks {
            turn: self,
            id: new_artifact_id(),
            name: Some(name.to_owned()),
            begun: false,
        }
    }

    /// Reports an event as it is: the way for agents that speak A2A themselves. Artifact and
    /// status updates must name this turn's task and context, or leave it to
    /// [`artifact`](Self::artifact) and its like.
    ///
    /// # Errors
    /// [`AgentError::Fault`] where the event breaks the protocol's rules: the turn has then
    /// failed. [`AgentError::TurnOver`] where the task takes no more from this turn.
    pub async fn emit(&self, event: Update) -> Result<(), AgentError> {
        let event = match event {
            Update::Status(update) => LogEvent::Status(update),
            Update::Artifact(update) => LogEvent::Artifact(update),
        };
        self.live.emit(self.number, event).await
    }

    /// Reports a status.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn status(
        &self,
        state: TaskState,
        message: Option<Message>,
    ) -> Result<(), AgentError> {
        self.live
            .emit(self.number, self.live.status_event(state, message))
            .await
    }

    /// Reports an artifact or a chunk of one.
    ///
    /// # Errors
    /// See [`emit`](Self::emit).
    pub async fn artifact_update(
        &self,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    ) -> Result<(), AgentError> {
        let update = ArtifactUpdate {
            task_id: self.task_id().clone(),
            context_id: self.context_id().clone(),
            artifact,
            append,
            last_chunk,
            metadata: Metadata::new(),
        };
        self.live
            .emit(self.number, LogEvent::Artifact(update))
            .await
    }

    /// A message of the agent's within this task, with a new id.
    #[must_use]
    pub fn agent_message(&self, parts: Vec<Part>) -> Message {
        self.live.agent_message(parts)
    }

    /// Ends the task: done.
    ///
    /// # Errors
    /// None; a `Result` so that it can be what `run` returns.
    pub fn complete(self) -> TurnResult {
        self.end(TaskState::Completed, None)
    }

    /// Ends the task: done, with a last word.
    ///
    /// # Errors
    /// None.
    pub fn complete_with(self, text: impl Into<String>) -> TurnResult {
        let message = self.agent_message(vec![Part::text(text)]);
        self.end(TaskState::Completed, Some(message))
    }

    /// Ends the turn with a question: the task waits for the user's next message.
    ///
    /// # Errors
    /// None.
    pub fn ask(self, question: impl Into<String>) -> TurnResult {
        let message = self.agent_message(vec![Part::text(question)]);
        self.end(TaskState::InputRequired, Some(message))
    }

    /// Ends the turn until the user has authenticated as the text says.
    ///
    /// # Errors
    /// None.
    pub fn require_auth(self, how: impl Into<String>) -> TurnResult {
        let message = self.agent_message(vec![Part::text(how)]);
        self.end(TaskState::AuthRequired, Some(message))
    }

    /// Ends the task: not taken on, for this reason.
    ///
    /// # Errors
    /// None.
    pub fn reject(self, reason: impl Into<String>) -> TurnResult {
        let message = self.agent_message(vec![Part::text(reason)]);
        self.end(TaskState::Rejected, Some(message))
    }

    /// Ends the task: failed, for this reason. The same as returning
    /// [`AgentError::failed`].
    ///
    /// # Errors
    /// None.
    pub fn fail(self, reason: impl Into<String>) -> TurnResult {
        let message = self.agent_message(vec![Part::text(reason)]);
        self.end(TaskState::Failed, Some(message))
    }

    /// Ends the task as canceled: the answer to [`canceled`](Self::canceled).
    ///
    /// # Errors
    /// None.
    pub fn cancel(self) -> TurnResult {
        self.end(TaskState::Canceled, None)
    }

    /// Answers with a bare message instead of a task. Not together with reports: a turn is one
    /// or the other. Where the caller has been given a task already, the message completes it.
    ///
    /// # Errors
    /// None.
    pub fn reply(self, parts: Vec<Part>) -> TurnResult {
        let message = self.agent_message(parts);
        self.reply_with(message)
    }

    /// Answers like [`reply`](Self::reply), with a message that is made already: the way for
    /// agents that speak A2A themselves. It keeps all it has, but for the ids of its task and
    /// context and its role, which are given.
    ///
    /// # Errors
    /// None.
    pub fn reply_with(self, mut message: Message) -> TurnResult {
        message.task_id = None;
        message.context_id = Some(self.context_id().clone());
        message.role = Role::Agent;
        Ok(Outcome(End::Message(message)))
    }

    /// Ends the turn and leaves the task as it stands: in whatever state was reported last. It
    /// can be continued by a further message.
    ///
    /// # Errors
    /// None.
    pub fn leave(self) -> TurnResult {
        Ok(Outcome(End::AsItStands))
    }

    /// Ends the turn with any state and message.
    ///
    /// # Errors
    /// None here; a state that can't follow the one before is a [`Fault`](nuncio_core::Fault) of the turn.
    pub fn end(self, state: TaskState, message: Option<Message>) -> TurnResult {
        Ok(Outcome(End::Status { state, message }))
    }
}

/// An update that an agent emits as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A status.
    Status(StatusUpdate),
    /// An artifact or a chunk of one.
    Artifact(ArtifactUpdate),
}

/// An artifact that is reported in chunks; see [`Turn::chunks`].
#[derive(Debug)]
pub struct Chunks<'t> {
    turn: &'t Turn,
    id: ArtifactId,
    name: Option<String>,
    begun: bool,
}

impl Chunks<'_> {
    /// Reports a chunk that others follow.
    ///
    /// # Errors
    /// See [`Turn::emit`].
    pub async fn send(&mut self, part: Part) -> Result<(), AgentError> {
        self.report(part, false).await
    }

    /// Reports the last chunk.
    ///
    /// # Errors
    /// See [`Turn::emit`].
    pub async fn finish(mut self, part: Part) -> Result<(), AgentError> {
        self.report(part, true).await
    }

    async fn report(&mut self, part: Part, last: bool) -> Result<(), AgentError> {
        let mut artifact = Artifact::new(self.id.clone(), vec![part]);
        artifact.name = self.name.take();
        let append = std::mem::replace(&mut self.begun, true);
        self.turn.artifact_update(artifact, append, last).await
    }
}

/// Makes a status event of a task.
pub(crate) fn status_event(
    task_id: &TaskId,
    context_id: &ContextId,
    state: TaskState,
    message: Option<Message>,
) -> LogEvent {
    LogEvent::Status(StatusUpdate {
        task_id: task_id.clone(),
        context_id: context_id.clone(),
        status: TaskStatus {
            state,
            message,
            timestamp: Some(Timestamp::now()),
        },
        metadata: Metadata::new(),
    })
}

/// Makes a message of the agent's in a task.
pub(crate) fn agent_message(task_id: &TaskId, context_id: &ContextId, parts: Vec<Part>) -> Message {
    let mut message = Message::new(new_message_id(), Role::Agent, parts);
    message.task_id = Some(task_id.clone());
    message.context_id = Some(context_id.clone());
    message
}

/// A UUIDv7: ids sort by the time they were made, which keeps an index's inserts together.
pub(crate) fn new_uuid() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn new_message_id() -> MessageId {
    MessageId::new(new_uuid()).expect("a UUID is a valid id")
}

fn new_artifact_id() -> ArtifactId {
    ArtifactId::new(new_uuid()).expect("a UUID is a valid id")
}
