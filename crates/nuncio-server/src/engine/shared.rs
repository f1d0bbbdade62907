//! What all tasks of a server share: the store, the limits, and which tasks are in use.

use super::live::Live;
use crate::{agent::Agent, limits::Limits, turn::new_uuid};
use nuncio_core::{Owner, TaskId, Timestamp};
use nuncio_store::{Fence, LeaseChange, NodeId, Orphan, Store, StoreError};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Weak},
};
use tokio::sync::{MutexGuard, Semaphore, watch};

/// What must not be done twice at once is serialised per stripe of a hash.
const STRIPES: usize = 64;

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) limits: Limits,
    pub(crate) node: NodeId,
    pub(crate) turns: Arc<Semaphore>,
    in_use: Mutex<HashMap<TaskId, Weak<Live>>>,
    /// Kept while a task is loaded, so that two requests never make two [`Live`]s of one task.
    loading: Stripes,
    /// Kept while a send with an idempotency key is stored. Not the same stripes: such a send
    /// may load a task.
    sending: Stripes,
    /// Tasks whose turn was lost: they are taken care of once the store lets us.
    left_behind: Mutex<Vec<Orphan>>,
    /// How many tasks have something on its way to the store.
    flushes: watch::Sender<usize>,
}

/// Held while something is on its way to the store.
pub(crate) struct Flushing(Arc<Shared>);

impl Drop for Flushing {
    fn drop(&mut self) {
        self.0.flushes.send_modify(|count| *count -= 1);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn Store>, agent: Arc<dyn Agent>, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            store,
            agent,
            node: NodeId(new_uuid()),
            turns: Arc::new(Semaphore::new(limits.turns)),
            limits,
            in_use: Mutex::default(),
            loading: Stripes::default(),
            sending: Stripes::default(),
            left_behind: Mutex::default(),
            flushes: watch::Sender::new(0),
        })
    }

    pub(crate) fn flushing(self: &Arc<Self>) -> Flushing {
        self.flushes.send_modify(|count| *count += 1);
        Flushing(Arc::clone(self))
    }

    /// Waits until no turn is running and all that was reported is stored.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.limits.turns).unwrap_or(u32::MAX);
        // Both fail only when their other side is closed, which is this very value.
        let _turns = self.turns.acquire_many(all).await;
        let mut flushes = self.flushes.subscribe();
        let _none = flushes.wait_for(|count| *count == 0).await;
    }

    /// The task, if it is in use.
    pub(crate) fn in_use(&self, owner: &Owner, id: &TaskId) -> Option<Arc<Live>> {
        let live = self.in_use.lock().get(id).and_then(Weak::upgrade)?;
        (live.owner() == owner).then_some(live)
    }

    /// The task, put to use if it is not.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] for a missing task and for another owner's alike.
    pub(crate) async fn open(
        self: &Arc<Self>,
        owner: &Owner,
        id: &TaskId,
    ) -> Result<Arc<Live>, StoreError> {
        self.open_with(owner, id, None).await
    }

    /// The task, put to use under a lease that was taken over.
    pub(crate) async fn open_with(
        self: &Arc<Self>,
        owner: &Owner,
        id: &TaskId,
        fence: Option<Fence>,
    ) -> Result<Arc<Live>, StoreError> {
        if let Some(live) = self.in_use(owner, id) {
            return Ok(live);
        }
        let _alone = self.loading.alone(id).await;
        if let Some(live) = self.in_use(owner, id) {
            return Ok(live);
        }
        let stored = self.store.load(owner, id).await?;
        let live = Live::load(Arc::clone(self), owner.clone(), stored, fence).await?;
        let live = Arc::new(live);
        self.register(&live);
        Ok(live)
    }

    /// Keeps all others out that would send under the same idempotency key.
    pub(crate) async fn sending(&self, owner: &Owner, key: &str) -> MutexGuard<'_, ()> {
        self.sending.alone((owner, key)).await
    }

    pub(crate) fn register(&self, live: &Arc<Live>) {
        self.in_use
            .lock()
            .insert(live.id().clone(), Arc::downgrade(live));
    }

    /// Takes a task out of use whose memory no longer stands for what is stored.
    pub(crate) fn forget(&self, live: &Arc<Live>) {
        let mut in_use = self.in_use.lock();
        if in_use
            .get(live.id())
            .is_some_and(|weak| weak.as_ptr() == Arc::as_ptr(live))
        {
            in_use.remove(live.id());
        }
    }

    /// Takes a task out of use that nobody holds any more.
    pub(crate) fn unregister(&self, id: &TaskId) {
        let mut in_use = self.in_use.lock();
        if in_use.get(id).is_some_and(|weak| weak.strong_count() == 0) {
            in_use.remove(id);
        }
    }

    pub(crate) fn take_lease(&self) -> LeaseChange {
        LeaseChange::Take {
            node: self.node.clone(),
            until: self.lease_end(),
        }
    }

    pub(crate) fn lease_end(&self) -> Timestamp {
        let ms = i64::try_from(self.limits.lease.as_millis()).unwrap_or(i64::MAX);
        Timestamp::now().plus_millis(ms)
    }

    pub(crate) fn leave_behind(&self, orphans: impl IntoIterator<Item = Orphan>) {
        let mut left_behind = self.left_behind.lock();
        for orphan in orphans {
            if !left_behind.contains(&orphan) {
                left_behind.push(orphan);
            }
        }
    }

    pub(crate) fn take_left_behind(&self) -> Vec<Orphan> {
        std::mem::take(&mut self.left_behind.lock())
    }
}

struct Stripes {
    locks: [tokio::sync::Mutex<()>; STRIPES],
    hasher: RandomState,
}

impl Default for Stripes {
    fn default() -> Self {
        Self {
            locks: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
            hasher: RandomState::new(),
        }
    }
}

impl Stripes {
    /// Keeps all others out that would do something about the same thing.
    async fn alone(&self, what: impl Hash) -> MutexGuard<'_, ()> {
        let stripe = self.hasher.hash_one(what) as usize % STRIPES;
        self.locks[stripe].lock().await
    }
}
