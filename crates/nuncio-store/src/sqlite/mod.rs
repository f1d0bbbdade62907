//! Tasks in an embedded SQLite database: durable, and fast by committing in groups.
//!
//! **One writer.** A thread of its own takes all appends that wait, does them in one transaction
//! and answers them all once it is on disk, so that sixteen callers pay for one flush and not for
//! sixteen. Appends are done in the order of the calls: [`Store::append`] queues its work when it
//! is first polled. An append whose future is dropped after that is still done.
//!
//! **Refused is not failed.** A job checks before it writes; one that is refused leaves the
//! others of its transaction alone. If SQLite itself fails, the whole transaction is undone and
//! its jobs are tried one by one, so that only those fail which can't be done.
//!
//! **One row per append.** The bodies of an append's entries are one row of the log, and an
//! append that changes no status writes nothing else. Rejected: a row per entry, which costs a
//! b-tree insertion for each of an agent's words.
//!
//! **Readers** are threads with connections of their own; each answer is read from one snapshot.
//! Nothing here ever blocks a thread of the async runtime, except for [`SqliteStore::open`] and
//! dropping the store, which wait for the disk.
//!
//! **One process.** A lock beside the file sees to that, and to this: a lease or a claim that is
//! found at the start belongs to nobody alive. So leases are kept in memory (the database only
//! says that there is one, and its fence), renewing them writes nothing, and all of those found
//! at the start are orphans at once, whatever time they had left.

mod append;
mod codes;
mod configs;
mod desk;
mod error;
mod open;
mod options;
mod outbox;
mod query;
mod reader;
mod retention;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;

use async_trait::async_trait;
use nuncio_core::{Owner, TaskId, Timestamp};

pub use self::options::{SqliteOptions, Synchronous};
use self::{open::Locked, reader::Readers, writer::Writer};
use crate::{
    Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, Entry, IdempotencyRecord,
    ListPage, ListQuery, Maintenance, NewTask, NodeId, Orphan, Pruned, PushConfigRow, Retention,
    Settlement, Store, StoreError, StoredTask, rules,
};

/// A store in a SQLite database file. See the [crate] for what it promises.
///
/// Dropping it finishes what is queued, closes the database and frees the path.
///
/// ```no_run
/// use nuncio_store::{SqliteOptions, SqliteStore};
///
/// let store = SqliteStore::open("/var/lib/nuncio/tasks.db", &SqliteOptions::default())?;
/// # Ok::<(), nuncio_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    // In the order in which they must go: readers, so that the writer's connection is the last
    // and cleans up; the writer; and only then the lock.
    readers: Readers,
    writer: Writer,
    at: Locked,
}

impl SqliteStore {
    /// Opens the database at a path, making the file and its directory where they are missing.
    /// This waits for the disk; call it before the server starts.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], naming the path and what to do: it is in use, not writable,
    /// not a database, another program's, written by a newer nuncio, or damaged.
    pub fn open(path: impl AsRef<Path>, options: &SqliteOptions) -> Result<Self, StoreError> {
        let at = open::lock(path.as_ref())?;
        let writer = Writer::start(&at, options)?;
        let readers = Readers::start(&at, options.readers)?;
        Ok(Self {
            readers,
            writer,
            at,
        })
    }

    /// Where the database is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.at.path
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, owner: &Owner, task: NewTask) -> Result<Appended, StoreError> {
        rules::first_shape(&task.first)?;
        let size = weight(&task.first);
        let owner = owner.clone();
        self.writer
            .run(size, move |desk| desk.create(&owner, &task))
            .await
    }

    async fn append(
        &self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError> {
        rules::shape(&append)?;
        let size = weight(&append);
        let (owner, task) = (owner.clone(), task.clone());
        self.writer
            .run(size, move |desk| desk.append(&owner, &task, &append))
            .await
    }

    async fn load(&self, owner: &Owner, task: &TaskId) -> Result<StoredTask, StoreError> {
        let (owner, task) = (owner.clone(), task.clone());
        self.readers
            .run(move |conn| query::load(conn, &owner, &task))
            .await
    }

    async fn entries(
        &self,
        owner: &Owner,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let (owner, task) = (owner.clone(), task.clone());
        self.readers
            .run(move |conn| query::entries(conn, &owner, &task, after, limit))
            .await
    }

    async fn list(&self, owner: &Owner, query: &ListQuery) -> Result<ListPage, StoreError> {
        let (owner, query) = (owner.clone(), query.clone());
        self.readers
            .run(move |conn| query::list(conn, &owner, &query))
            .await
    }

    async fn idempotent(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let (owner, key) = (owner.clone(), key.to_owned());
        self.readers
            .run(move |conn| Ok(query::idempotent(conn, &owner, &key, not_before)?))
            .await
    }

    async fn set_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (owner, task, size) = (owner.clone(), task.clone(), config.body.len());
        self.writer
            .run(size, move |desk| {
                desk.set_push_config(&owner, &task, &config, limit, now)
            })
            .await
    }

    async fn push_configs(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushConfigRow>, StoreError> {
        let (owner, task) = (owner.clone(), task.clone());
        self.readers
            .run(move |conn| configs::list(conn, &owner, &task))
            .await
    }

    async fn delete_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError> {
        let (owner, task, id) = (owner.clone(), task.clone(), id.to_owned());
        self.writer
            .run(0, move |desk| desk.delete_push_config(&owner, &task, &id))
            .await
    }
}

#[async_trait]
impl Maintenance for SqliteStore {
    async fn renew_leases(&self, node: &NodeId, until: Timestamp) -> Result<(), StoreError> {
        let node = node.clone();
        self.writer
            .run(0, move |desk| {
                desk.renew_leases(&node, until);
                Ok(())
            })
            .await
    }

    async fn claim_orphans(
        &self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError> {
        let node = node.clone();
        self.writer
            .run(0, move |desk| desk.claim_orphans(&node, now, until, limit))
            .await
    }

    async fn claim_deliveries(&self, claim: Claim) -> Result<Vec<Delivery>, StoreError> {
        self.writer
            .run(0, move |desk| desk.claim_deliveries(&claim))
            .await
    }

    async fn settle_delivery(
        &self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        let node = node.clone();
        self.writer
            .run(0, move |desk| desk.settle_delivery(&node, id, &settlement))
            .await
    }

    async fn expire_deliveries(
        &self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let reason = reason.to_owned();
        self.writer
            .run(0, move |desk| {
                desk.expire_deliveries(before, &reason, limit)
            })
            .await
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Delivery, DeliveryState)>, StoreError> {
        self.readers
            .run(move |conn| Ok(outbox::list(conn, filter, after, limit)?))
            .await
    }

    async fn retry_delivery(&self, id: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.writer
            .run(0, move |desk| desk.retry_delivery(id, now))
            .await
    }

    async fn drop_delivery(&self, id: u64) -> Result<bool, StoreError> {
        self.writer.run(0, move |desk| desk.drop_delivery(id)).await
    }

    async fn prune(&self, policy: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        let policy = *policy;
        self.writer
            .run(0, move |desk| desk.prune(&policy, limit))
            .await
    }
}

/// How much of the queue an append takes up, in bytes.
fn weight(append: &Append) -> usize {
    let entries: usize = append.entries.iter().map(|e| e.body.len()).sum();
    entries + append.checkpoint.as_ref().map_or(0, bytes::Bytes::len)
}
