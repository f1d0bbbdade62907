//! What the writer has at hand: prepared statements, and what it remembers between jobs.
//!
//! Whatever is remembered here can be had from the database again, except for the leases, whose
//! changes are noted until the commit and taken back if it fails. Rejected: remembering nothing,
//! which makes each append look up its owner, its task and its log's end first.

use std::collections::HashMap;

use nuncio_core::{Owner, TaskId, TaskState, Timestamp};
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::{
    codes::{self, int, place, time, uint},
    error::Failure,
};
use crate::{
    Append, Fence, LeaseChange, NodeId, Orphan, StatusRow,
    rules::{self, Lease, Row},
};

/// So many open tasks' rows are remembered at most, then all are forgotten.
const HOT_TASKS: usize = 1 << 16;
/// And so many owners' numbers.
const HOT_OWNERS: usize = 1 << 16;

pub(super) struct Desk<'c> {
    conn: &'c Connection,
    pub(super) sql: Sql<'c>,
    hot: HashMap<TaskId, Hot>,
    owners: HashMap<Owner, i64>,
    leases: HashMap<i64, Lease>,
    /// The leases as they were before this transaction, newest change last.
    undo: Vec<(i64, Option<Lease>)>,
    /// How the transaction changes the counts.
    counts: HashMap<(i64, TaskState), i64>,
    /// How many finished tasks there are, without the transaction, and how it changes that.
    finished: u64,
    finished_change: i64,
    next_task: i64,
    next_delivery: i64,
    /// Where the last claim of deliveries ended.
    claimed_last: String,
}

/// A task's row, without its lease.
#[derive(Debug, Clone)]
pub(super) struct Hot {
    pub(super) num: i64,
    pub(super) owner: i64,
    pub(super) row: Row,
}

/// The statements of an append.
pub(super) struct Sql<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    count: Statement<'c>,
    pub(super) create: Statement<'c>,
    pub(super) status: Statement<'c>,
    pub(super) lease: Statement<'c>,
    pub(super) rest: Statement<'c>,
    pub(super) log: Statement<'c>,
    pub(super) checkpoint: Statement<'c>,
}

impl<'c> Sql<'c> {
    fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: conn.prepare("BEGIN IMMEDIATE")?,
            commit: conn.prepare("COMMIT")?,
            count: conn.prepare(
                "INSERT INTO counts (owner, state, n) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET n = n + excluded.n",
            )?,
            create: conn.prepare(
                "INSERT INTO tasks (num, id, owner, context, state, since, last_seq, message_seq,
                                    checkpoint_seq, fence, leased, log)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?,
            status: conn.prepare(
                "UPDATE tasks SET last_seq = ?2, message_seq = ?3, checkpoint_seq = ?4, fence = ?5,
                                  leased = ?6, state = ?7, since = ?8, log = ?9
                 WHERE num = ?1",
            )?,
            lease: conn.prepare(
                "UPDATE tasks SET last_seq = ?2, message_seq = ?3, checkpoint_seq = ?4, fence = ?5,
                                  leased = ?6
                 WHERE num = ?1",
            )?,
            rest: conn.prepare(
                "UPDATE tasks SET last_seq = ?2, message_seq = ?3, checkpoint_seq = ?4, fence = ?5
                 WHERE num = ?1",
            )?,
            log: conn.prepare("INSERT INTO log (place, last_seq, bodies) VALUES (?1, ?2, ?3)")?,
            checkpoint: conn.prepare(
                "INSERT INTO checkpoints (task, body) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET body = excluded.body",
            )?,
        })
    }
}

