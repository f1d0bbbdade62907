//! What an agent is to nuncio: something that runs turns.

use crate::turn::{Turn, TurnResult};
use async_trait::async_trait;
use nuncio_core::Fault;

/// An agent. One value serves all its tasks at once.
///
/// A turn begins with a message and ends when [`run`](Self::run) returns. In between the agent
/// reports what it does through its [`Turn`]; what it reports is committed before anyone sees it.
/// The turn runs apart from every connection: a client that goes away stops nothing.
///
/// ```
/// use nuncio_server::{Agent, Turn, TurnResult, async_trait};
///
/// struct Echo;
///
/// #[async_trait]
/// impl Agent for Echo {
///     async fn run(&self, turn: Turn) -> TurnResult {
///         let text = turn.message().text();
///         turn.text_artifact("echo", text).await?;
///         turn.complete()
///     }
/// }
/// ```
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn. The way to end it is to return what one of the ending methods of
    /// [`Turn`] gives, such as [`Turn::complete`] or [`Turn::ask`].
    ///
    /// # Errors
    /// An [`AgentError`] fails the task, with its text as the reason the caller reads. A panic
    /// fails the task too, without telling the caller why.
    async fn run(&self, turn: Turn) -> TurnResult;

    /// Whether a turn that was lost with the process can be run again from the task as it
    /// stands ([`Turn::is_resumed`] tells). Otherwise such a task fails, saying so.
    fn resumes(&self) -> bool {
        false
    }
}

#[async_trait]
impl<A: Agent + ?Sized> Agent for std::sync::Arc<A> {
    async fn run(&self, turn: Turn) -> TurnResult {
        (**self).run(turn).await
    }

    fn resumes(&self) -> bool {
        (**self).resumes()
    }
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The agent could not do its work; the text is the reason the caller reads.
    #[error("{0}")]
    Failed(String),
    /// The agent broke a rule of the protocol.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The task can take no more from this turn: it was canceled, or the store failed. Pass it
    /// on with `?`; it has been dealt with already.
    #[error("the turn is over")]
    TurnOver,
}

impl AgentError {
    /// The task failed for this reason, which the caller reads.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}
