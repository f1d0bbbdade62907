//! Webhook deliveries. Of each push config, the oldest that is neither delivered nor given up is
//! marked as the one to claim, so that a claim looks at those only; and they are indexed by
//! destination, so that a destination with a long queue costs the others nothing.

use nuncio_core::{Owner, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::{
    codes::{self, int, time, uint},
    desk::Desk,
    error::Failure,
};
use crate::{Claim, Delivery, DeliveryFilter, DeliveryState, NodeId, Notice, Settlement};

/// A claim looks at so many destinations at most: everybody waits for it.
const CLAIM_DESTINATIONS: usize = 256;

const DELIVERY: &str = "SELECT d.id, o.key, t.id, c.id, d.seq, d.destination, d.attempts, d.since,
        d.place, d.due, d.reason
     FROM deliveries d JOIN tasks t ON t.num = d.task JOIN owners o ON o.id = t.owner
          JOIN push_configs c ON c.num = d.config";

/// The destination after `?1` that has anything to be delivered.
pub(super) const NEXT_DESTINATION: &str =
    "SELECT destination FROM deliveries WHERE place = 1 AND destination > ?1
     ORDER BY destination LIMIT 1";

/// What is due at a destination, first what has been due for longest.
pub(super) fn due_sql() -> String {
    format!(
        "{DELIVERY} WHERE d.place = 1 AND d.destination = :to AND d.due <= :now
         ORDER BY d.due, d.id LIMIT :limit"
    )
}

/// A delivery that is to change.
struct Found {
    task: i64,
    config: i64,
    place: i64,
    claimed: bool,
}

impl Desk<'_> {
    /// Makes an entry's deliveries, one for each of its task's push configs; says how many.
    pub(super) fn notify(&mut self, task: i64, notices: &[Notice]) -> rusqlite::Result<usize> {
        let conn = self.conn();
        let configs: Vec<(i64, String)> = conn
            .prepare_cached(
                "SELECT num, destination FROM push_configs WHERE task = ?1 ORDER BY num",
            )?
            .query_map([task], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut insert = conn.prepare_cached(
            "INSERT INTO deliveries
                 (id, task, config, seq, destination, place, due, since, attempts)
             VALUES (?1, ?2, ?3, ?4, ?5,
                     NOT EXISTS (SELECT 1 FROM deliveries WHERE config = ?3 AND place < 2),
                     ?6, ?6, 0)",
        )?;
        for notice in notices {
            for (config, destination) in &configs {
                insert.execute(params![
                    self.take_delivery_number(),
                    task,
                    config,
                    int(notice.seq),
                    destination,
                    notice.due.as_millis(),
                ])?;
            }
        }
        Ok(notices.len() * configs.len())
    }

    /// Keeps a task that has ended as long as it has deliveries to be made, and no longer.
    pub(super) fn hold(&self, task: i64) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "UPDATE tasks SET held = NOT held WHERE num = ?1 AND held <> EXISTS
                     (SELECT 1 FROM deliveries WHERE task = ?1 AND place < 2)",
            )?
            .execute([task])
            .map(drop)
    }

    pub(super) fn claim_deliveries(&mut self, claim: &Claim) -> Result<Vec<Delivery>, Failure> {
        let conn = self.conn();
        let mut next = conn.prepare_cached(NEXT_DESTINATION)?;
        let mut due = conn.prepare_cached(&due_sql())?;
        let mut mark = conn.prepare_cached(
            "UPDATE deliveries SET node = ?2, due = ?3, attempts = attempts + 1 WHERE id = ?1",
        )?;
        let mut claimed: Vec<Delivery> = Vec::new();
        let start = self.claimed_last().to_owned();
        let mut at = start.clone();
        let mut wrapped = false;
        for _ in 0..CLAIM_DESTINATIONS {
            let room = claim.limit - claimed.len();
            if room == 0 {
                break;
            }
            let found: Option<String> = next.query_row([&at], |row| row.get(0)).optional()?;
            let Some(destination) = found else {
                if wrapped {
                    break;
                }
                // No destination is the empty text.
                wrapped = true;
                at.clear();
                continue;
            };
            if wrapped && destination > start {
                break;
            }
            let under_way = claim.under_way.get(&destination).copied().unwrap_or(0);
            let limit = room.min(claim.per_destination.saturating_sub(under_way));
            if limit > 0 {
                let found = due
                    .query_map(
                        named_params! {
                            ":to": destination,
                            ":now": claim.now.as_millis(),
                            ":limit": int(limit),
                        },
                        delivery,
                    )?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                for delivery in &found {
                    mark.execute(params![
                        int(delivery.id),
                        claim.node.0,
                        claim.until.as_millis()
                    ])?;
                }
                claimed.extend(found);
            }
            at = destination;
        }
        self.set_claimed_last(at);
        Ok(claimed)
    }

    pub(super) fn settle_delivery(
        &mut self,
        node: &NodeId,
        id: u64,
        settlement: &Settlement,
    ) -> Result<(), Failure> {
        let conn = self.conn();
        let mine = conn
            .prepare_cached("SELECT 1 FROM deliveries WHERE id = ?1 AND place = 1 AND node = ?2")?
            .exists(params![int(id), node.0])?;
        let Some(found) = self.find(id)?.filter(|_| mine) else {
            return Ok(());
        };
        match settlement {
            Settlement::Retry { due, reason } => {
                // Meanwhile an older one may have come back from those given up.
                conn.prepare_cached(
                    "UPDATE deliveries SET place = 0, node = NULL, due = ?2, reason = ?3
                     WHERE id = ?1",
                )?
                .execute(params![int(id), due.as_millis(), reason])?;
            }
            Settlement::Delivered => self.remove(id)?,
            Settlement::Dead { reason } => self.give_up(id, reason)?,
            Settlement::Gone => self.remove_config(found.task, found.config)?,
        }
        self.advance(found.config)?;
        self.hold(found.task)?;
        Ok(())
    }

    pub(super) fn expire_deliveries(
        &mut self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Result<usize, Failure> {
        let old: Vec<u64> = self
            .conn()
            .prepare_cached(
                "SELECT id FROM deliveries WHERE place = 1 AND node IS NULL AND since < ?1
                 ORDER BY id LIMIT ?2",
            )?
            .query_map(params![before.as_millis(), int(limit)], |row| {
                row.get(0).map(uint)
            })?
            .collect::<rusqlite::Result<_>>()?;
        for id in &old {
            if let Some(found) = self.find(*id)? {
                self.give_up(*id, reason)?;
                self.advance(found.config)?;
                self.hold(found.task)?;
            }
        }
        Ok(old.len())
    }

    pub(super) fn retry_delivery(&mut self, id: u64, now: Timestamp) -> Result<bool, Failure> {
        let Some(found) = self.find(id)? else {
            return Ok(false);
        };
        let conn = self.conn();
        if found.place < 2 {
            if !found.claimed {
                conn.prepare_cached("UPDATE deliveries SET due = ?2 WHERE id = ?1")?
                    .execute(params![int(id), now.as_millis()])?;
            }
            return Ok(true);
        }
        // It is the oldest again, unless a younger one is on its way: then it is the next.
        conn.prepare_cached(
            "UPDATE deliveries SET place = 0 WHERE config = ?1 AND place = 1 AND node IS NULL",
        )?
        .execute([found.config])?;
        conn.prepare_cached(
            "UPDATE deliveries SET place = 0, due = ?2, since = ?2, attempts = 0 WHERE id = ?1",
        )?
        .execute(params![int(id), now.as_millis()])?;
        self.advance(found.config)?;
        self.hold(found.task)?;
        Ok(true)
    }

    pub(super) fn drop_delivery(&mut self, id: u64) -> Result<bool, Failure> {
        let Some(found) = self.find(id)? else {
            return Ok(false);
        };
        self.remove(id)?;
        self.advance(found.config)?;
        self.hold(found.task)?;
        Ok(true)
    }

    fn find(&self, id: u64) -> rusqlite::Result<Option<Found>> {
        self.conn()
            .prepare_cached(
                "SELECT task, config, place, node IS NOT NULL FROM deliveries WHERE id = ?1",
            )?
            .query_row([int(id)], |row| {
                Ok(Found {
                    task: row.get(0)?,
                    config: row.get(1)?,
                    place: row.get(2)?,
                    claimed: row.get(3)?,
                })
            })
            .optional()
    }

    fn remove(&self, id: u64) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached("DELETE FROM deliveries WHERE id = ?1")?
            .execute([int(id)])
            .map(drop)
    }

    fn give_up(&self, id: u64, reason: &str) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "UPDATE deliveries SET place = 2, node = NULL, reason = ?2 WHERE id = ?1",
            )?
            .execute(params![int(id), reason])
            .map(drop)
    }

    /// Removes a push config and its deliveries.
    pub(super) fn remove_config(&self, task: i64, config: i64) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached("DELETE FROM deliveries WHERE task = ?1 AND config = ?2")?
            .execute([task, config])?;
        self.conn()
            .prepare_cached("DELETE FROM push_configs WHERE num = ?1")?
            .execute([config])
            .map(drop)
    }

    /// Marks the oldest of a config's deliveries as the one to claim, where none is.
    fn advance(&self, config: i64) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "UPDATE deliveries SET place = 1 WHERE id =
                     (SELECT min(id) FROM deliveries WHERE config = ?1 AND place < 2)
                     AND NOT EXISTS (SELECT 1 FROM deliveries WHERE config = ?1 AND place = 1)",
            )?
            .execute([config])
            .map(drop)
    }
}

