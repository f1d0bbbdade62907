//! Where tasks live: an append-only log of numbered entries per task, and what is read out of it.
//!
//! A store knows nothing of what an entry says: bodies are opaque bytes (without a newline), and
//! whoever appends names the status, the checkpoint and the notices that go with them. What a
//! store does know is order, ownership and durability:
//!
//! - an append is one transaction: entries, status, checkpoint, lease, idempotency key and due
//!   deliveries are all there, or none is;
//! - entries of a task are numbered 1, 2, 3 …; an append that does not continue the number is
//!   refused, and so is one after a terminal status;
//! - every query about a task takes the [`Owner`]: another owner's task is as absent as one that
//!   never was. What serves the server itself, across owners, is apart, in [`Maintenance`].
//!
//! A store looks at the clock for two things, whether a lease that somebody wants is still in
//! force and how old an idempotency record is; all other times are the caller's.
//!
//! [`MemoryStore`] and `SqliteStore` (feature `sqlite`, on by default) serve one process; the
//! feature `conformance` has the suite that every implementation must pass.
//!
//! The rejected alternative, a store that saves whole tasks, loses exactly what readers need: the
//! order of what happened.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod memory;
mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use memory::MemoryStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};

use async_trait::async_trait;
use bytes::Bytes;
use nuncio_core::{ContextId, Owner, TaskId, TaskState, Timestamp};
use std::collections::HashMap;

/// One entry of a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number: 1 for the first of the task.
    pub seq: u64,
    /// What it says; opaque, and without a newline byte.
    pub body: Bytes,
}

/// Where a task stands, for lists and for the rule that the first terminal state wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRow {
    /// The state.
    pub state: TaskState,
    /// Since when.
    pub since: Timestamp,
}

/// A run of the server. A new one is made at each start, so a lease of an earlier run is
/// recognised as an orphan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeId(pub String);

/// The number of a lease. It grows with every lease taken on a task, so that whoever lost one
/// can't write any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

/// What an append does to the task's lease.
///
/// Whatever it says, a terminal status gives the lease back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LeaseChange {
    /// Nothing.
    #[default]
    Keep,
    /// Takes it for a turn, under a new [`Fence`]. Refused with [`StoreError::Leased`] while
    /// another node's is in force; a node may take its own anew.
    Take {
        /// Who takes it.
        node: NodeId,
        /// Until when, if it is not renewed.
        until: Timestamp,
    },
    /// Gives it back.
    Release,
}

/// A client's own name for a send, so that a retry runs nothing twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key, unique for the owner.
    pub key: String,
    /// A digest of what was sent.
    pub digest: [u8; 32],
    /// A record made before this is out of its window and counts as absent.
    pub not_before: Timestamp,
}

/// What an idempotency key stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The task the first send reached.
    pub task: TaskId,
    /// The digest of what was sent.
    pub digest: [u8; 32],
    /// The entry in which its message stands.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
}

/// A push notification config of a task's, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfigRow {
    /// Its id, unique within the task.
    pub id: String,
    /// Where its deliveries go, as far as couriers share it out: those of one destination are
    /// claimed together, and no destination waits for another.
    pub destination: String,
    /// All that a delivery needs; opaque, and secret.
    pub body: Bytes,
}

/// That an entry is to be delivered to every push config that its task has by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The entry.
    pub seq: u64,
    /// When its deliveries are due.
    pub due: Timestamp,
}

/// Entries to append and all that is committed with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Append {
    /// The entries; the first continues the task's numbers. May be empty, to change the lease.
    pub entries: Vec<Entry>,
    /// The status after the entries, where they change it. Comes with at least one entry.
    pub status: Option<StatusRow>,
    /// The task as it is after the entries, where a checkpoint is due. One that comes with the
    /// task's end lets the log go in time; see [`Retention::entries_before`].
    pub checkpoint: Option<Bytes>,
    /// The number of the newest entry here that is a user's message. It is among the entries.
    pub message_seq: Option<u64>,
    /// The lease under which this is written. One that was given back or taken over is refused
    /// with [`StoreError::StaleLease`]; one that merely ran out is good until somebody takes it.
    pub fence: Option<Fence>,
    /// What happens to the lease.
    pub lease: LeaseChange,
    /// The key under which the message among the entries was sent; goes with
    /// [`message_seq`](Self::message_seq).
    pub idempotency: Option<IdempotencyKey>,
    /// Which of the entries here are delivered to the task's push configs.
    pub notices: Vec<Notice>,
}

/// A task to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Its id; the caller makes it unique.
    pub id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// Its push configs from the first entry on, each with an id of its own.
    pub push_configs: Vec<PushConfigRow>,
    /// Its first entries, from number 1; a status must be given.
    pub first: Append,
}

/// How an append ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// Committed. The lease's number is there where one was taken.
    Committed {
        /// The number of the lease taken.
        fence: Option<Fence>,
        /// How many deliveries were made due.
        deliveries: usize,
    },
    /// Nothing was written: the idempotency key is in use.
    Duplicate(IdempotencyRecord),
}

