//! Stores for tests: both kinds, and one that fails when told to.

use super::Gate;
use nuncio_server::{
    async_trait,
    core::{Owner, TaskId, Timestamp},
    store::{
        Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, Entry, IdempotencyRecord,
        ListPage, ListQuery, Maintenance, MemoryStore, NewTask, NodeId, Orphan, Pruned,
        PushConfigRow, Retention, Settlement, SqliteOptions, SqliteStore, Store, StoreError,
        StoredTask, Synchronous,
    },
};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Where a test's tasks live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite,
}

impl StoreKind {
    pub(crate) fn open(self, folder: &Path) -> Arc<dyn Store> {
        match self {
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::Sqlite => Arc::new(open_sqlite(folder)),
        }
    }
}

/// Opens the database, once the server that had it is gone.
fn open_sqlite(folder: &Path) -> SqliteStore {
    // What is tested here is not the disk.
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        readers: 2,
        ..SqliteOptions::default()
    };
    let begun = std::time::Instant::now();
    loop {
        match SqliteStore::open(folder.join("tasks.db"), &options) {
            Ok(store) => return store,
            Err(error) => assert!(begun.elapsed() < super::PATIENCE, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A store that fails on demand. What it refuses is not written.
#[derive(Debug)]
pub(crate) struct FailingStore<S> {
    inner: S,
    broken: AtomicBool,
    /// Appends that are let through before it breaks by itself.
    fuse: AtomicUsize,
    refused: AtomicUsize,
    held: Mutex<Option<Held>>,
}

/// Writes that are held up: see [`FailingStore::hold`].
#[derive(Debug, Clone)]
pub(crate) struct Held {
    reached: Gate,
    go: Gate,
}

impl Held {
    /// Waits until a write has come.
    pub(crate) async fn reached(&self) {
        self.reached.reached().await;
    }

    /// Lets this and all later writes through.
    pub(crate) fn release(&self) {
        self.go.open_wide();
    }
}

impl<S> FailingStore<S> {
    pub(crate) fn new(inner: S) -> Arc<Self> {
        let fuse = AtomicUsize::new(usize::MAX);
        Arc::new(Self {
            inner,
            broken: AtomicBool::new(false),
            fuse,
            refused: AtomicUsize::new(0),
            held: Mutex::default(),
        })
    }

    /// From now on writes wait.
    pub(crate) fn hold(&self) -> Held {
        let held = Held {
            reached: Gate::new(),
            go: Gate::new(),
        };
        *self.held.lock().expect("no test panics in here") = Some(held.clone());
        held
    }

    /// From now on every write fails.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// The next so many writes succeed, then it breaks down.
    pub(crate) fn break_after(&self, writes: usize) {
        self.fuse.store(writes, Ordering::SeqCst);
    }

    pub(crate) fn repair(&self) {
        self.fuse.store(usize::MAX, Ordering::SeqCst);
        self.broken.store(false, Ordering::SeqCst);
    }

    /// How many writes were refused.
    pub(crate) fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let held = self.held.lock().expect("no test panics in here").clone();
        if let Some(held) = held {
            held.reached.open();
            held.go.pass().await;
        }
        let left = self
            .fuse
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if left.is_err() || self.broken.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Unavailable(
                "the disk is full, says the test".into(),
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl<S: Store> Store for FailingStore<S> {
    async fn create(&self, owner: &Owner, task: NewTask) -> Result<Appended, StoreError> {
        self.check().await?;
        self.inner.create(owner, task).await
    }

    async fn append(
        &self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError> {
        self.check().await?;
        self.inner.append(owner, task, append).await
    }

    async fn load(&self, owner: &Owner, task: &TaskId) -> Result<StoredTask, StoreError> {
        self.inner.load(owner, task).await
    }

    async fn entries(
        &self,
        owner: &Owner,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.inner.entries(owner, task, after, limit).await
    }

    async fn list(&self, owner: &Owner, query: &ListQuery) -> Result<ListPage, StoreError> {
        self.inner.list(owner, query).await
    }

    async fn idempotent(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.inner.idempotent(owner, key, not_before).await
    }

    async fn set_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.inner
            .set_push_config(owner, task, config, limit, now)
            .await
    }

    async fn push_configs(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushConfigRow>, StoreError> {
        self.inner.push_configs(owner, task).await
    }

    async fn delete_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError> {
        self.inner.delete_push_config(owner, task, id).await
    }
}

#[async_trait]
impl<S: Store> Maintenance for FailingStore<S> {
    async fn renew_leases(&self, node: &NodeId, until: Timestamp) -> Result<(), StoreError> {
        self.inner.renew_leases(node, until).await
    }

    async fn claim_orphans(
        &self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError> {
        self.inner.claim_orphans(node, now, until, limit).await
    }

    async fn claim_deliveries(&self, claim: Claim) -> Result<Vec<Delivery>, StoreError> {
        self.inner.claim_deliveries(claim).await
    }

    async fn settle_delivery(
        &self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        self.inner.settle_delivery(node, id, settlement).await
    }

    async fn expire_deliveries(
        &self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.inner.expire_deliveries(before, reason, limit).await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Delivery, DeliveryState)>, StoreError> {
        self.inner.deliveries(filter, after, limit).await
    }

    async fn retry_delivery(&self, id: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.inner.retry_delivery(id, now).await
    }

    async fn drop_delivery(&self, id: u64) -> Result<bool, StoreError> {
        self.inner.drop_delivery(id).await
    }

    async fn prune(&self, policy: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        self.inner.prune(policy, limit).await
    }
}
