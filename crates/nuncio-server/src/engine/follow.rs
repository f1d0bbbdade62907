//! A reader of one task's log: what stands behind every stream.
//!
//! A follower is a cursor. It reads what is committed after its position, from memory where the
//! entries are recent and from the store where they are not, and waits to be woken when it has
//! read all. Nothing is buffered for it, so a slow follower costs no memory, loses nothing, and
//! does not slow the task.

use super::live::{Followed, Live, Logged, Shown};
use nuncio_core::{Message, Task};
use nuncio_store::StoreError;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Entries taken in one step.
const STEP: usize = 256;

/// What comes next on a stream.
#[derive(Debug)]
pub(crate) enum Step {
    /// The task as of an entry.
    Snapshot(Box<Task>, u64),
    /// Further entries, in order, none missing.
    Entries(Vec<Arc<Logged>>),
    /// A bare message: the whole answer.
    Reply(Arc<Message>),
}

/// A reader's place in a task's log.
#[derive(Debug)]
pub(crate) struct Follower {
    live: Arc<Live>,
    snapshot: Option<(Box<Task>, u64)>,
    after: u64,
    until: Until,
    /// When a task that the agent has said nothing of begins without it.
    birth_due: Option<Instant>,
}

/// How far a follower reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until the message in this entry has its answer.
    Answered(u64),
    /// Until the task has ended.
    Terminal,
    /// It has read all that concerns it.
    Done,
}

impl Follower {
    /// Reads from the beginning of the log.
    pub(crate) fn from_start(live: Arc<Live>, until: Until) -> Self {
        let birth_due = Instant::now() + live.shared().limits.first_event;
        Self {
            live,
            snapshot: None,
            after: 0,
            until,
            birth_due: Some(birth_due),
        }
    }

    /// Shows the task as of an entry, then reads the entries after it.
    pub(crate) fn from_snapshot(live: Arc<Live>, (task, seq): (Task, u64), until: Until) -> Self {
        Self {
            live,
            snapshot: Some((Box::new(task), seq)),
            after: seq,
            until,
            birth_due: None,
        }
    }

    /// Shows the task as it stands, then reads what comes. Of an ended task the final status
    /// comes once more, since a stream's readers wait for it: it is the newest entry, for nothing
    /// comes after it.
    pub(crate) fn from_now(live: Arc<Live>, until: Until) -> Self {
        let (task, mut seq) = live.snapshot();
        if task.status.state.is_terminal() {
            seq = seq.saturating_sub(1);
        }
        Self::from_snapshot(live, (task, seq), until)
    }

    /// What comes next; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Step>, StoreError> {
        if let Some((task, seq)) = self.snapshot.take() {
            return Ok(Some(Step::Snapshot(task, seq)));
        }
        if let Some(due) = self.birth_due {
            if timeout_at(due, self.live.born()).await.is_err() {
                self.live.give_birth();
            }
            self.birth_due = None;
        }
        while self.until != Until::Done {
            let message = match self.until {
                Until::Answered(message) => Some(message),
                Until::Terminal | Until::Done => None,
            };
            match self.live.follow(self.after, message).await {
                Followed::More => {
                    let entries = self.read(message).await?;
                    if !entries.is_empty() {
                        return Ok(Some(Step::Entries(entries)));
                    }
                }
                Followed::Reply(message) => {
                    self.until = Until::Done;
                    return Ok(Some(Step::Reply(message)));
                }
                Followed::End => self.until = Until::Done,
                Followed::Lost(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn read(&mut self, message: Option<u64>) -> Result<Vec<Arc<Logged>>, StoreError> {
        let mut entries = match self.live.recent(self.after, STEP) {
            Ok(recent) => recent.unwrap_or_default(),
            Err(()) => self.read_stored().await?,
        };
        let Some(newest) = entries.last() else {
            return Ok(entries);
        };
        self.after = newest.seq;
        if let Some(message) = message
            && let Some(last) = entries.iter().position(|entry| entry.concludes(message))
        {
            entries.truncate(last + 1);
            self.until = Until::Done;
        }
        entries.retain(|entry| entry.shown() != Shown::No);
        Ok(entries)
    }

    async fn read_stored(&self) -> Result<Vec<Arc<Logged>>, StoreError> {
        let store = &self.live.shared().store;
        let entries = store
            .entries(self.live.owner(), self.live.id(), self.after, STEP)
            .await?;
        if entries
            .first()
            .is_none_or(|entry| entry.seq != self.after + 1)
        {
            if let Some(end) = self.live.end_after(self.after) {
                return Ok(vec![Arc::new(end)]);
            }
            return Err(StoreError::Unavailable(
                "the log's old entries were pruned".into(),
            ));
        }
        entries
            .into_iter()
            .map(|entry| self.live.stored(entry).map(Arc::new))
            .collect()
    }
}