/// A task as stored, without the entries after its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    /// Its id.
    pub id: TaskId,
    /// Its context.
    pub context_id: ContextId,
    /// Where it stands.
    pub status: StatusRow,
    /// The number of its newest entry.
    pub last_seq: u64,
    /// The number of the newest entry that is a user's message.
    pub last_message_seq: u64,
    /// The task as of entry [`checkpoint_seq`](Self::checkpoint_seq); `None` where no turn has
    /// ended yet, and entry 1 is where to begin.
    pub checkpoint: Option<Bytes>,
    /// See [`checkpoint`](Self::checkpoint); 0 without one.
    pub checkpoint_seq: u64,
    /// Whether a turn holds the lease, in force or not.
    pub leased: bool,
}

/// Where in a list a page ended: the status time and the id of its last task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCursor {
    /// The last task's status time.
    pub since: Timestamp,
    /// The last task's id.
    pub id: TaskId,
}

/// Which of an owner's tasks to list, newest status first (ties: greater id first).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListQuery {
    /// Only this context's.
    pub context_id: Option<ContextId>,
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those whose status is at least as new as this.
    pub status_after: Option<Timestamp>,
    /// Behind this place.
    pub after: Option<ListCursor>,
    /// At most so many.
    pub limit: u32,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The tasks.
    pub tasks: Vec<StoredTask>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<ListCursor>,
    /// How many tasks fit the filters in all, wherever the page is.
    pub total: u64,
}

/// What goes wrong in a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No such task of this owner's.
    #[error("no such task")]
    NotFound,
    /// The task has ended; nothing is appended after a terminal state.
    #[error("the task has ended as {0:?}")]
    Ended(TaskState),
    /// The entries do not continue the task's numbers.
    #[error("the task's log is at entry {last_seq}, which the append does not continue")]
    Conflict {
        /// The newest entry there is.
        last_seq: u64,
    },
    /// The lease under which this was written is no longer in force.
    #[error("the lease was lost to another turn")]
    StaleLease,
    /// The task has as many push configs as it may.
    #[error("the task has as many push configs as it may")]
    TooManyPushConfigs,
    /// Another node's lease is in force.
    #[error("another node runs this task")]
    Leased,
    /// The append breaks the store's rules; a programming error.
    #[error("malformed append: {0}")]
    Malformed(&'static str),
    /// The store can't do its work now; nothing was written. The text says what to do.
    #[error("{0}")]
    Unavailable(String),
}

/// Whether and when finished tasks and old entries go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A task that ended before this is removed whole, with its push configs and the deliveries
    /// that were given up. One that has deliveries still to be made stays until they are, and so
    /// does its log.
    pub finished_before: Option<Timestamp>,
    /// The log of a task that ended before this is removed; its checkpoint stays. Where there is
    /// no checkpoint of the end, the log is needed and stays too.
    pub entries_before: Option<Timestamp>,
    /// Beyond so many finished tasks, over all owners, those that ended first are removed.
    pub max_finished: Option<u64>,
}

/// What one step of pruning removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Whole tasks.
    pub tasks: u64,
    /// Logs of tasks that stay.
    pub logs: u64,
}

/// A task whose turn was lost with the node that ran it. The caller now holds its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Whose it is.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The lease taken over.
    pub fence: Fence,
}

/// A webhook delivery: committed with the entry it carries, and there until it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The store's number for it.
    pub id: u64,
    /// Whose task it is of.
    pub owner: Owner,
    /// The task.
    pub task: TaskId,
    /// The push config.
    pub config: String,
    /// The entry it carries.
    pub seq: u64,
    /// Where it goes; see [`PushConfigRow::destination`].
    pub destination: String,
    /// How many attempts were begun before. Each claim counts as one.
    pub attempts: u32,
    /// When it was first due.
    pub since: Timestamp,
}

/// Which deliveries a courier can take on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who claims.
    pub node: NodeId,
    /// What is due by now.
    pub now: Timestamp,
    /// A claim that is not settled by then runs out, and its delivery is due again.
    pub until: Timestamp,
    /// At most so many in all.
    pub limit: usize,
    /// At most so many of one destination, …
    pub per_destination: usize,
    /// … less those that the claimant has under way there already.
    pub under_way: HashMap<String, usize>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is to be made, or is on its way.
    Waiting {
        /// When it is due (again).
        due: Timestamp,
        /// Why the last attempt failed, where there was one.
        reason: Option<String>,
    },
    /// It was given up.
    Dead {
        /// Why.
        reason: String,
    },
}

/// Which deliveries an operator wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFilter {
    /// Those that are to be made.
    Waiting,
    /// Those that were given up.
    Dead,
}

