//! Webhook deliveries. Of each task and config, the oldest that is neither delivered nor given up
//! is marked as the one to claim, so that a claim looks at those only.

use nuncio_core::{Owner, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::codes::{self, int, uint};
use crate::{DeadDelivery, Delivery, NewDelivery, NodeId, Settlement};

pub(super) fn push(
    conn: &Connection,
    id: i64,
    owner: i64,
    task: &TaskId,
    delivery: &NewDelivery,
) -> rusqlite::Result<()> {
    let behind = conn
        .prepare_cached("SELECT 1 FROM deliveries WHERE task = ?1 AND config = ?2 AND place < 2")?
        .exists([task.as_str(), &delivery.config])?;
    conn.prepare_cached(
        "INSERT INTO deliveries (id, owner, task, config, seq, place, due, attempts, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)",
    )?
    .execute(params![
        id,
        owner,
        task.as_str(),
        delivery.config,
        int(delivery.seq),
        !behind,
        delivery.due.as_millis(),
        &delivery.body[..],
    ])?;
    Ok(())
}

pub(super) fn claim(
    conn: &Connection,
    node: &NodeId,
    now: Timestamp,
    until: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Delivery>> {
    let due: Vec<Delivery> = conn
        .prepare_cached(
            "SELECT d.id, o.key, d.task, d.config, d.seq, d.body, d.attempts
             FROM deliveries d JOIN owners o ON o.id = d.owner
             WHERE d.place = 1 AND d.due <= ?1 ORDER BY d.due, d.id LIMIT ?2",
        )?
        .query_map(params![now.as_millis(), int(limit)], delivery)?
        .collect::<rusqlite::Result<_>>()?;
    let mut mark = conn.prepare_cached(
        "UPDATE deliveries SET node = ?2, due = ?3, attempts = attempts + 1 WHERE id = ?1",
    )?;
    for delivery in &due {
        mark.execute(params![int(delivery.id), node.0, until.as_millis()])?;
    }
    Ok(due)
}

pub(super) fn settle(
    conn: &Connection,
    node: &NodeId,
    id: u64,
    settlement: &Settlement,
) -> rusqlite::Result<()> {
    let id = int(id);
    let route: Option<(String, String)> = conn
        .prepare_cached(
            "SELECT task, config FROM deliveries WHERE id = ?1 AND place = 1 AND node = ?2",
        )?
        .query_row(params![id, node.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((task, config)) = route else {
        return Ok(());
    };
    match settlement {
        Settlement::Retry { due } => {
            conn.prepare_cached("UPDATE deliveries SET node = NULL, due = ?2 WHERE id = ?1")?
                .execute([id, due.as_millis()])?;
            return Ok(());
        }
        Settlement::Delivered => {
            conn.prepare_cached("DELETE FROM deliveries WHERE id = ?1")?
                .execute([id])?;
        }
        Settlement::Dead { reason } => {
            conn.prepare_cached(
                "UPDATE deliveries SET place = 2, node = NULL, reason = ?2 WHERE id = ?1",
            )?
            .execute(params![id, reason])?;
        }
    }
    conn.prepare_cached(
        "UPDATE deliveries SET place = 1 WHERE id =
             (SELECT min(id) FROM deliveries WHERE task = ?1 AND config = ?2 AND place < 2)",
    )?
    .execute([task, config])?;
    Ok(())
}

pub(super) fn dead(
    conn: &Connection,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<DeadDelivery>> {
    conn.prepare_cached(
        "SELECT d.id, o.key, d.task, d.config, d.seq, d.body, d.attempts, d.reason
         FROM deliveries d JOIN owners o ON o.id = d.owner
         WHERE d.place = 2 AND d.id > ?1 ORDER BY d.id LIMIT ?2",
    )?
    .query_map([int(after), int(limit)], |row| {
        let reason: Option<String> = row.get(7)?;
        Ok(DeadDelivery {
            delivery: delivery(row)?,
            reason: reason.unwrap_or_default(),
        })
    })?
    .collect()
}

/// Forgets the deliveries given up of a task that is removed.
pub(super) fn forget_dead(conn: &Connection, task: &TaskId) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM deliveries WHERE task = ?1 AND place = 2")?
        .execute([task.as_str()])
        .map(drop)
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let owner: String = row.get(1)?;
    let body: Vec<u8> = row.get(5)?;
    Ok(Delivery {
        id: uint(row.get(0)?),
        owner: Owner::from_stored(&owner),
        task: codes::task_id(2, row.get(2)?)?,
        config: row.get(3)?,
        seq: uint(row.get(4)?),
        body: body.into(),
        attempts: u32::try_from(row.get::<_, i64>(6)?).unwrap_or(u32::MAX),
    })
}
