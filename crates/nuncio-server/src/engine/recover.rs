//! What the server does for itself: leases, recovery, pruning, the end.

use super::{Engine, run};
use crate::turn::TurnRequest;
use nuncio_core::{Metadata, Principal, Role, TaskState, Timestamp};
use nuncio_store::{Orphan, Retention, StoreError};

impl Engine {
    /// Renews the leases of running turns.
    pub(crate) async fn heartbeat(&self) -> Result<(), StoreError> {
        self.shared
            .store
            .renew_leases(&self.shared.node, self.shared.lease_end())
            .await
    }

    /// Takes over turns that were lost with their node, a few at a time; says how many. Agents
    /// that can are made to run them again; the other tasks fail, saying why.
    pub(crate) async fn recover(&self) -> Result<usize, StoreError> {
        const STEP: usize = 64;
        let shared = &self.shared;
        let (now, until) = (Timestamp::now(), shared.lease_end());
        let orphans = shared
            .store
            .claim_orphans(&shared.node, now, until, STEP)
            .await?;
        let found = orphans.len();
        // From here on this node holds their leases, and nobody else will see to them.
        shared.leave_behind(orphans);
        let mut lost = shared.take_left_behind();
        while let Some(orphan) = lost.pop() {
            if let Err(error) = self.recover_one(&orphan).await {
                shared.leave_behind(lost);
                shared.leave_behind([orphan]);
                return Err(error);
            }
        }
        Ok(found)
    }

    async fn recover_one(&self, orphan: &Orphan) -> Result<(), StoreError> {
        let Orphan { owner, task, fence } = orphan;
        let live = match self.shared.open_with(owner, task, Some(*fence)).await {
            Ok(live) => live,
            Err(StoreError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        if live.has_ended() || live.is_at_work() {
            // Somebody has sent a message meanwhile, and so begun a turn.
            return Ok(());
        }
        let last = live
            .task()
            .history
            .into_iter()
            .rev()
            .find(|m| m.role == Role::User);
        match (self.shared.agent.resumes(), last, self.turn_permit()) {
            (true, Some(message), Ok(permit)) => {
                tracing::info!(task = %task, "running a turn again that was lost");
                let request = TurnRequest {
                    message,
                    metadata: Metadata::new(),
                    accepted_output_modes: Vec::new(),
                    principal: Principal::of_owner(owner),
                    resumed: true,
                };
                let number = live.begin_turn();
                run::spawn(&live, number, request, permit);
            }
            _ => {
                tracing::info!(task = %task, "failing a task whose turn was lost");
                live.force(
                    TaskState::Failed,
                    Some("The server stopped while this task was running. Send the message again."),
                );
                match live.ended().await {
                    // It went on under another lease.
                    Ok(_) | Err(StoreError::StaleLease | StoreError::Ended(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// One small step of pruning; says whether there was anything to do.
    pub(crate) async fn prune(&self, policy: &Retention) -> Result<bool, StoreError> {
        const STEP: usize = 200;
        let pruned = self.shared.store.prune(policy, STEP).await?;
        Ok(pruned.tasks + pruned.logs > 0)
    }

    /// Waits until no turn is running and all that was reported is stored.
    pub(crate) async fn drained(&self) {
        self.shared.drained().await;
    }
}
