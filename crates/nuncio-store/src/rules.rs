//! What an append must satisfy, and what a task's row is after it.
//!
//! Pure, and shared by every store in this crate: a store brings the row as it stands, asks here,
//! and writes what it gets back. The rejected alternative, each store with its own checks (in SQL,
//! say), is how two stores come to differ in the error they answer.
//!
//! The order of the checks is part of the contract: shape, existence, idempotency key, end, fence,
//! lease, numbers. A retry thus learns that it is one even where the task has ended since.

use nuncio_core::{TaskState, Timestamp};

use crate::{Append, Fence, LeaseChange, NodeId, StatusRow, StoreError};

/// So many idempotency records out of their window go with each one that comes, so that they stay
/// bounded even where nobody prunes.
pub(crate) const KEYS_SWEPT: usize = 2;

/// Who runs a task, and until when if nothing is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) node: NodeId,
    pub(crate) until: Timestamp,
}

impl Lease {
    /// Whether it is still in force.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        self.until > now
    }
}

/// What decides whether an append is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) status: StatusRow,
    pub(crate) last_seq: u64,
    pub(crate) message_seq: u64,
    pub(crate) checkpoint_seq: u64,
    pub(crate) fence: u64,
    pub(crate) lease: Option<Lease>,
}

impl Row {
    /// A task before its first entry.
    fn unborn() -> Self {
        Self {
            status: StatusRow {
                state: TaskState::Submitted,
                since: Timestamp::MIN,
            },
            last_seq: 0,
            message_seq: 0,
            checkpoint_seq: 0,
            fence: 0,
            lease: None,
        }
    }

    /// Whether the task could be rebuilt without its log.
    pub(crate) fn log_is_spare(&self) -> bool {
        self.checkpoint_seq == self.last_seq
    }
}

/// An append that was admitted: the row after it, and the lease it took.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) row: Row,
    pub(crate) fence: Option<Fence>,
}

/// Checks what can be checked without knowing the task.
pub(crate) fn shape(append: &Append) -> Result<(), StoreError> {
    let among = |seq: u64| append.entries.iter().any(|e| e.seq == seq);
    if append.entries.iter().any(|e| e.body.contains(&b'\n')) {
        return Err(StoreError::Malformed("an entry's body holds a newline"));
    }
    if let Some(status) = append.status {
        if append.entries.is_empty() {
            return Err(StoreError::Malformed("a status comes without an entry"));
        }
        if status.state == TaskState::Unspecified {
            return Err(StoreError::Malformed("a status is of no known state"));
        }
    }
    if append.message_seq.is_some_and(|seq| !among(seq)) {
        return Err(StoreError::Malformed(
            "the message is not among the entries",
        ));
    }
    if append.idempotency.is_some() && append.message_seq.is_none() {
        return Err(StoreError::Malformed(
            "an idempotency key comes without a message",
        ));
    }
    if append.notices.iter().any(|notice| !among(notice.seq)) {
        return Err(StoreError::Malformed(
            "a notice is of an entry of another append",
        ));
    }
    Ok(())
}

/// Checks what only a first append must satisfy.
pub(crate) fn first_shape(append: &Append) -> Result<(), StoreError> {
    shape(append)?;
    if append.entries.is_empty() {
        return Err(StoreError::Malformed("a task is created without an entry"));
    }
    if append.status.is_none() {
        return Err(StoreError::Malformed("a task is created without a status"));
    }
    Ok(())
}

/// Admits the first append of a task.
pub(crate) fn admit_first(append: &Append, now: Timestamp) -> Result<Admitted, StoreError> {
    admit(&Row::unborn(), append, now)
}

/// Admits an append to a task that stands as `row` says.
pub(crate) fn admit(row: &Row, append: &Append, now: Timestamp) -> Result<Admitted, StoreError> {
    if row.status.state.is_terminal() {
        // Whoever ran the task may learn of its end by giving back a lease that is gone.
        let idle = append.entries.is_empty()
            && append.checkpoint.is_none()
            && !matches!(append.lease, LeaseChange::Take { .. });
        return if idle {
            Ok(Admitted {
                row: row.clone(),
                fence: None,
            })
        } else {
            Err(StoreError::Ended(row.status.state))
        };
    }
    if append
        .fence
        .is_some_and(|fence| row.lease.is_none() || row.fence != fence.0)
    {
        return Err(StoreError::StaleLease);
    }
    if let LeaseChange::Take { node, .. } = &append.lease
        && row
            .lease
            .as_ref()
            .is_some_and(|lease| lease.node != *node && lease.holds(now))
    {
        return Err(StoreError::Leased);
    }
    let mut seq = row.last_seq;
    for entry in &append.entries {
        if seq.checked_add(1) != Some(entry.seq) {
            return Err(StoreError::Conflict {
                last_seq: row.last_seq,
            });
        }
        seq = entry.seq;
    }

    let mut after = row.clone();
    after.last_seq = seq;
    after.status = append.status.unwrap_or(row.status);
    after.message_seq = append.message_seq.unwrap_or(row.message_seq);
    if append.checkpoint.is_some() {
        after.checkpoint_seq = seq;
    }
    let mut fence = None;
    match &append.lease {
        LeaseChange::Keep => {}
        LeaseChange::Take { node, until } => {
            after.fence += 1;
            after.lease = Some(Lease {
                node: node.clone(),
                until: *until,
            });
            fence = Some(Fence(after.fence));
        }
        LeaseChange::Release => after.lease = None,
    }
    if after.status.state.is_terminal() {
        after.lease = None;
    }
    Ok(Admitted { row: after, fence })
}

/// When a record made now, for a window that reaches back to `not_before`, can't count any more.
pub(crate) fn key_expiry(now: Timestamp, not_before: Timestamp) -> Timestamp {
    now.plus_millis(now.as_millis().saturating_sub(not_before.as_millis()))
}