/// Makes due what an earlier process had claimed: it can't be alive.
pub(super) fn recover(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute(
        "UPDATE deliveries SET node = NULL, due = since WHERE place = 1 AND node IS NOT NULL",
        [],
    )
    .map(drop)
}

pub(super) fn list(
    conn: &Connection,
    filter: DeliveryFilter,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<(Delivery, DeliveryState)>> {
    let places = match filter {
        DeliveryFilter::Waiting => "d.place < 2",
        DeliveryFilter::Dead => "d.place = 2",
    };
    conn.prepare_cached(&format!(
        "{DELIVERY} WHERE {places} AND d.id > ?1 ORDER BY d.id LIMIT ?2"
    ))?
    .query_map([int(after), int(limit)], |row| {
        let reason: Option<String> = row.get(10)?;
        let state = if row.get::<_, i64>(8)? == 2 {
            DeliveryState::Dead {
                reason: reason.unwrap_or_default(),
            }
        } else {
            DeliveryState::Waiting {
                due: time(row.get(9)?),
                reason,
            }
        };
        Ok((delivery(row)?, state))
    })?
    .collect()
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let owner: String = row.get(1)?;
    Ok(Delivery {
        id: uint(row.get(0)?),
        owner: Owner::from_stored(&owner),
        task: codes::task_id(2, row.get(2)?)?,
        config: row.get(3)?,
        seq: uint(row.get(4)?),
        destination: row.get(5)?,
        attempts: u32::try_from(row.get::<_, i64>(6)?).unwrap_or(u32::MAX),
        since: time(row.get(7)?),
    })
}
