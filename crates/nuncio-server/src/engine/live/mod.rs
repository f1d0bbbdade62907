//! A task in use: what is committed, what is on its way to the store, and the turn at work.
//!
//! There is at most one [`Live`] per task in a process, while somebody runs, follows or changes
//! it; an idle task has none and costs no memory. All changes go through its lock, in order; one
//! flush at a time carries them to the store, in batches that grow while a commit is under way.
//!
//! Invariants:
//! - readers see [`State::task`] and [`State::recent`], which hold committed entries only;
//! - writers are checked against [`State::outline`], which runs ahead by what is uncommitted;
//! - after a terminal entry the outline refuses all others, so the first terminal state wins.
//!
//! The rejected alternative, a channel to a writer task for each task, costs two more wake-ups
//! per update and has to answer the same questions about order.

mod batch;
mod ending;
mod logged;
mod report;
mod state;

pub(crate) use ending::Ended;
pub(crate) use logged::{Logged, Shown, decode};

use super::{fold::fold, shared::Shared};
use crate::turn;
use nuncio_core::{
    ContextId, Fault, LogEvent, Message, Metadata, Owner, Part, StatusUpdate, Task, TaskId,
    TaskState,
};
use nuncio_store::{Entry, Fence, IdempotencyKey, IdempotencyRecord, StoreError, StoredTask};
use parking_lot::Mutex;
use state::State;
use std::{pin::pin, sync::Arc};
use tokio::sync::Notify;

/// How things stand for whoever waits for the answer to a message.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// The task rests or has ended.
    Task,
    /// The answer was a bare message.
    Reply(Arc<Message>),
    /// The agent broke the protocol.
    Fault(Fault),
    /// The store failed.
    Lost(StoreError),
}

/// How the first commit of a task went.
#[derive(Debug, Clone)]
pub(crate) enum Birth {
    /// It exists.
    Stored,
    /// It is not to exist: the idempotency key stands for another one.
    Duplicate(IdempotencyRecord),
    /// The turn ended without a task, with this message.
    Reply(Arc<Message>),
    /// The store failed.
    Lost(StoreError),
}

/// What a follower should do next.
#[derive(Debug)]
pub(crate) enum Followed {
    /// Read on: entries were committed.
    More,
    /// The answer is a bare message.
    Reply(Arc<Message>),
    /// All there will be has been read.
    End,
    /// The store failed.
    Lost(StoreError),
}

#[derive(Debug)]
pub(crate) struct Live {
    shared: Arc<Shared>,
    owner: Owner,
    id: TaskId,
    context_id: ContextId,
    state: Mutex<State>,
    /// Something was committed, or a turn ended.
    changed: Notify,
    /// Something happened that the turn may wait for: a message, a cancel, room in the queue.
    nudged: Notify,
}

impl Live {
    /// A task that is not stored yet. It becomes known with the agent's first report, or when
    /// [`give_birth`](Self::give_birth) is called; an agent that answers with a bare message
    /// leaves no task behind.
    pub(crate) fn unborn(
        shared: Arc<Shared>,
        owner: Owner,
        task: Task,
        idempotency: Option<IdempotencyKey>,
    ) -> Arc<Self> {
        let mut state = State::new(&task, 0, 0);
        state.born = false;
        state.stored = false;
        state.message_seq = 1;
        state.idempotency = idempotency;
        Arc::new(Self::with(shared, owner, task, state))
    }

    /// A stored task, folded from its checkpoint and the entries after it.
    pub(crate) async fn load(
        shared: Arc<Shared>,
        owner: Owner,
        stored: StoredTask,
        fence: Option<Fence>,
    ) -> Result<Self, StoreError> {
        let (task, seq) = fold(&shared, &owner, &stored, u64::MAX).await?;
        let mut state = State::new(&task, seq, stored.last_message_seq);
        state.settled = seq;
        state.taken = seq;
        state.fence = fence;
        Ok(Self::with(shared, owner, task, state))
    }

