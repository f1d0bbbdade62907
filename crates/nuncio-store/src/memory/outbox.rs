//! Push notification configs and their deliveries: one queue per config, of which only the head
//! can be claimed, and the heads in the order of their destinations.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};

use nuncio_core::{Owner, TaskId, Timestamp};

use crate::{
    Claim, Delivery, DeliveryFilter, DeliveryState, NodeId, Notice, PushConfigRow, Settlement,
};

#[derive(Debug, Default)]
pub(super) struct Outbox {
    newest: u64,
    configs: HashMap<Arc<TaskId>, Vec<Config>>,
    rows: BTreeMap<u64, Pending>,
    /// The heads of the queues: by destination, and there by when they are due.
    heads: BTreeMap<String, BTreeSet<(Timestamp, u64)>>,
    /// Where the last claim ended.
    claimed_last: String,
}

#[derive(Debug)]
struct Config {
    row: PushConfigRow,
    /// What is to be delivered. Among these is the one that may be claimed.
    queue: BTreeSet<u64>,
    head: Option<u64>,
    dead: BTreeSet<u64>,
}

#[derive(Debug)]
struct Pending {
    delivery: Delivery,
    task: Arc<TaskId>,
    due: Timestamp,
    claimed_by: Option<NodeId>,
    reason: Option<String>,
    dead: bool,
}

impl Outbox {
    pub(super) fn configs(&self, task: &TaskId) -> Vec<PushConfigRow> {
        let configs = self.configs.get(task).into_iter().flatten();
        configs.map(|config| config.row.clone()).collect()
    }

