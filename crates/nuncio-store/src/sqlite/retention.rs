//! Removing finished tasks and old logs, a little at a time.

use nuncio_core::Timestamp;
use rusqlite::params;

use super::{
    codes::{self, MAX_SEQ, int, place, time},
    desk::Desk,
    error::Failure,
};
use crate::{Pruned, Retention};

/// A step ends early once it has removed so many log rows: everybody waits for it.
const STEP_ROWS: usize = 10_000;

impl Desk<'_> {
    pub(super) fn prune(&mut self, policy: &Retention, limit: usize) -> Result<Pruned, Failure> {
        let mut step = Step {
            left: limit,
            rows: 0,
            pruned: Pruned::default(),
        };
        self.prune_tasks(policy, &mut step)?;
        if let Some(before) = policy.entries_before {
            self.prune_logs(before, &mut step)?;
        }
        self.expire_keys(Timestamp::now(), limit)?;
        Ok(step.pruned)
    }

    fn prune_tasks(&mut self, policy: &Retention, step: &mut Step) -> rusqlite::Result<()> {
        if policy.finished_before.is_none() && policy.max_finished.is_none() {
            return Ok(());
        }
        let conn = self.conn();
        let first_ended: Vec<(i64, i64, i64, Timestamp)> = conn
            .prepare_cached(
                "SELECT num, owner, state, since FROM tasks WHERE state >= 6 AND held = 0 AND log = 0
                 UNION ALL
                 SELECT num, owner, state, since FROM tasks WHERE state >= 6 AND held = 0 AND log = 1
                 UNION ALL
                 SELECT num, owner, state, since FROM tasks WHERE state >= 6 AND held = 0 AND log = 2
                 ORDER BY since, num LIMIT ?1",
            )?
            .query_map([int(step.left)], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, time(r.get(3)?)))
            })?
            .collect::<rusqlite::Result<_>>()?;
        for (num, owner, state, since) in first_ended {
            let over = policy.max_finished.is_some_and(|max| self.finished() > max);
            let old = policy.finished_before.is_some_and(|before| since < before);
            if !(over || old) || !step.goes_on() {
                break;
            }
            step.rows += self.remove_log(num)?;
            conn.prepare_cached("DELETE FROM checkpoints WHERE task = ?1")?
                .execute([num])?;
            conn.prepare_cached("DELETE FROM tasks WHERE num = ?1")?
                .execute([num])?;
            conn.prepare_cached("DELETE FROM deliveries WHERE task = ?1")?
                .execute([num])?;
            conn.prepare_cached("DELETE FROM push_configs WHERE task = ?1")?
                .execute([num])?;
            self.count(owner, codes::state(2, state)?, -1);
            step.left -= 1;
            step.pruned.tasks += 1;
        }
        Ok(())
    }

    fn prune_logs(&mut self, before: Timestamp, step: &mut Step) -> rusqlite::Result<()> {
        let conn = self.conn();
        let spare: Vec<i64> = conn
            .prepare_cached(
                "SELECT num FROM tasks WHERE state >= 6 AND held = 0 AND log = 1 AND since < ?1
                 ORDER BY since, num LIMIT ?2",
            )?
            .query_map(params![before.as_millis(), int(step.left)], |r| r.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for num in spare {
            if !step.goes_on() {
                break;
            }
            step.rows += self.remove_log(num)?;
            conn.prepare_cached("UPDATE tasks SET log = 0 WHERE num = ?1")?
                .execute([num])?;
            step.left -= 1;
            step.pruned.logs += 1;
        }
        Ok(())
    }

    fn remove_log(&self, num: i64) -> rusqlite::Result<usize> {
        self.conn()
            .prepare_cached("DELETE FROM log WHERE place BETWEEN ?1 AND ?2")?
            .execute([place(num, 0), place(num, MAX_SEQ)])
    }
}

/// How far a step of pruning has come.
struct Step {
    left: usize,
    rows: usize,
    pruned: Pruned,
}

impl Step {
    fn goes_on(&self) -> bool {
        self.left > 0 && self.rows < STEP_ROWS
    }
}
