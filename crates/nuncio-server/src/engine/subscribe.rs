//! Following a task that another request began.

use super::{Engine, EngineError, Follower, fold::as_of, follow::Until, live::Live};
use nuncio_core::{Principal, TaskId};
use std::sync::Arc;

/// A task that somebody asks to follow.
#[derive(Debug)]
pub(crate) struct Subscription {
    live: Arc<Live>,
    last_event: Option<u64>,
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
        Ok(Subscription {
            ended: live.has_ended(),
            live,
            last_event,
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
    /// twice. Without one, or with one that this task never had, it is the task as it stands.
    pub(crate) async fn follow(self) -> Result<Follower, EngineError> {
        let Self {
            live, last_event, ..
        } = self;
        match last_event {
            Some(seq) if seq <= live.seq() => {
                let snapshot = as_of(&live, seq).await?;
                Ok(Follower::from_snapshot(live, snapshot, Until::Terminal))
            }
            _ => Ok(Follower::from_now(live, Until::Terminal)),
        }
    }
}
