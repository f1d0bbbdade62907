//! Creating tasks and appending to them.
//!
//! Everything that can refuse comes before the first write.

use bytes::{BufMut, BytesMut};
use nuncio_core::{Owner, TaskId, Timestamp};
use rusqlite::params;

use super::{
    codes::{self, int, place},
    desk::{Desk, Hot},
    error::Failure,
    query,
};
use crate::{
    Append, Appended, Entry, IdempotencyKey, IdempotencyRecord, NewTask, StoreError,
    rules::{self, Row},
};

/// A log row holds so many bytes at most, unless a single entry has more: reading a few entries
/// out of a long append must not mean reading it all.
const ROW_BYTES: usize = 256 << 10;

impl Desk<'_> {
    pub(super) fn create(&mut self, owner: &Owner, new: &NewTask) -> Result<Appended, Failure> {
        let now = Timestamp::now();
        let first = &new.first;
        let known_owner = self.owner(owner)?;
        if let (Some(owner), Some(key)) = (known_owner, &first.idempotency)
            && let Some(record) = self.key_in_use(owner, key)?
        {
            return Ok(Appended::Duplicate(record));
        }
        if self.task_exists(&new.id)? {
            return Err(StoreError::Malformed("a task with this id exists").into());
        }
        let admitted = rules::admit_first(first, now)?;
        fits(&admitted.row)?;

        let owner = self.make_owner(owner)?;
        let num = self.take_task_number();
        if num > codes::MAX_NUM {
            return Err(StoreError::Unavailable("the store has no number left".into()).into());
        }
        let row = &admitted.row;
        self.sql.create.execute(params![
            num,
            new.id.as_str(),
            owner,
            new.context_id.as_str(),
            codes::state_code(row.status.state),
            row.status.since.as_millis(),
            int(row.last_seq),
            int(row.message_seq),
            int(row.checkpoint_seq),
            int(row.fence),
            row.lease.is_some(),
            log_code(row),
        ])?;
        self.count(owner, row.status.state, 1);
        for config in &new.push_configs {
            self.add_push_config(num, config)?;
        }
        let ended = row.status.state.is_terminal();
        let deliveries = self.write(&new.id, num, owner, first, now)?;
        if ended {
            self.hold(num)?;
        }
        self.remember(
            &new.id,
            Hot {
                num,
                owner,
                row: admitted.row,
            },
        );
        Ok(Appended::Committed {
            fence: admitted.fence,
            deliveries,
        })
    }

    pub(super) fn append(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        append: &Append,
    ) -> Result<Appended, Failure> {
        let now = Timestamp::now();
        let owner = self.owner(owner)?.ok_or(StoreError::NotFound)?;
        let mut hot = self
            .task(task)?
            .filter(|hot| hot.owner == owner)
            .ok_or(StoreError::NotFound)?;
        if let Some(key) = &append.idempotency
            && let Some(record) = self.key_in_use(owner, key)?
        {
            return Ok(Appended::Duplicate(record));
        }
        let admitted = rules::admit(&hot.row, append, now)?;
        fits(&admitted.row)?;

        let before = std::mem::replace(&mut hot.row, admitted.row);
        let row = &hot.row;
        if before.status != row.status {
            self.sql.status.execute(params![
                hot.num,
                int(row.last_seq),
                int(row.message_seq),
                int(row.checkpoint_seq),
                int(row.fence),
                row.lease.is_some(),
                codes::state_code(row.status.state),
                row.status.since.as_millis(),
                log_code(row),
            ])?;
            if before.status.state != row.status.state {
                self.count(owner, before.status.state, -1);
                self.count(owner, row.status.state, 1);
            }
        } else if before.lease.is_some() != row.lease.is_some() {
            self.write_row(&hot, true)?;
        } else if before.fence != row.fence
            || before.message_seq != row.message_seq
            || before.checkpoint_seq != row.checkpoint_seq
        {
            self.write_row(&hot, false)?;
        }
        let deliveries = self.write(task, hot.num, owner, append, now)?;
        if hot.row.status.state.is_terminal() && !before.status.state.is_terminal() {
            self.hold(hot.num)?;
        }
        self.remember(task, hot);
        Ok(Appended::Committed {
            fence: admitted.fence,
            deliveries,
        })
    }

    /// Stores what an admitted append carries beside its row; says how many deliveries it made.
    fn write(
        &mut self,
        task: &TaskId,
        num: i64,
        owner: i64,
        append: &Append,
        now: Timestamp,
    ) -> rusqlite::Result<usize> {
        for entries in rows(&append.entries) {
            if let [first, .., last] | [first @ last] = entries {
                let joined;
                let bodies: &[u8] = if entries.len() == 1 {
                    &first.body
                } else {
                    joined = join(entries);
                    &joined
                };
                self.sql
                    .log
                    .execute(params![place(num, first.seq), int(last.seq), bodies])?;
            }
        }
        if let Some(checkpoint) = &append.checkpoint {
            self.sql.checkpoint.execute(params![num, &checkpoint[..]])?;
        }
        if let (Some(key), Some(seq)) = (&append.idempotency, append.message_seq) {
            self.keep_key(owner, key, task, seq, now)?;
        }
        if append.notices.is_empty() {
            return Ok(0);
        }
        self.notify(num, &append.notices)
    }

    fn task_exists(&self, id: &TaskId) -> rusqlite::Result<bool> {
        self.conn()
            .prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?
            .exists([id.as_str()])
    }

    fn key_in_use(
        &self,
        owner: i64,
        key: &IdempotencyKey,
    ) -> rusqlite::Result<Option<IdempotencyRecord>> {
        query::key_record(self.conn(), owner, &key.key, key.not_before)
    }

    fn keep_key(
        &self,
        owner: i64,
        key: &IdempotencyKey,
        task: &TaskId,
        seq: u64,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "INSERT OR REPLACE INTO idempotency (owner, key, task, digest, seq, at, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                owner,
                key.key,
                task.as_str(),
                &key.digest[..],
                int(seq),
                now.as_millis(),
                rules::key_expiry(now, key.not_before).as_millis(),
            ])?;
        self.expire_keys(now, rules::KEYS_SWEPT)
    }

    /// Forgets at most `limit` idempotency records that are out of the window they were made for.
    pub(super) fn expire_keys(&self, now: Timestamp, limit: usize) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "DELETE FROM idempotency WHERE (owner, key) IN
                     (SELECT owner, key FROM idempotency WHERE expires < ?1
                      ORDER BY expires LIMIT ?2)",
            )?
            .execute(params![now.as_millis(), int(limit)])
            .map(drop)
    }
}

/// Whether a task's log could go once the task has ended; the codes are the schema's.
fn log_code(row: &Row) -> i64 {
    if row.log_is_spare() { 1 } else { 2 }
}

fn fits(row: &Row) -> Result<(), StoreError> {
    if row.last_seq > codes::MAX_SEQ {
        return Err(StoreError::Unavailable(format!(
            "the task's log has reached its end at {} entries",
            codes::MAX_SEQ
        )));
    }
    Ok(())
}

/// Parts an append's entries into the rows that hold them.
fn rows(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    let mut size = 0;
    entries.chunk_by(move |before, next| {
        size += before.body.len() + 1;
        if size + next.body.len() > ROW_BYTES {
            size = 0;
            return false;
        }
        true
    })
}

fn join(entries: &[Entry]) -> BytesMut {
    let size = entries.iter().map(|e| e.body.len() + 1).sum();
    let mut joined = BytesMut::with_capacity(size);
    for entry in entries {
        if entry.seq != entries[0].seq {
            joined.put_u8(b'\n');
        }
        joined.put_slice(&entry.body);
    }
    joined
}