    fn with(shared: Arc<Shared>, owner: Owner, task: Task, mut state: State) -> Self {
        let (id, context_id) = (task.id.clone(), task.context_id.clone());
        state.task = task;
        Self {
            shared,
            owner,
            id,
            context_id,
            state: Mutex::new(state),
            changed: Notify::new(),
            nudged: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.id
    }

    pub(crate) fn context_id(&self) -> &ContextId {
        &self.context_id
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The task as committed.
    pub(crate) fn task(&self) -> Task {
        self.state.lock().task.clone()
    }

    /// The task as committed, and the number of its newest entry.
    pub(crate) fn snapshot(&self) -> (Task, u64) {
        let state = self.state.lock();
        (state.task.clone(), state.seq)
    }

    /// The number of the newest committed entry.
    pub(crate) fn seq(&self) -> u64 {
        self.state.lock().seq
    }

    /// Whether the task has ended, as committed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().task.status.state.is_terminal()
    }

    /// Whether a turn is at work on the task.
    pub(crate) fn is_at_work(&self) -> bool {
        self.state.lock().turn.is_some()
    }

    pub(crate) fn status_event(&self, state: TaskState, message: Option<Message>) -> LogEvent {
        turn::status_event(&self.id, &self.context_id, state, message)
    }

    pub(crate) fn agent_message(&self, parts: Vec<Part>) -> Message {
        turn::agent_message(&self.id, &self.context_id, parts)
    }

    fn status_with(&self, state: TaskState, text: impl Into<String>) -> LogEvent {
        self.status_event(state, Some(self.agent_message(vec![Part::text(text)])))
    }

    async fn changed_until<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let mut change = pin!(self.changed.notified());
            change.as_mut().enable();
            if let Some(found) = look(&self.state.lock()) {
                return found;
            }
            change.await;
        }
    }

    /// Waits until the message in entry `message` has its answer.
    pub(crate) async fn answered(&self, message: u64) -> Standing {
        self.changed_until(|state| state.standing(message)).await
    }

    /// Waits until the task is stored, or will never be.
    pub(crate) async fn born(&self) -> Birth {
        self.changed_until(|state| {
            if let Some(record) = &state.duplicate {
                Some(Birth::Duplicate(record.clone()))
            } else if let Some(error) = &state.lost {
                Some(Birth::Lost(error.clone()))
            } else if state.stored {
                Some(Birth::Stored)
            } else {
                state.reply.clone().map(Birth::Reply)
            }
        })
        .await
    }

    /// Waits until entry `seq` is committed.
    pub(crate) async fn committed(&self, seq: u64) -> Result<(), StoreError> {
        self.changed_until(|state| {
            if state.seq >= seq {
                return Some(Ok(()));
            }
            state.lost.clone().map(Err)
        })
        .await
    }

    /// Waits until the task has ended.
    pub(crate) async fn ended(&self) -> Result<TaskState, StoreError> {
        self.changed_until(|state| {
            let now = state.task.status.state;
            if now.is_terminal() {
                return Some(Ok(now));
            }
            state.lost.clone().map(Err)
        })
        .await
    }

    /// Committed entries after `after` that are still in memory; `Err` where the store must be
    /// asked, `None` where there is nothing new.
    pub(crate) fn recent(&self, after: u64, limit: usize) -> Result<Option<Vec<Arc<Logged>>>, ()> {
        let state = self.state.lock();
        if state.seq <= after {
            return Ok(None);
        }
        let first = state.seq + 1 - state.recent.len() as u64;
        if after + 1 < first {
            return Err(());
        }
        let skip = usize::try_from(after + 1 - first).unwrap_or(usize::MAX);
        Ok(Some(
            state
                .recent
                .iter()
                .skip(skip)
                .take(limit)
                .cloned()
                .collect(),
        ))
    }

    /// An entry read back from the store.
    pub(crate) fn stored(&self, entry: Entry) -> Result<Logged, StoreError> {
        Logged::from_entry(entry, |seq| self.state.lock().taken_by(seq))
    }

    /// The entry that ended the task, where it comes right after `after`: made anew out of the
    /// task, for a log that was pruned.
    pub(crate) fn end_after(&self, after: u64) -> Option<Logged> {
        let state = self.state.lock();
        let status = &state.task.status;
        if !status.state.is_terminal() || state.seq != after + 1 {
            return None;
        }
        let update = StatusUpdate {
            task_id: self.id.clone(),
            context_id: self.context_id.clone(),
            status: status.clone(),
            metadata: Metadata::new(),
        };
        Some(Logged::of(state.seq, u64::MAX, &LogEvent::Status(update)))
    }

    /// Waits for what a follower that has read up to `after` should do next.
    pub(crate) async fn follow(&self, after: u64, until: Option<u64>) -> Followed {
        self.changed_until(|state| {
            if state.seq > after {
                return Some(Followed::More);
            }
            if let Some(error) = &state.lost {
                return Some(Followed::Lost(error.clone()));
            }
            if state.task.status.state.is_terminal() && state.stored {
                return Some(Followed::End);
            }
            match state.standing(until?)? {
                Standing::Reply(message) => Some(Followed::Reply(message)),
                Standing::Task | Standing::Fault(_) | Standing::Lost(_) => Some(Followed::End),
            }
        })
        .await
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.unregister(&self.id);
    }
}
