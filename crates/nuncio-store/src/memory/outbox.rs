//! Webhook deliveries: one queue per task and config, of which only the head can be claimed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use nuncio_core::{Owner, TaskId, Timestamp};

use crate::{DeadDelivery, Delivery, NewDelivery, NodeId, Settlement};

type Route = (Arc<TaskId>, Arc<str>);

#[derive(Debug, Default)]
pub(super) struct Outbox {
    newest: u64,
    rows: HashMap<u64, Pending>,
    queues: HashMap<Route, VecDeque<u64>>,
    /// The heads of the queues, by when they are due.
    due: BTreeSet<(Timestamp, u64)>,
    dead: BTreeMap<u64, DeadDelivery>,
    dead_of: HashMap<Arc<TaskId>, Vec<u64>>,
}

#[derive(Debug)]
struct Pending {
    owner: Owner,
    route: Route,
    what: NewDelivery,
    attempts: u32,
    claimed_by: Option<NodeId>,
}

impl Pending {
    fn delivery(&self, id: u64) -> Delivery {
        Delivery {
            id,
            owner: self.owner.clone(),
            task: TaskId::clone(&self.route.0),
            config: self.what.config.clone(),
            seq: self.what.seq,
            body: self.what.body.clone(),
            attempts: self.attempts,
        }
    }
}

impl Outbox {
    pub(super) fn push(&mut self, owner: &Owner, task: &Arc<TaskId>, what: NewDelivery) {
        self.newest += 1;
        let id = self.newest;
        let route: Route = (Arc::clone(task), what.config.as_str().into());
        let queue = self.queues.entry(route.clone()).or_default();
        if queue.is_empty() {
            self.due.insert((what.due, id));
        }
        queue.push_back(id);
        let owner = owner.clone();
        self.rows.insert(
            id,
            Pending {
                owner,
                route,
                what,
                attempts: 0,
                claimed_by: None,
            },
        );
    }

    pub(super) fn claim(
        &mut self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Vec<Delivery> {
        let due: Vec<_> = self
            .due
            .iter()
            .take_while(|(due, _)| *due <= now)
            .take(limit)
            .copied()
            .collect();
        let mut claimed = Vec::with_capacity(due.len());
        for place in due {
            let Some(row) = self.rows.get_mut(&place.1) else {
                continue;
            };
            claimed.push(row.delivery(place.1));
            row.attempts = row.attempts.saturating_add(1);
            row.claimed_by = Some(node.clone());
            row.what.due = until;
            self.due.remove(&place);
            self.due.insert((until, place.1));
        }
        claimed
    }

    pub(super) fn settle(&mut self, node: &NodeId, id: u64, settlement: Settlement) {
        let Some(row) = self
            .rows
            .get_mut(&id)
            .filter(|r| r.claimed_by.as_ref() == Some(node))
        else {
            return;
        };
        self.due.remove(&(row.what.due, id));
        match settlement {
            Settlement::Retry { due } => {
                row.claimed_by = None;
                row.what.due = due;
                self.due.insert((due, id));
            }
            Settlement::Delivered => {
                self.take(id);
            }
            Settlement::Dead { reason } => {
                if let Some(row) = self.take(id) {
                    self.dead_of
                        .entry(Arc::clone(&row.route.0))
                        .or_default()
                        .push(id);
                    self.dead.insert(
                        id,
                        DeadDelivery {
                            delivery: row.delivery(id),
                            reason,
                        },
                    );
                }
            }
        }
    }

    /// Takes a head out; the next of its queue becomes the head.
    fn take(&mut self, id: u64) -> Option<Pending> {
        let row = self.rows.remove(&id)?;
        if let Some(queue) = self.queues.get_mut(&row.route) {
            queue.pop_front();
            match queue.front() {
                Some(next) => {
                    self.due
                        .extend(self.rows.get(next).map(|row| (row.what.due, *next)));
                }
                None => {
                    self.queues.remove(&row.route);
                }
            }
        }
        Some(row)
    }

    pub(super) fn dead(&self, after: u64, limit: usize) -> Vec<DeadDelivery> {
        let newer = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        self.dead
            .range(newer)
            .take(limit)
            .map(|(_, dead)| dead.clone())
            .collect()
    }

    /// Forgets the deliveries given up of a task that is removed.
    pub(super) fn forget_dead(&mut self, task: &TaskId) {
        for id in self.dead_of.remove(task).unwrap_or_default() {
            self.dead.remove(&id);
        }
    }
}