    /// Sets a config; `false` where there would be more than `limit`.
    pub(super) fn set(
        &mut self,
        task: &Arc<TaskId>,
        row: PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> bool {
        let configs = self.configs.entry(Arc::clone(task)).or_default();
        let Some(known) = configs.iter_mut().find(|c| c.row.id == row.id) else {
            if configs.len() >= limit {
                return false;
            }
            configs.push(Config {
                row,
                queue: BTreeSet::new(),
                head: None,
                dead: BTreeSet::new(),
            });
            return true;
        };
        let head = known.head;
        let deliveries: Vec<u64> = known.queue.iter().chain(&known.dead).copied().collect();
        known.row = row.clone();
        if let Some(head) = head {
            self.unhead(head);
        }
        for id in deliveries {
            if let Some(pending) = self.rows.get_mut(&id) {
                pending.delivery.destination.clone_from(&row.destination);
                if pending.claimed_by.is_none() && !pending.dead {
                    pending.due = pending.due.min(now);
                }
            }
        }
        if let Some(head) = head {
            self.enhead(head);
        }
        true
    }

    /// Removes a config with its deliveries.
    pub(super) fn delete(&mut self, task: &TaskId, id: &str) -> bool {
        let Some(configs) = self.configs.get_mut(task) else {
            return false;
        };
        let Some(at) = configs.iter().position(|c| c.row.id == id) else {
            return false;
        };
        let gone = configs.remove(at);
        if configs.is_empty() {
            self.configs.remove(task);
        }
        if let Some(head) = gone.head {
            self.unhead(head);
        }
        for id in gone.queue.into_iter().chain(gone.dead) {
            self.rows.remove(&id);
        }
        true
    }

    /// Whether a task has deliveries to be made.
    pub(super) fn holds(&self, task: &TaskId) -> bool {
        let mut configs = self.configs.get(task).into_iter().flatten();
        configs.any(|config| !config.queue.is_empty())
    }

    /// Forgets a task that is removed.
    pub(super) fn forget(&mut self, task: &TaskId) {
        for config in self.configs(task) {
            self.delete(task, &config.id);
        }
    }

    /// Makes deliveries, one for each of the task's configs and each notice; says how many.
    pub(super) fn notify(
        &mut self,
        owner: &Owner,
        task: &Arc<TaskId>,
        notices: &[Notice],
    ) -> usize {
        let configs = self.configs(task);
        for notice in notices {
            for config in &configs {
                self.newest += 1;
                let id = self.newest;
                let delivery = Delivery {
                    id,
                    owner: owner.clone(),
                    task: TaskId::clone(task),
                    config: config.id.clone(),
                    seq: notice.seq,
                    destination: config.destination.clone(),
                    attempts: 0,
                    since: notice.due,
                };
                let pending = Pending {
                    delivery,
                    task: Arc::clone(task),
                    due: notice.due,
                    claimed_by: None,
                    reason: None,
                    dead: false,
                };
                self.rows.insert(id, pending);
                if let Some(config) = self.config(id) {
                    config.queue.insert(id);
                }
                self.advance(id);
            }
        }
        notices.len() * configs.len()
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Vec<Delivery> {
        let after = (Excluded(self.claimed_last.clone()), Unbounded);
        let destinations: Vec<String> = self
            .heads
            .range(after)
            .chain(self.heads.range(..=self.claimed_last.clone()))
            .map(|(to, _)| to.clone())
            .collect();
        let mut claimed = Vec::new();
        for destination in destinations {
            let room = claim.limit - claimed.len();
            if room == 0 {
                break;
            }
            let under_way = claim.under_way.get(&destination).copied().unwrap_or(0);
            let limit = room.min(claim.per_destination.saturating_sub(under_way));
            let due: Vec<_> = self
                .heads
                .get(&destination)
                .into_iter()
                .flatten()
                .take_while(|(due, _)| *due <= claim.now)
                .take(limit)
                .map(|(_, id)| *id)
                .collect();
            for id in due {
                self.unhead(id);
                if let Some(pending) = self.rows.get_mut(&id) {
                    claimed.push(pending.delivery.clone());
                    pending.delivery.attempts = pending.delivery.attempts.saturating_add(1);
                    pending.claimed_by = Some(claim.node.clone());
                    pending.due = claim.until;
                }
                self.enhead(id);
            }
            self.claimed_last = destination;
        }
        claimed
    }

    /// Settles an attempt; gives the task where it may have nothing left to be delivered.
    pub(super) fn settle(
        &mut self,
        node: &NodeId,
        id: u64,
        settlement: Settlement,
    ) -> Option<Arc<TaskId>> {
        let pending = self
            .rows
            .get(&id)
            .filter(|p| p.claimed_by.as_ref() == Some(node))?;
        let task = Arc::clone(&pending.task);
        match settlement {
            Settlement::Retry { due, reason } => {
                self.unhead(id);
                if let Some(pending) = self.rows.get_mut(&id) {
                    pending.claimed_by = None;
                    pending.due = due;
                    pending.reason = Some(reason);
                }
                // Meanwhile an older one may have come back from those given up.
                if let Some(config) = self.config(id) {
                    config.head = None;
                }
                self.advance(id);
            }
            Settlement::Delivered => {
                self.drop(id);
            }
            Settlement::Dead { reason } => self.give_up(id, reason),
            Settlement::Gone => {
                let config = pending.delivery.config.clone();
                self.delete(&task, &config);
            }
        }
        Some(task)
    }

    /// Gives up what was first due before a time; gives the tasks of what it gave up.
    pub(super) fn expire(
        &mut self,
        before: Timestamp,
        reason: &str,
        limit: usize,
    ) -> Vec<Arc<TaskId>> {
        let mut old: Vec<u64> = self
            .heads
            .values()
            .flatten()
            .map(|(_, id)| *id)
            .filter(|id| {
                let pending = self.rows.get(id);
                pending.is_some_and(|p| p.claimed_by.is_none() && p.delivery.since < before)
            })
            .collect();
        old.sort_unstable();
        old.truncate(limit);
        old.into_iter()
            .filter_map(|id| {
                let task = Arc::clone(&self.rows.get(&id)?.task);
                self.give_up(id, reason.to_owned());
                Some(task)
            })
            .collect()
    }

    pub(super) fn list(
        &self,
        filter: DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Vec<(Delivery, DeliveryState)> {
        let newer = self.rows.range((Excluded(after), Unbounded));
        newer
            .filter(|(_, p)| p.dead == (filter == DeliveryFilter::Dead))
            .take(limit)
            .map(|(_, p)| {
                let reason = p.reason.clone();
                let state = if p.dead {
                    DeliveryState::Dead {
                        reason: reason.unwrap_or_default(),
                    }
                } else {
                    DeliveryState::Waiting { due: p.due, reason }
                };
                (p.delivery.clone(), state)
            })
            .collect()
    }

    /// Makes a delivery due; gives its task where there is one.
    pub(super) fn retry(&mut self, id: u64, now: Timestamp) -> Option<Arc<TaskId>> {
        let pending = self.rows.get(&id)?;
        let task = Arc::clone(&pending.task);
        let (was_dead, claimed) = (pending.dead, pending.claimed_by.is_some());
        if claimed {
            return Some(task);
        }
        let head = self.config(id)?.head;
        if let Some(head) = head {
            self.unhead(head);
        }
        if let Some(pending) = self.rows.get_mut(&id) {
            pending.due = now;
            if was_dead {
                pending.dead = false;
                pending.delivery.attempts = 0;
                pending.delivery.since = now;
            }
        }
        if was_dead {
            // It is the oldest again, unless a younger one is on its way: then it is the next.
            let under_way = head
                .and_then(|head| self.rows.get(&head))
                .is_some_and(|p| p.claimed_by.is_some());
            let config = self.config(id)?;
            config.dead.remove(&id);
            config.queue.insert(id);
            if !under_way {
                config.head = config.queue.first().copied();
            }
        }
        let head = self.config(id)?.head;
        if let Some(head) = head {
            self.enhead(head);
        }
        Some(task)
    }

    /// Removes a delivery; gives its task where there is one.
    pub(super) fn drop(&mut self, id: u64) -> Option<Arc<TaskId>> {
        let task = Arc::clone(&self.rows.get(&id)?.task);
        self.leave(id);
        if let Some(config) = self.config(id) {
            config.dead.remove(&id);
        }
        self.advance(id);
        self.rows.remove(&id);
        Some(task)
    }

    fn give_up(&mut self, id: u64, reason: String) {
        self.leave(id);
        if let Some(config) = self.config(id) {
            config.dead.insert(id);
        }
        if let Some(pending) = self.rows.get_mut(&id) {
            pending.dead = true;
            pending.claimed_by = None;
            pending.reason = Some(reason);
        }
        self.advance(id);
    }

    /// Takes a delivery out of its queue.
    fn leave(&mut self, id: u64) {
        self.unhead(id);
        if let Some(config) = self.config(id) {
            config.queue.remove(&id);
            config.head.take_if(|head| *head == id);
        }
    }

    /// Makes the oldest of a delivery's queue its head, where it has none.
    fn advance(&mut self, id: u64) {
        let Some(config) = self.config(id).filter(|config| config.head.is_none()) else {
            return;
        };
        config.head = config.queue.first().copied();
        if let Some(head) = config.head {
            self.enhead(head);
        }
    }

    /// The config of a delivery.
    fn config(&mut self, id: u64) -> Option<&mut Config> {
        let delivery = &self.rows.get(&id)?.delivery;
        let configs = self.configs.get_mut(&delivery.task)?;
        configs.iter_mut().find(|c| c.row.id == delivery.config)
    }

    fn enhead(&mut self, id: u64) {
        if let Some(pending) = self.rows.get(&id) {
            let to = pending.delivery.destination.clone();
            self.heads.entry(to).or_default().insert((pending.due, id));
        }
    }

    fn unhead(&mut self, id: u64) {
        let Some(pending) = self.rows.get(&id) else {
            return;
        };
        let to = &pending.delivery.destination;
        if let Some(heads) = self.heads.get_mut(to) {
            heads.remove(&(pending.due, id));
            if heads.is_empty() {
                self.heads.remove(to);
            }
        }
    }
}
