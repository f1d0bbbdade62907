//! What is read: tasks, logs, lists, idempotency records.

use bytes::Bytes;
use nuncio_core::{Owner, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};

use super::{
    codes::{self, MAX_SEQ, STATES, place, place_seq, time, uint},
    error::Failure,
};
use crate::{
    Entry, IdempotencyRecord, ListCursor, ListPage, ListQuery, StatusRow, StoreError, StoredTask,
};

/// One answer holds entries of so many bytes, and what is left of a log row: who wants more asks
/// again.
const ANSWER_BYTES: usize = 1 << 20;

pub(super) fn load(conn: &Connection, owner: &Owner, task: &TaskId) -> Result<StoredTask, Failure> {
    let num = owned(conn, owner, task)?.ok_or(StoreError::NotFound)?;
    stored_task(conn, num)?.ok_or_else(|| StoreError::NotFound.into())
}

pub(super) fn entries(
    conn: &Connection,
    owner: &Owner,
    task: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Entry>, Failure> {
    let num = owned(conn, owner, task)?.ok_or(StoreError::NotFound)?;
    let mut entries = Vec::new();
    if after >= MAX_SEQ {
        return Ok(entries);
    }
    // From the row that holds the entry after `after`, or else from the first behind it.
    let mut select = conn.prepare_cached(
        "SELECT place, last_seq, bodies FROM log
         WHERE place BETWEEN
             coalesce((SELECT place FROM log WHERE place BETWEEN ?1 AND ?2
                       ORDER BY place DESC LIMIT 1), ?2)
             AND ?3
         ORDER BY place",
    )?;
    let mut rows = select.query([place(num, 0), place(num, after + 1), place(num, MAX_SEQ)])?;
    let mut bytes = 0;
    while entries.len() < limit
        && bytes < ANSWER_BYTES
        && let Some(row) = rows.next()?
    {
        let first = place_seq(row.get(0)?);
        let last = uint(row.get(1)?);
        let bodies: Vec<u8> = row.get(2)?;
        let bodies = Bytes::from(bodies);
        let mut seq = first;
        for part in bodies.split(|b| *b == b'\n') {
            if seq > after && entries.len() < limit {
                bytes += part.len();
                entries.push(Entry {
                    seq,
                    body: bodies.slice_ref(part),
                });
            }
            seq += 1;
        }
        if seq != last + 1 {
            return Err(StoreError::Unavailable(format!(
                "the log of task {task} is damaged at entry {first}: restore the database from a \
                 backup"
            ))
            .into());
        }
    }
    Ok(entries)
}

pub(super) fn list(
    conn: &Connection,
    owner: &Owner,
    query: &ListQuery,
) -> Result<ListPage, Failure> {
    let Some(owner) = owner_num(conn, owner)? else {
        return Ok(ListPage {
            tasks: Vec::new(),
            next: None,
            total: 0,
        });
    };
    let total = total(conn, owner, query)?;
    let limit = query.limit as usize;
    let mut nums = page(conn, owner, query)?;
    let more = nums.len() > limit;
    nums.truncate(limit);
    let mut tasks = Vec::with_capacity(nums.len());
    for num in nums {
        tasks.extend(stored_task(conn, num)?);
    }
    let next = tasks.last().filter(|_| more).map(|last| ListCursor {
        since: last.status.since,
        id: last.id.clone(),
    });
    Ok(ListPage { tasks, next, total })
}

pub(super) fn idempotent(
    conn: &Connection,
    owner: &Owner,
    key: &str,
    not_before: Timestamp,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    match owner_num(conn, owner)? {
        Some(owner) => key_record(conn, owner, key, not_before),
        None => Ok(None),
    }
}

/// A key's record, if it is in its window and its task is still there.
pub(super) fn key_record(
    conn: &Connection,
    owner: i64,
    key: &str,
    not_before: Timestamp,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    conn.prepare_cached(
        "SELECT k.task, k.digest, k.seq, k.at FROM idempotency k JOIN tasks t ON t.id = k.task
         WHERE k.owner = ?1 AND k.key = ?2 AND k.at >= ?3",
    )?
    .query_row(params![owner, key, not_before.as_millis()], |row| {
        Ok(IdempotencyRecord {
            task: codes::task_id(0, row.get(0)?)?,
            digest: row.get(1)?,
            seq: uint(row.get(2)?),
            at: time(row.get(3)?),
        })
    })
    .optional()
}

fn owner_num(conn: &Connection, owner: &Owner) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM owners WHERE key = ?1")?
        .query_row([owner.as_str()], |row| row.get(0))
        .optional()
}

/// The number of a task, if it is the owner's.
pub(super) fn owned(
    conn: &Connection,
    owner: &Owner,
    task: &TaskId,
) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached(
        "SELECT num FROM tasks WHERE id = ?1 AND owner = (SELECT id FROM owners WHERE key = ?2)",
    )?
    .query_row([task.as_str(), owner.as_str()], |row| row.get(0))
    .optional()
}

