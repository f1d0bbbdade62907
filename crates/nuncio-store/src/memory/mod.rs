//! Tasks in memory: for tests, for agents whose tasks may die with the process, and as the
//! yardstick of what the other stores must do.
//!
//! One mutex guards everything. Each operation holds it for a microsecond or so and never across
//! an await, so readers and writers see whole appends and nothing else. Rejected: a lock per
//! task, which makes lists, claims and retention a dance over many locks for a gain that no
//! measurement showed.
//!
//! Nothing here is a scan: a page of a list, a claim and a step of pruning each cost the things
//! they return and a logarithm of the things there are. The one exception is a list's total under
//! [`ListQuery::status_after`], which counts what it reports.

mod keys;
mod listing;
mod outbox;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_core::{ContextId, Owner, TaskId, Timestamp};

use self::{keys::Keys, listing::Listing, outbox::Outbox};
use crate::{
    Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, Entry, Fence,
    IdempotencyRecord, LeaseChange, ListCursor, ListPage, ListQuery, Maintenance, NewTask, NodeId,
    Orphan, Pruned, PushConfigRow, Retention, Settlement, Store, StoreError, StoredTask,
    rules::{self, Row},
};

/// A store in memory. Clones share it.
///
/// ```
/// # use nuncio_store::{MemoryStore, Store, StoreError};
/// # use nuncio_core::{Principal, TaskId};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let store = MemoryStore::new();
/// let owner = Principal::anonymous().owner();
/// let nobodys = TaskId::new("t-1").expect("an id");
/// assert_eq!(store.load(&owner, &nobodys).await, Err(StoreError::NotFound));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

/// The place of a finished task in the order in which such tasks go.
type EndKey = (Timestamp, u64, Arc<TaskId>);

#[derive(Debug, Default)]
struct Inner {
    tasks: HashMap<Arc<TaskId>, Stored>,
    lists: HashMap<Owner, OwnerLists>,
    /// Every task with a lease, by when it runs out.
    leases: BTreeSet<(Timestamp, u64, Arc<TaskId>)>,
    held: HashMap<NodeId, BTreeSet<Arc<TaskId>>>,
    /// Those that may go: none that has deliveries to be made.
    ended: BTreeSet<EndKey>,
    /// How many tasks have ended, those that may not go among them.
    finished: u64,
    /// Of [`ended`](Self::ended), those whose log could go.
    spare_logs: BTreeSet<EndKey>,
    keys: Keys,
    outbox: Outbox,
    serial: u64,
}

#[derive(Debug)]
struct Stored {
    owner: Owner,
    context: ContextId,
    /// Grows with every task created; settles ties among tasks that ended together.
    serial: u64,
    row: Row,
    checkpoint: Option<Bytes>,
    log: Vec<Entry>,
}

#[derive(Debug, Default)]
struct OwnerLists {
    all: Listing,
    contexts: HashMap<ContextId, Listing>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No operation panics between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn owned(&self, owner: &Owner, task: &TaskId) -> Result<&Stored, StoreError> {
        self.tasks
            .get(task)
            .filter(|stored| stored.owner == *owner)
            .ok_or(StoreError::NotFound)
    }

    fn key_in_use(&self, owner: &Owner, append: &Append) -> Option<IdempotencyRecord> {
        let key = append.idempotency.as_ref()?;
        self.key_record(owner, &key.key, key.not_before)
    }

