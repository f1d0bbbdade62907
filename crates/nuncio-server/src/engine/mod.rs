//! The engine: the operations on tasks, free of any binding and any version.
//!
//! It takes who is calling as a verified [`Principal`] and never as part of a request. What it
//! answers is a model value, a follower of a log, or an [`EngineError`].

mod fold;
mod follow;
mod live;
mod recover;
mod run;
mod send;
mod shared;
mod subscribe;
mod tasks;

pub(crate) use follow::{Follower, Step};
pub(crate) use live::{Live, Logged, Shown};
pub(crate) use send::Idempotency;

use crate::{agent::Agent, limits::Limits};
use nuncio_core::{AgentCard, Fault, ProtocolError};
use nuncio_store::{Store, StoreError};
use shared::Shared;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

/// What goes wrong in an operation, before any version spells it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("no such task")]
    NotFound,
    #[error("the task has ended")]
    NotCancelable,
    #[error("the task has ended and takes no more messages")]
    TaskEnded,
    #[error("a media type that is not supported")]
    ContentType(String),
    #[error(transparent)]
    Agent(Fault),
    #[error(transparent)]
    Request(ProtocolError),
    /// No room; says of what there is too much.
    #[error("{0}")]
    Busy(&'static str),
    #[error(transparent)]
    Store(StoreError),
}

impl EngineError {
    /// No more turns can run.
    const BUSY: Self = Self::Busy("The server is running as many turns as it may");
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            other => Self::Store(other),
        }
    }
}

impl From<ProtocolError> for EngineError {
    fn from(error: ProtocolError) -> Self {
        Self::Request(error)
    }
}

/// The operations on tasks.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    card: Arc<AgentCard>,
}

impl Engine {
    /// An engine for an agent that takes and makes what `card` says.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        agent: Arc<dyn Agent>,
        card: Arc<AgentCard>,
        limits: Limits,
    ) -> Self {
        Self {
            shared: Shared::new(store, agent, limits),
            card,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn turn_permit(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        match Arc::clone(&self.shared.turns).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => Err(EngineError::BUSY),
        }
    }
}
