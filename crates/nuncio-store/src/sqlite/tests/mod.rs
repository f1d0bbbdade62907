//! What only this store has: a file, a lock, a writer that remembers, faults of a disk.

mod crash;
mod faults;
mod opening;
mod plans;
mod queue;
mod reopening;

use async_trait::async_trait;
use nuncio_core::{Owner, TaskId, Timestamp};
use tempfile::TempDir;

use super::{SqliteOptions, SqliteStore};
use crate::{
    Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, Entry, IdempotencyRecord,
    ListPage, ListQuery, Maintenance, NewTask, NodeId, Orphan, Pruned, PushConfigRow, Retention,
    Settlement, Store, StoreError, StoredTask,
};

fn open(dir: &TempDir) -> SqliteStore {
    SqliteStore::open(dir.path().join("tasks.db"), &SqliteOptions::default()).expect("opened")
}

async fn make() -> (SqliteStore, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    (open(&dir), dir)
}

mod conformance {
    crate::conformance_suite!(super::make);
}

/// A store whose writer remembers nothing, so that what it remembers and what it would read are
/// held against the same suite.
struct Forgetful(SqliteStore);

impl Forgetful {
    async fn store(&self) -> &SqliteStore {
        let forgotten = self.0.writer.run(0, |desk| {
            desk.forget_rows();
            Ok(())
        });
        forgotten.await.expect("forgotten");
        &self.0
    }
}

#[async_trait]
impl Store for Forgetful {
    async fn create(&self, owner: &Owner, task: NewTask) -> Result<Appended, StoreError> {
        self.store().await.create(owner, task).await
    }

    async fn append(
        &self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError> {
        // Without waiting, since an append is queued when it is first polled.
        let forget = self.0.writer.run(0, |desk| {
            desk.forget_rows();
            Ok(())
        });
        let (forgotten, appended) = tokio::join!(forget, self.0.append(owner, task, append));
        forgotten.expect("forgotten");
        appended
    }

    async fn load(&self, owner: &Owner, task: &TaskId) -> Result<StoredTask, StoreError> {
        self.0.load(owner, task).await
    }

    async fn entries(
        &self,
        owner: &Owner,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.0.entries(owner, task, after, limit).await
    }

    async fn list(&self, owner: &Owner, query: &ListQuery) -> Result<ListPage, StoreError> {
        self.0.list(owner, query).await
    }

    async fn idempotent(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.0.idempotent(owner, key, not_before).await
    }

    async fn set_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.store()
            .await
            .set_push_config(owner, task, config, limit, now)
            .await
    }

    async fn push_configs(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushConfigRow>, StoreError> {
        self.store().await.push_configs(owner, task).await
    }

    async fn delete_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError> {
        self.store().await.delete_push_config(owner, task, id).await
    }
}

#[async_trait]
impl Maintenance for Forgetful {
    async fn renew_leases(&self, node: &NodeId, until: Timestamp) -> Result<(), StoreError> {
        self.store().await.renew_leases(node, until).await
    }

    async fn claim_orphans(
        &self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError> {
        self.store()
            .await
            .claim_orphans(node, now, until, limit)
            .await
    }

    async fn claim_deliveries(&self, claim: Claim) -> Result<Vec<Delivery>, StoreError> {
        self.store().await.claim_deliveries(claim).await
    }

    async fn settle_delivery(
        &self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        self.store()
            .await
            .settle_delivery(node, id, settlement)
            .await
    }

    async fn expire_deliveries(
        &self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.store()
            .await
            .expire_deliveries(before, reason, limit)
            .await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Delivery, DeliveryState)>, StoreError> {
        self.store().await.deliveries(filter, after, limit).await
    }

    async fn retry_delivery(&self, id: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.store().await.retry_delivery(id, now).await
    }

    async fn drop_delivery(&self, id: u64) -> Result<bool, StoreError> {
        self.store().await.drop_delivery(id).await
    }

    async fn prune(&self, policy: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        self.store().await.prune(policy, limit).await
    }
}

async fn make_forgetful() -> (Forgetful, TempDir) {
    let (store, dir) = make().await;
    (Forgetful(store), dir)
}

mod forgetful_conformance {
    crate::conformance_suite!(super::make_forgetful);
}