/// How an attempt at a delivery ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// It arrived.
    Delivered,
    /// It is to be tried again.
    Retry {
        /// When.
        due: Timestamp,
        /// Why.
        reason: String,
    },
    /// It is given up, and kept for an operator to see.
    Dead {
        /// Why.
        reason: String,
    },
    /// The receiver wants no more: the push config goes, with all its deliveries.
    Gone,
}

/// The store, as an owner's requests see it.
#[async_trait]
pub trait Store: Maintenance {
    /// Creates a task. Its id must be new, whoever it is for.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] where the id exists or the first append has no entry or status;
    /// [`StoreError::Conflict`], [`StoreError::Unavailable`].
    async fn create(&self, owner: &Owner, task: NewTask) -> Result<Appended, StoreError>;

    /// Appends to a task's log. When this returns, what was appended is as durable as the store
    /// makes it.
    ///
    /// Appends take effect in the order in which they were first polled, so a caller may start
    /// several and wait for them later. One whose future is dropped after that is still done.
    ///
    /// Refusals are looked for in this order: the append's shape, the task, the idempotency key
    /// (a retry is told that it is one whatever became of the task since), the task's end, the
    /// fence, the lease, the numbers. On a task that has ended, an append with nothing in it but
    /// a release is fine and does nothing.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing was written then.
    async fn append(
        &self,
        owner: &Owner,
        task: &TaskId,
        append: Append,
    ) -> Result<Appended, StoreError>;

    /// A task.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Unavailable`].
    async fn load(&self, owner: &Owner, task: &TaskId) -> Result<StoredTask, StoreError>;

    /// Entries with numbers greater than `after`, in order, at most `limit` of them. Fewer may
    /// come even where more are stored; none comes only where none is stored. Where old entries
    /// were pruned, the first that comes has a number greater than `after + 1`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Unavailable`].
    async fn entries(
        &self,
        owner: &Owner,
        task: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// A page of the owner's tasks.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn list(&self, owner: &Owner, query: &ListQuery) -> Result<ListPage, StoreError>;

    /// What an idempotency key of the owner's stands for, if its record is not older than
    /// `not_before` and its task is still there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn idempotent(
        &self,
        owner: &Owner,
        key: &str,
        not_before: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Sets a push config of a task, which may have ended. Entries committed after this are
    /// delivered to it. Under an id that the task has already it replaces that one, keeping its
    /// place; what was to be delivered to that one goes to this one, and is due `now`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::TooManyPushConfigs`] where the task would have more
    /// than `limit`; [`StoreError::Unavailable`].
    async fn set_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        config: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// A task's push configs, those set first before others.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Unavailable`].
    async fn push_configs(
        &self,
        owner: &Owner,
        task: &TaskId,
    ) -> Result<Vec<PushConfigRow>, StoreError>;

    /// Removes a push config with all its deliveries. Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no such task; [`StoreError::Unavailable`].
    async fn delete_push_config(
        &self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, StoreError>;
}

/// What the server does for itself, across owners.
#[async_trait]
pub trait Maintenance: Send + Sync + 'static {
    /// Sets how long all leases of a node hold, in one step.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn renew_leases(&self, node: &NodeId, until: Timestamp) -> Result<(), StoreError>;

    /// Takes over leases that ran out by `now`, or whose node can't be alive, at most `limit` of
    /// them, those that ran out first before others.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn claim_orphans(
        &self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, StoreError>;

    /// Claims deliveries that are due, each for one attempt. Of each task and config only the
    /// oldest is claimed, and while that one is not due or on its way, none. Those of a
    /// destination that are due first are claimed before others of it; the destinations take
    /// turns, so that none keeps the others waiting.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn claim_deliveries(&self, claim: Claim) -> Result<Vec<Delivery>, StoreError>;

    /// Says how a claimed attempt ended. Settling what somebody else has claimed since does
    /// nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn settle_delivery(
        &self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Result<(), StoreError>;

    /// Gives up deliveries that were first due before this and that nobody has claimed, at most
    /// `limit` of them; says how many. Of each task and config it looks at the oldest, so that
    /// it takes several calls, until none is left, to give up more of them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn expire_deliveries(
        &self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Deliveries that stand so, by growing number, at most `limit` of those with numbers greater
    /// than `after`. Those that were given up are kept until their task or config is removed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn deliveries(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Delivery, DeliveryState)>, StoreError>;

    /// Makes a delivery due, one that was given up too: that one takes its place among those of
    /// its task and config again, and its attempts are counted from zero. One on its way stays
    /// so. Says whether there is such a delivery.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn retry_delivery(&self, id: u64, now: Timestamp) -> Result<bool, StoreError>;

    /// Removes a delivery, whatever became of it. Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn drop_delivery(&self, id: u64) -> Result<bool, StoreError>;

    /// Removes at most `limit` things that the policy lets go, so that no step holds the store up
    /// for long, and those that ended first before others. Both counts are zero when nothing is
    /// left to do (or `limit` is). Idempotency records that are out of the window they were made
    /// for go too, uncounted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    async fn prune(&self, policy: &Retention, limit: usize) -> Result<Pruned, StoreError>;
}