impl<'c> Desk<'c> {
    pub(super) fn new(conn: &'c Connection) -> rusqlite::Result<Self> {
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        let mut leased = conn.prepare("SELECT num FROM tasks WHERE leased = 1")?;
        let nobodys = Lease {
            node: NodeId(String::new()),
            until: Timestamp::MIN,
        };
        let leases = leased
            .query_map([], |row| Ok((row.get(0)?, nobodys.clone())))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            conn,
            sql: Sql::prepare(conn)?,
            hot: HashMap::new(),
            owners: HashMap::new(),
            leases,
            undo: Vec::new(),
            counts: HashMap::new(),
            finished: uint(number(
                "SELECT coalesce(sum(n), 0) FROM counts WHERE state >= 6",
            )?),
            finished_change: 0,
            next_task: number("SELECT coalesce(max(num), 0) + 1 FROM tasks")?,
            next_delivery: number("SELECT coalesce(max(id), 0) + 1 FROM deliveries")?,
            claimed_last: String::new(),
        })
    }

    pub(super) fn conn(&self) -> &'c Connection {
        self.conn
    }

    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.sql.begin.execute([]).map(drop)
    }

    /// Writes what the transaction gathered, and commits it.
    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        for ((owner, state), n) in &self.counts {
            if *n != 0 {
                self.sql
                    .count
                    .execute(params![owner, codes::state_code(*state), n])?;
            }
        }
        self.sql.commit.execute([])?;
        self.finished = self.finished();
        self.finished_change = 0;
        self.counts.clear();
        self.undo.clear();
        Ok(())
    }

    /// Forgets what a transaction that failed had changed.
    pub(super) fn forget(&mut self) {
        for (num, lease) in std::mem::take(&mut self.undo).into_iter().rev() {
            self.put_lease(num, lease);
        }
        self.counts.clear();
        self.finished_change = 0;
        self.forget_rows();
    }

    /// Forgets what can be read again.
    pub(super) fn forget_rows(&mut self) {
        self.hot.clear();
        self.owners.clear();
    }

    /// How many finished tasks there are, as the transaction stands.
    pub(super) fn finished(&self) -> u64 {
        self.finished.saturating_add_signed(self.finished_change)
    }

    pub(super) fn count(&mut self, owner: i64, state: TaskState, change: i64) {
        *self.counts.entry((owner, state)).or_default() += change;
        if state.is_terminal() {
            self.finished_change += change;
        }
    }

    pub(super) fn take_task_number(&mut self) -> i64 {
        let num = self.next_task;
        self.next_task += 1;
        num
    }

    pub(super) fn take_delivery_number(&mut self) -> i64 {
        let id = self.next_delivery;
        self.next_delivery += 1;
        id
    }

    pub(super) fn claimed_last(&self) -> &str {
        &self.claimed_last
    }

    pub(super) fn set_claimed_last(&mut self, destination: String) {
        self.claimed_last = destination;
    }

    /// The owner's number, if it has one.
    pub(super) fn owner(&mut self, owner: &Owner) -> rusqlite::Result<Option<i64>> {
        if let Some(num) = self.owners.get(owner) {
            return Ok(Some(*num));
        }
        let num: Option<i64> = self
            .conn
            .prepare_cached("SELECT id FROM owners WHERE key = ?1")?
            .query_row([owner.as_str()], |row| row.get(0))
            .optional()?;
        if let Some(num) = num {
            self.know_owner(owner, num);
        }
        Ok(num)
    }

    /// The owner's number; a new one gets one.
    pub(super) fn make_owner(&mut self, owner: &Owner) -> rusqlite::Result<i64> {
        if let Some(num) = self.owner(owner)? {
            return Ok(num);
        }
        self.conn
            .prepare_cached("INSERT INTO owners (key) VALUES (?1)")?
            .execute([owner.as_str()])?;
        let num = self.conn.last_insert_rowid();
        self.know_owner(owner, num);
        Ok(num)
    }

    fn know_owner(&mut self, owner: &Owner, num: i64) {
        if self.owners.len() >= HOT_OWNERS {
            self.owners.clear();
        }
        self.owners.insert(owner.clone(), num);
    }

    /// A task as it stands, with its lease.
    pub(super) fn task(&mut self, id: &TaskId) -> rusqlite::Result<Option<Hot>> {
        let found = match self.hot.get(id) {
            Some(hot) => Some(hot.clone()),
            None => self.read_task(id)?,
        };
        Ok(found.map(|mut hot| {
            hot.row.lease = self.leases.get(&hot.num).cloned();
            hot
        }))
    }

    fn read_task(&self, id: &TaskId) -> rusqlite::Result<Option<Hot>> {
        let mut select = self.conn.prepare_cached(
            "SELECT num, owner, state, since, last_seq, message_seq, checkpoint_seq, fence
             FROM tasks WHERE id = ?1",
        )?;
        let found = select
            .query_row([id.as_str()], |r| {
                Ok(Hot {
                    num: r.get(0)?,
                    owner: r.get(1)?,
                    row: Row {
                        status: StatusRow {
                            state: codes::state(2, r.get(2)?)?,
                            since: time(r.get(3)?),
                        },
                        last_seq: uint(r.get(4)?),
                        message_seq: uint(r.get(5)?),
                        checkpoint_seq: uint(r.get(6)?),
                        fence: uint(r.get(7)?),
                        lease: None,
                    },
                })
            })
            .optional()?;
        let Some(mut hot) = found else {
            return Ok(None);
        };
        let logged: Option<i64> = self
            .conn
            .prepare_cached(
                "SELECT last_seq FROM log WHERE place BETWEEN ?1 AND ?2
                 ORDER BY place DESC LIMIT 1",
            )?
            .query_row([place(hot.num, 0), place(hot.num, codes::MAX_SEQ)], |r| {
                r.get(0)
            })
            .optional()?;
        hot.row.last_seq = hot.row.last_seq.max(logged.map_or(0, uint));
        Ok(Some(hot))
    }

    /// Remembers a task as it is now, unless it has ended: little comes to it then, and it may be
    /// pruned.
    pub(super) fn remember(&mut self, id: &TaskId, mut hot: Hot) {
        self.lease(hot.num, hot.row.lease.take());
        if hot.row.status.state.is_terminal() {
            self.hot.remove(id);
            return;
        }
        if self.hot.len() >= HOT_TASKS {
            self.hot.clear();
        }
        self.hot.insert(id.clone(), hot);
    }

    fn lease(&mut self, num: i64, lease: Option<Lease>) {
        if self.leases.get(&num) != lease.as_ref() {
            let before = self.put_lease(num, lease);
            self.undo.push((num, before));
        }
    }

    fn put_lease(&mut self, num: i64, lease: Option<Lease>) -> Option<Lease> {
        match lease {
            Some(lease) => self.leases.insert(num, lease),
            None => self.leases.remove(&num),
        }
    }

    pub(super) fn renew_leases(&mut self, node: &NodeId, until: Timestamp) {
        for (num, lease) in &mut self.leases {
            if lease.node == *node && lease.until != until {
                self.undo.push((*num, Some(lease.clone())));
                lease.until = until;
            }
        }
    }

    pub(super) fn claim_orphans(
        &mut self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<Orphan>, Failure> {
        let mut lost: Vec<_> = self
            .leases
            .iter()
            .filter(|(_, lease)| !lease.holds(now))
            .map(|(num, lease)| (lease.until, *num))
            .collect();
        lost.sort_unstable();
        lost.truncate(limit);
        let mut select = self.conn.prepare_cached(
            "SELECT t.id, o.key FROM tasks t JOIN owners o ON o.id = t.owner WHERE t.num = ?1",
        )?;
        let mut orphans = Vec::with_capacity(lost.len());
        for (_, num) in lost {
            let (task, owner) = select.query_row([num], |r| {
                let key: String = r.get(1)?;
                Ok((codes::task_id(0, r.get(0)?)?, Owner::from_stored(&key)))
            })?;
            let Some(mut hot) = self.task(&task)? else {
                continue;
            };
            let lease = LeaseChange::Take {
                node: node.clone(),
                until,
            };
            let take = Append {
                lease,
                ..Append::default()
            };
            // Its own clock has no say here, the caller's has.
            let admitted = rules::admit(&hot.row, &take, now)?;
            hot.row = admitted.row;
            self.write_row(&hot, true)?;
            self.remember(&task, hot);
            orphans.push(Orphan {
                owner,
                task,
                fence: admitted.fence.unwrap_or(Fence(0)),
            });
        }
        Ok(orphans)
    }

    /// Writes a row whose status did not change.
    pub(super) fn write_row(&mut self, hot: &Hot, leases: bool) -> rusqlite::Result<()> {
        let row = &hot.row;
        let last_seq = int(row.last_seq);
        let message_seq = int(row.message_seq);
        let checkpoint_seq = int(row.checkpoint_seq);
        let fence = int(row.fence);
        if leases {
            let leased = row.lease.is_some();
            self.sql.lease.execute(params![
                hot.num,
                last_seq,
                message_seq,
                checkpoint_seq,
                fence,
                leased
            ])?;
        } else {
            self.sql.rest.execute(params![
                hot.num,
                last_seq,
                message_seq,
                checkpoint_seq,
                fence
            ])?;
        }
        Ok(())
    }
}
