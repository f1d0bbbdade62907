//! What runs beside the requests: heartbeats, recovery of lost turns, pruning.

use crate::server::Inner;
use nuncio_core::Timestamp;
use nuncio_store::{Retention, StoreError};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::task::JoinHandle;

/// How often the store is pruned.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// The rest between two steps of pruning, in which requests go first.
const PRUNE_PAUSE: Duration = Duration::from_millis(20);

/// How long finished tasks are kept. `None`: for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    /// A finished task is removed whole after this.
    pub tasks: Option<Duration>,
    /// A finished task's log is removed after this; the task itself stays. Who resumes a stream
    /// from before then gets the task as it stands.
    pub logs: Option<Duration>,
    /// At most so many finished tasks are kept, the newest.
    pub max_finished: Option<u64>,
}

impl RetentionPolicy {
    fn at(&self, now: Timestamp) -> Retention {
        let before =
            |age: Duration| now.plus_millis(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Retention {
            finished_before: self.tasks.map(before),
            entries_before: self.logs.map(before),
            max_finished: self.max_finished,
        }
    }
}

/// The server's background work. While it is held, turns that were lost are recovered, leases
/// renewed and old tasks pruned, and an evented server is one in full. When it is dropped, all
/// that stops.
#[derive(Debug)]
#[must_use = "the background work stops when this is dropped"]
pub struct Runtime {
    inner: Arc<Inner>,
    jobs: Vec<JoinHandle<()>>,
}

impl Runtime {
    /// Recovers what an earlier run of the server left behind, then goes to work.
    pub(crate) async fn start(inner: Arc<Inner>) -> Result<Self, StoreError> {
        while inner.engine.recover().await? > 0 {}
        let jobs = vec![
            tokio::spawn(keep_leases(Arc::clone(&inner))),
            tokio::spawn(prune(Arc::clone(&inner))),
        ];
        inner.running.store(true, Ordering::Release);
        Ok(Self { inner, jobs })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.inner.running.store(false, Ordering::Release);
        for job in &self.jobs {
            job.abort();
        }
    }
}

async fn keep_leases(inner: Arc<Inner>) {
    let mut beat = tokio::time::interval(inner.engine.limits().lease / 3);
    beat.tick().await;
    loop {
        beat.tick().await;
        let work = async {
            inner.engine.heartbeat().await?;
            inner.engine.recover().await
        };
        if let Err(error) = work.await {
            tracing::error!(%error, "leases could not be renewed");
        }
    }
}

async fn prune(inner: Arc<Inner>) {
    if inner.retention == RetentionPolicy::default() {
        return;
    }
    let mut round = tokio::time::interval(PRUNE_EVERY);
    loop {
        round.tick().await;
        let policy = inner.retention.at(Timestamp::now());
        loop {
            match inner.engine.prune(&policy).await {
                Ok(true) => tokio::time::sleep(PRUNE_PAUSE).await,
                Ok(false) => break,
                Err(error) => {
                    tracing::error!(%error, "old tasks could not be pruned");
                    break;
                }
            }
        }
    }
}
