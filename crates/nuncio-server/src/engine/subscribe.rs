//! Following a task that another request began.

use super::{Engine, EngineError, Follower, fold::fold, follow::Until, live::Live};
use nuncio_core::{Principal, TaskId};
use nuncio_store::StoredTask;
use std::sync::Arc;

/// A task that somebody asks to follow.
#[derive(Debug)]
pub(crate) struct Subscription {
    live: Arc<Live>,
    stored: Option<(StoredTask, u64)>,
    ended: bool,
}

impl Engine {
    /// Finds a task to follow.
    pub(crate) async fn subscribe(
        &self,
        principal: &Principal,
        id: &TaskId,
        last_event: Option<u64>,
    ) -> Result<Subscription, EngineError> {
        let owner = principal.owner();
        let live = self.shared.open(&owner, id).await?;
        let stored = match last_event {
            Some(seq) => Some((self.shared.store.load(&owner, id).await?, seq)),
            None => None,
        };
        Ok(Subscription {
            ended: live.has_ended(),
            live,
            stored,
        })
    }
}

impl Subscription {
    /// Whether the task had ended when it was found.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Follows the task: the snapshot first, then what was logged after the last event that the
    /// caller has, then what comes.
    ///
    /// With a last event the snapshot is the task as of that event, so that nothing is told
    /// twice. Without one it is the task as it stands; of an ended task the final status then
    /// comes once more, since a stream's readers wait for it.
    pub(crate) async fn follow(self) -> Result<Follower, EngineError> {
        let Self {
            live,
            stored,
            ended,
        } = self;
        let resumed = stored.is_some();
        let (task, seq) = match stored {
            Some((stored, seq)) if seq < stored.last_seq => {
                fold(live.shared(), live.owner(), &stored, seq).await?
            }
            _ => live.snapshot(),
        };
        // The status that ended a task is its newest entry, for nothing comes after it.
        let after = if ended && !resumed {
            seq.saturating_sub(1)
        } else {
            seq
        };
        Ok(Follower::from_snapshot(
            live,
            (task, seq),
            after,
            Until::Terminal,
        ))
    }
}