fn stored_task(conn: &Connection, num: i64) -> rusqlite::Result<Option<StoredTask>> {
    conn.prepare_cached(
        "SELECT t.id, t.context, t.state, t.since, t.message_seq, t.checkpoint_seq, t.leased,
                CASE WHEN t.state >= 6 THEN t.last_seq
                ELSE max(t.last_seq, coalesce(
                    (SELECT l.last_seq FROM log l WHERE l.place BETWEEN ?2 AND ?3
                     ORDER BY l.place DESC LIMIT 1), 0)) END,
                c.body
         FROM tasks t LEFT JOIN checkpoints c ON c.task = t.num
         WHERE t.num = ?1",
    )?
    .query_row([num, place(num, 0), place(num, MAX_SEQ)], |row| {
        Ok(StoredTask {
            id: codes::task_id(0, row.get(0)?)?,
            context_id: codes::context_id(1, row.get(1)?)?,
            status: StatusRow {
                state: codes::state(2, row.get(2)?)?,
                since: time(row.get(3)?),
            },
            last_message_seq: uint(row.get(4)?),
            checkpoint_seq: uint(row.get(5)?),
            leased: row.get(6)?,
            last_seq: uint(row.get(7)?),
            checkpoint: row.get::<_, Option<Vec<u8>>>(8)?.map(Bytes::from),
        })
    })
    .optional()
}

/// The numbers of a page's tasks, and of one more where there is one.
fn page(conn: &Connection, owner: i64, query: &ListQuery) -> rusqlite::Result<Vec<i64>> {
    let (sql, binds) = page_sql(owner, query);
    conn.prepare_cached(&sql)?
        .query_map(params_from_iter(binds), |row| row.get(0))?
        .collect()
}

/// One walk along an index per state, merged: SQLite reads a page's rows and no more.
pub(super) fn page_sql(owner: i64, query: &ListQuery) -> (String, Vec<Value>) {
    let (since, id) = match &query.after {
        Some(after) => (after.since.as_millis(), after.id.as_str()),
        // Behind nothing: no time is so late.
        None => (i64::MAX, ""),
    };
    let (filter, mut binds) = Filter::of(owner, query);
    let [since_at, id_at, limit_at] = [1, 2, 3].map(|n| binds.len() + n);
    binds.push(since.into());
    binds.push(id.to_owned().into());
    binds.push((i64::from(query.limit) + 1).into());
    let walk = |state: &String| {
        format!(
            "SELECT num, since, id FROM tasks WHERE {} AND state = {state} AND since >= ?2 \
             AND (since, id) < (?{since_at}, ?{id_at})",
            filter.scope
        )
    };
    let walks: Vec<_> = filter.states.iter().map(walk).collect();
    let walks = walks.join(" UNION ALL ");
    (
        format!("{walks} ORDER BY since DESC, id DESC LIMIT ?{limit_at}"),
        binds,
    )
}

fn total(conn: &Connection, owner: i64, query: &ListQuery) -> rusqlite::Result<u64> {
    let (sql, binds) = total_sql(owner, query);
    let n: i64 = conn
        .prepare_cached(&sql)?
        .query_row(params_from_iter(binds), |row| row.get(0))?;
    Ok(uint(n))
}

/// Looked up where it is kept, and else counted, exactly and out of an index alone.
pub(super) fn total_sql(owner: i64, query: &ListQuery) -> (String, Vec<Value>) {
    let (filter, binds) = Filter::of(owner, query);
    let states = filter.states.join(",");
    if query.context_id.is_none() && query.status_after.is_none() {
        // The time is bound but does not matter.
        let sql = format!(
            "SELECT coalesce(sum(n), 0) FROM counts WHERE owner = ?1 AND state IN ({states}) \
             AND ?2 IS NOT NULL"
        );
        return (sql, binds);
    }
    let sql = format!(
        "SELECT count(*) FROM tasks WHERE {} AND state IN ({states}) AND since >= ?2",
        filter.scope
    );
    (sql, binds)
}

/// A query's filters in SQL: the owner is `?1` and the time `?2`.
struct Filter {
    scope: &'static str,
    /// The states asked for, as SQL expressions.
    states: Vec<String>,
}

impl Filter {
    /// The filter, and what it binds.
    fn of(owner: i64, query: &ListQuery) -> (Self, Vec<Value>) {
        let after = query.status_after.map_or(i64::MIN, Timestamp::as_millis);
        let mut binds = vec![Value::from(owner), Value::from(after)];
        let scope = match &query.context_id {
            None => "owner = ?1",
            Some(context) => {
                binds.push(context.as_str().to_owned().into());
                "owner = ?1 AND context = ?3"
            }
        };
        let states = match query.state {
            None => STATES.iter().map(|(_, code)| code.to_string()).collect(),
            Some(state) => {
                binds.push(codes::state_code(state).into());
                vec![format!("?{}", binds.len())]
            }
        };
        (Self { scope, states }, binds)
    }
}