    fn key_record(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Option<IdempotencyRecord> {
        let record = self.keys.get(owner, key, not_before)?;
        self.tasks
            .contains_key(&record.task)
            .then(|| record.clone())
    }

    fn create(&mut self, owner: &Owner, new: NewTask) -> Result<Appended, StoreError> {
        let now = Timestamp::now();
        rules::first_shape(&new.first)?;
        if let Some(record) = self.key_in_use(owner, &new.first) {
            return Ok(Appended::Duplicate(record));
        }
        if self.tasks.contains_key(&new.id) {
            return Err(StoreError::Malformed("a task with this id exists"));
        }
        let admitted = rules::admit_first(&new.first, now)?;
        self.serial += 1;
        let id = Arc::new(new.id);
        let stored = Stored {
            owner: owner.clone(),
            context: new.context_id,
            serial: self.serial,
            row: admitted.row,
            checkpoint: None,
            log: Vec::new(),
        };
        for config in new.push_configs {
            self.outbox.set(&id, config, usize::MAX, now);
        }
        self.enter(&id, &stored);
        self.tasks.insert(Arc::clone(&id), stored);
        let deliveries = self.write(&id, owner, new.first, now);
        Ok(Appended::Committed {
            fence: admitted.fence,
            deliveries,
        })
    }

    fn append(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError> {
        let now = Timestamp::now();
        rules::shape(&append)?;
        self.owned(owner, task)?;
        if let Some(record) = self.key_in_use(owner, &append) {
            return Ok(Appended::Duplicate(record));
        }
        let admitted = rules::admit(&self.owned(owner, task)?.row, &append, now)?;
        self.move_to(task, admitted.row)?;
        let deliveries = match self.tasks.get_key_value(task) {
            Some((id, _)) => self.write(&Arc::clone(id), owner, append, now),
            None => 0,
        };
        Ok(Appended::Committed {
            fence: admitted.fence,
            deliveries,
        })
    }

    /// Stores what an admitted append carries; says how many deliveries it made.
    fn write(&mut self, id: &Arc<TaskId>, owner: &Owner, append: Append, now: Timestamp) -> usize {
        if let (Some(key), Some(seq)) = (append.idempotency, append.message_seq) {
            let record = IdempotencyRecord {
                task: TaskId::clone(id),
                digest: key.digest,
                seq,
                at: now,
            };
            self.keys.put(owner, &key, record);
        }
        let deliveries = self.outbox.notify(owner, id, &append.notices);
        if let Some(stored) = self.tasks.get_mut(id) {
            stored.log.extend(append.entries);
            if append.checkpoint.is_some() {
                stored.checkpoint = append.checkpoint;
            }
        }
        if deliveries > 0 {
            self.hold(id);
        }
        deliveries
    }

    /// Keeps a task that has ended as long as it has deliveries to be made, and no longer.
    fn hold(&mut self, id: &Arc<TaskId>) {
        let Some(stored) = self.tasks.get(id) else {
            return;
        };
        let status = stored.row.status;
        if !status.state.is_terminal() {
            return;
        }
        let key = (status.since, stored.serial, Arc::clone(id));
        if self.outbox.holds(id) {
            self.spare_logs.remove(&key);
            self.ended.remove(&key);
        } else {
            if stored.row.log_is_spare() && !stored.log.is_empty() {
                self.spare_logs.insert(key.clone());
            }
            self.ended.insert(key);
        }
    }

    fn set_push_config(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.owned(owner, task)?;
        let id = self.tasks.get_key_value(task).map(|(id, _)| Arc::clone(id));
        if self
            .outbox
            .set(&id.ok_or(StoreError::NotFound)?, config, limit, now)
        {
            Ok(())
        } else {
            Err(StoreError::TooManyPushConfigs)
        }
    }

    fn delete_push_config(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError> {
        self.owned(owner, task)?;
        let there = self.outbox.delete(task, id);
        self.hold(&Arc::new(task.clone()));
        Ok(there)
    }

    /// Replaces a task's row, and moves the task in every index that hangs on it.
    fn move_to(&mut self, task: &TaskId, row: Row) -> Result<(), StoreError> {
        let (id, mut stored) = self.tasks.remove_entry(task).ok_or(StoreError::NotFound)?;
        let relisted = stored.row.status != row.status;
        if relisted {
            self.unlist(&id, &stored);
        }
        self.unlease(&id, &stored);
        stored.row = row;
        if relisted {
            self.list_in(&id, &stored);
        }
        self.lease_in(&id, &stored);
        self.tasks.insert(id, stored);
        Ok(())
    }

    fn enter(&mut self, id: &Arc<TaskId>, stored: &Stored) {
        self.list_in(id, stored);
        self.lease_in(id, stored);
    }

    fn list_in(&mut self, id: &Arc<TaskId>, stored: &Stored) {
        let status = stored.row.status;
        let lists = self.lists.entry(stored.owner.clone()).or_default();
        lists.all.insert(status, id);
        lists
            .contexts
            .entry(stored.context.clone())
            .or_default()
            .insert(status, id);
        if status.state.is_terminal() {
            let key = (status.since, stored.serial, Arc::clone(id));
            self.finished += 1;
            if self.outbox.holds(id) {
                return;
            }
            if stored.row.log_is_spare() {
                self.spare_logs.insert(key.clone());
            }
            self.ended.insert(key);
        }
    }

    fn unlist(&mut self, id: &Arc<TaskId>, stored: &Stored) {
        let status = stored.row.status;
        if let Some(lists) = self.lists.get_mut(&stored.owner) {
            lists.all.remove(status, id);
            if let Some(context) = lists.contexts.get_mut(&stored.context) {
                context.remove(status, id);
                if context.is_empty() {
                    lists.contexts.remove(&stored.context);
                }
            }
            if lists.all.is_empty() {
                self.lists.remove(&stored.owner);
            }
        }
        if status.state.is_terminal() {
            self.finished -= 1;
        }
        let key = (status.since, stored.serial, Arc::clone(id));
        self.spare_logs.remove(&key);
        self.ended.remove(&key);
    }

    fn lease_in(&mut self, id: &Arc<TaskId>, stored: &Stored) {
        if let Some(lease) = &stored.row.lease {
            self.leases
                .insert((lease.until, stored.serial, Arc::clone(id)));
            self.held
                .entry(lease.node.clone())
                .or_default()
                .insert(Arc::clone(id));
        }
    }

    fn unlease(&mut self, id: &Arc<TaskId>, stored: &Stored) {
        if let Some(lease) = &stored.row.lease {
            self.leases
                .remove(&(lease.until, stored.serial, Arc::clone(id)));
            if let Some(held) = self.held.get_mut(&lease.node) {
                held.remove(id);
                if held.is_empty() {
                    self.held.remove(&lease.node);
                }
            }
        }
    }

    fn stored_task(id: &TaskId, stored: &Stored) -> StoredTask {
        StoredTask {
            id: id.clone(),
            context_id: stored.context.clone(),
            status: stored.row.status,
            last_seq: stored.row.last_seq,
            last_message_seq: stored.row.message_seq,
            checkpoint: stored.checkpoint.clone(),
            checkpoint_seq: stored.row.checkpoint_seq,
            leased: stored.row.lease.is_some(),
        }
    }

    fn entries(&self, stored: &Stored, after: u64, limit: usize) -> Vec<Entry> {
        let from = stored.log.partition_point(|entry| entry.seq <= after);
        stored.log.iter().skip(from).take(limit).cloned().collect()
    }

    fn list(&self, owner: &Owner, query: &ListQuery) -> ListPage {
        let empty = ListPage {
            tasks: Vec::new(),
            next: None,
            total: 0,
        };
        let Some(lists) = self.lists.get(owner) else {
            return empty;
        };
        let listing = match &query.context_id {
            None => &lists.all,
            Some(context) => match lists.contexts.get(context) {
                Some(listing) => listing,
                None => return empty,
            },
        };
        let (ids, more) = listing.page(query);
        let tasks: Vec<_> = ids
            .iter()
            .filter_map(|id| Some(Self::stored_task(id, self.tasks.get(*id)?)))
            .collect();
        let next = tasks.last().filter(|_| more).map(|last| ListCursor {
            since: last.status.since,
            id: last.id.clone(),
        });
        ListPage {
            tasks,
            next,
            total: listing.total(query),
        }
    }

    fn renew_leases(&mut self, node: &NodeId, until: Timestamp) {
        for id in self.held.get(node).cloned().unwrap_or_default() {
            if let Some(stored) = self.tasks.get_mut(&id)
                && let Some(lease) = &mut stored.row.lease
            {
                self.leases
                    .remove(&(lease.until, stored.serial, Arc::clone(&id)));
                lease.until = until;
                self.leases.insert((until, stored.serial, id));
            }
        }
    }

    fn claim_orphans(
        &mut self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError> {
        let lost: Vec<_> = self
            .leases
            .iter()
            .take_while(|(until, ..)| *until <= now)
            .take(limit)
            .map(|(.., id)| Arc::clone(id))
            .collect();
        let mut orphans = Vec::with_capacity(lost.len());
        for id in lost {
            let Some(stored) = self.tasks.get(&id) else {
                continue;
            };
            let owner = stored.owner.clone();
            let take = Append {
                lease: LeaseChange::Take {
                    node: node.clone(),
                    until,
                },
                ..Append::default()
            };
            let admitted = rules::admit(&stored.row, &take, now)?;
            self.move_to(&id, admitted.row)?;
            let fence = admitted.fence.unwrap_or(Fence(0));
            orphans.push(Orphan {
                owner,
                task: TaskId::clone(&id),
                fence,
            });
        }
        Ok(orphans)
    }

    fn prune(&mut self, policy: &Retention, limit: usize) -> Pruned {
        let mut pruned = Pruned::default();
        let mut left = limit;
        while left > 0 {
            let over = policy.max_finished.is_some_and(|max| self.finished > max);
            let Some((since, _, id)) = self.ended.first() else {
                break;
            };
            if !over && policy.finished_before.is_none_or(|before| *since >= before) {
                break;
            }
            let id = Arc::clone(id);
            if let Some((id, stored)) = self.tasks.remove_entry(&id) {
                self.unlist(&id, &stored);
                self.outbox.forget(&id);
            }
            pruned.tasks += 1;
            left -= 1;
        }
        while left > 0 {
            let Some(key) = self.spare_logs.first() else {
                break;
            };
            if policy.entries_before.is_none_or(|before| key.0 >= before) {
                break;
            }
            let key = key.clone();
            self.spare_logs.remove(&key);
            if let Some(stored) = self.tasks.get_mut(&key.2) {
                stored.log = Vec::new();
            }
            pruned.logs += 1;
            left -= 1;
        }
        self.keys.expire(Timestamp::now(), limit);
        pruned
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, owner: &Owner, task: NewTask) -> Result<Appended, StoreError> {
        self.lock().create(owner, task)
    }

    async fn append(
        &self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError> {
        self.lock().append(owner, task, append)
    }

    async fn load(&self, owner: &Owner, task: &TaskId) -> Result<StoredTask, StoreError> {
        let inner = self.lock();
        inner
            .owned(owner, task)
            .map(|stored| Inner::stored_task(task, stored))
    }

    async fn entries(
        &self,
        owner: &Owner,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let inner = self.lock();
        inner
            .owned(owner, task)
            .map(|stored| inner.entries(stored, after, limit))
    }

    async fn list(&self, owner: &Owner, query: &ListQuery) -> Result<ListPage, StoreError> {
        Ok(self.lock().list(owner, query))
    }

    async fn idempotent(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        Ok(self.lock().key_record(owner, key, not_before))
    }

    async fn set_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.lock().set_push_config(owner, task, config, limit, now)
    }

    async fn push_configs(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushConfigRow>, StoreError> {
        let inner = self.lock();
        inner.owned(owner, task)?;
        Ok(inner.outbox.configs(task))
    }

    async fn delete_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError> {
        self.lock().delete_push_config(owner, task, id)
    }
}

#[async_trait]
impl Maintenance for MemoryStore {
    async fn renew_leases(&self, node: &NodeId, until: Timestamp) -> Result<(), StoreError> {
        self.lock().renew_leases(node, until);
        Ok(())
    }

    async fn claim_orphans(
        &self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError> {
        self.lock().claim_orphans(node, now, until, limit)
    }

    async fn claim_deliveries(&self, claim: Claim) -> Result<Vec<Delivery>, StoreError> {
        Ok(self.lock().outbox.claim(&claim))
    }

    async fn settle_delivery(
        &self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError> {
        let mut inner = self.lock();
        if let Some(task) = inner.outbox.settle(node, id, settlement) {
            inner.hold(&task);
        }
        Ok(())
    }

    async fn expire_deliveries(
        &self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut inner = self.lock();
        let expired = inner.outbox.expire(before, reason, limit);
        for task in &expired {
            inner.hold(task);
        }
        Ok(expired.len())
    }

    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Delivery, DeliveryState)>, StoreError> {
        Ok(self.lock().outbox.list(filter, after, limit))
    }

    async fn retry_delivery(&self, id: u64, now: Timestamp) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let task = inner.outbox.retry(id, now);
        if let Some(task) = &task {
            inner.hold(task);
        }
        Ok(task.is_some())
    }

    async fn drop_delivery(&self, id: u64) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        let task = inner.outbox.drop(id);
        if let Some(task) = &task {
            inner.hold(task);
        }
        Ok(task.is_some())
    }

    async fn prune(&self, policy: &Retention, limit: usize) -> Result<Pruned, StoreError> {
        Ok(self.lock().prune(policy, limit))
    }
}

#[cfg(test)]
mod tests {
    async fn make() -> (super::MemoryStore, ()) {
        (super::MemoryStore::new(), ())
    }

    crate::conformance_suite!(make);
}
