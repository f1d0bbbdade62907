//! Push notification configs.

use nuncio_core::{Owner, TaskId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{codes::int, desk::Desk, error::Failure, query};
use crate::{PushConfigRow, StoreError};

impl Desk<'_> {
    pub(super) fn set_push_config(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        config: &PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let num = query::owned(self.conn(), owner, task)?.ok_or(StoreError::NotFound)?;
        let conn = self.conn();
        let known: Option<i64> = conn
            .prepare_cached("SELECT num FROM push_configs WHERE task = ?1 AND id = ?2")?
            .query_row(params![num, config.id], |row| row.get(0))
            .optional()?;
        if let Some(known) = known {
            conn.prepare_cached(
                "UPDATE push_configs SET destination = ?2, body = ?3 WHERE num = ?1",
            )?
            .execute(params![known, config.destination, &config.body[..]])?;
            conn.prepare_cached(
                "UPDATE deliveries SET destination = ?3 WHERE task = ?1 AND config = ?2",
            )?
            .execute(params![num, known, config.destination])?;
            conn.prepare_cached(
                "UPDATE deliveries SET due = ?2
                 WHERE config = ?1 AND place < 2 AND node IS NULL AND due > ?2",
            )?
            .execute(params![known, now.as_millis()])?;
            return Ok(());
        }
        let count: i64 = conn
            .prepare_cached("SELECT count(*) FROM push_configs WHERE task = ?1")?
            .query_row([num], |row| row.get(0))?;
        if count >= int(limit) {
            return Err(StoreError::TooManyPushConfigs.into());
        }
        Ok(self.add_push_config(num, config)?)
    }

    pub(super) fn add_push_config(
        &self,
        task: i64,
        config: &PushConfigRow,
    ) -> rusqlite::Result<()> {
        self.conn()
            .prepare_cached(
                "INSERT INTO push_configs (task, id, destination, body) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                task,
                config.id,
                config.destination,
                &config.body[..]
            ])
            .map(drop)
    }

    pub(super) fn delete_push_config(
        &mut self,
        owner: &Owner,
        task: &TaskId,
        id: &str,
    ) -> Result<bool, Failure> {
        let num = query::owned(self.conn(), owner, task)?.ok_or(StoreError::NotFound)?;
        let config: Option<i64> = self
            .conn()
            .prepare_cached("SELECT num FROM push_configs WHERE task = ?1 AND id = ?2")?
            .query_row(params![num, id], |row| row.get(0))
            .optional()?;
        if let Some(config) = config {
            self.remove_config(num, config)?;
            self.hold(num)?;
        }
        Ok(config.is_some())
    }
}

pub(super) fn list(
    conn: &Connection,
    owner: &Owner,
    task: &TaskId,
) -> Result<Vec<PushConfigRow>, Failure> {
    let num = query::owned(conn, owner, task)?.ok_or(StoreError::NotFound)?;
    let rows = conn
        .prepare_cached(
            "SELECT id, destination, body FROM push_configs WHERE task = ?1 ORDER BY num",
        )?
        .query_map([num], |row| {
            let body: Vec<u8> = row.get(2)?;
            Ok(PushConfigRow {
                id: row.get(0)?,
                destination: row.get(1)?,
                body: body.into(),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows)
}
