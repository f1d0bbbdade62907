//! Random calls, played against a store and against a naive model of all its rules.
//!
//! The model is written from the traits' documentation, with vectors and scans, and shares no
//! code with the stores. Names and numbers are drawn from so few that they meet all the time.
//! Answers are compared whole; the one thing left out is the wording of `Malformed`, and the
//! store's own clock in an idempotency record.

use bytes::Bytes;
use nuncio_core::{Owner, TaskId, TaskState, Timestamp};
use proptest::{prelude::*, test_runner::TestRunner};

use super::{FAR, at, block_on, context, entry, node, owner, task};
use crate::{
    Append, Appended, DeadDelivery, Delivery, Entry, Fence, IdempotencyKey, IdempotencyRecord,
    LeaseChange, ListCursor, ListPage, ListQuery, NewDelivery, NewTask, NodeId, Orphan, Pruned,
    Retention, Settlement, StatusRow, Store, StoreError, StoredTask,
};

const CASES: u32 = 96;
const NOW: i64 = 1000;

/// Plays random calls.
///
/// # Panics
/// Where an answer of the store is not the model's.
pub fn random_calls_answer_as_the_model_does<S: Store, G>(make: impl AsyncFn() -> (S, G)) {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    };
    let played = TestRunner::new(config).run(&prop::collection::vec(call(), 1..60), |calls| {
        block_on(async {
            let (store, _guard) = make().await;
            let mut model = Model::default();
            for call in calls {
                model.play(&store, call).await?;
            }
            model.compare(&store).await
        })
    });
    if let Err(e) = played {
        panic!("{e}");
    }
}

#[derive(Debug, Clone)]
enum Call {
    Create {
        owner: u8,
        id: u8,
        context: u8,
        what: What,
    },
    Append {
        owner: u8,
        id: u8,
        what: What,
    },
    Entries {
        owner: u8,
        id: u8,
        after: u64,
        limit: usize,
    },
    List {
        owner: u8,
        query: ListQuery,
    },
    Renew {
        node: u8,
        until: i64,
    },
    Orphans {
        node: u8,
        until: i64,
        limit: usize,
    },
    Claim {
        node: u8,
        now: i64,
        until: i64,
        limit: usize,
    },
    Settle {
        node: u8,
        id: u64,
        settlement: Settlement,
    },
    Prune {
        policy: Retention,
        limit: usize,
    },
}

/// An append, relative to where its task's log is.
#[derive(Debug, Clone)]
struct What {
    skew: i8,
    n: u64,
    status: Option<(TaskState, i64)>,
    checkpoint: bool,
    message: bool,
    fence: Option<u64>,
    lease: LeaseChange,
    key: Option<u8>,
    deliveries: Vec<(u8, i64)>,
}

fn call() -> impl Strategy<Value = Call> {
    let who = 0..2u8;
    let id = 0..4u8;
    let until = prop_oneof![Just(0), Just(NOW), Just(FAR)];
    let query = (
        prop::option::of(0..2u8),
        prop::option::of(state()),
        prop::option::of(0..6i64),
        prop::option::of((0..6i64, 0..4u8)),
        0..5u32,
    )
        .prop_map(|(ctx, state, status_after, after, limit)| ListQuery {
            context_id: ctx.map(context_name),
            state,
            status_after: status_after.map(at),
            after: after.map(|(since, id)| ListCursor {
                since: at(since),
                id: task_name(id),
            }),
            limit,
        });
    let settlement = prop_oneof![
        Just(Settlement::Delivered),
        (0..4i64).prop_map(|due| Settlement::Retry { due: at(due) }),
        Just(Settlement::Dead {
            reason: "given up".into()
        }),
    ];
    let policy = (
        prop::option::of(0..6i64),
        prop::option::of(0..6i64),
        prop::option::weighted(0.2, 0..3u64),
    )
        .prop_map(|(finished, entries, max_finished)| Retention {
            finished_before: finished.map(at),
            entries_before: entries.map(at),
            max_finished,
        });
    prop_oneof![
        4 => (who.clone(), id.clone(), 0..2u8, what())
            .prop_map(|(owner, id, context, what)| Call::Create { owner, id, context, what }),
        10 => (who.clone(), id.clone(), what())
            .prop_map(|(owner, id, what)| Call::Append { owner, id, what }),
        2 => (who.clone(), id, 0..9u64, 0..5usize)
            .prop_map(|(owner, id, after, limit)| Call::Entries { owner, id, after, limit }),
        3 => (who.clone(), query).prop_map(|(owner, query)| Call::List { owner, query }),
        1 => (who.clone(), until.clone()).prop_map(|(node, until)| Call::Renew { node, until }),
        1 => (who.clone(), until.clone(), 0..4usize)
            .prop_map(|(node, until, limit)| Call::Orphans { node, until, limit }),
        3 => (who.clone(), 0..4i64, until, 0..4usize)
            .prop_map(|(node, now, until, limit)| Call::Claim { node, now, until, limit }),
        3 => (who, 1..9u64, settlement)
            .prop_map(|(node, id, settlement)| Call::Settle { node, id, settlement }),
        1 => (policy, 0..4usize).prop_map(|(policy, limit)| Call::Prune { policy, limit }),
    ]
}

fn state() -> impl Strategy<Value = TaskState> {
    prop_oneof![
        4 => Just(TaskState::Working),
        1 => Just(TaskState::Submitted),
        1 => Just(TaskState::InputRequired),
        1 => Just(TaskState::Completed),
        1 => Just(TaskState::Failed),
    ]
}

fn what() -> impl Strategy<Value = What> {
    let lease = prop_oneof![
        3 => Just(LeaseChange::Keep),
        2 => (0..2u8, prop_oneof![Just(0), Just(FAR)])
            .prop_map(|(n, until)| LeaseChange::Take { node: node_name(n), until: at(until) }),
        1 => Just(LeaseChange::Release),
    ];
    (
        prop_oneof![8 => Just(0i8), 1 => -1..3i8],
        prop_oneof![1 => Just(0u64), 6 => 1..4u64],
        prop::option::of((state(), 0..6i64)),
        any::<bool>(),
        any::<bool>(),
        prop::option::weighted(0.3, 0..4u64),
        lease,
        prop::option::weighted(0.3, 0..3u8),
        prop::collection::vec((0..2u8, 0..4i64), 0..3),
    )
        .prop_map(
            |(skew, n, status, checkpoint, message, fence, lease, key, deliveries)| What {
                skew,
                n,
                status,
                checkpoint,
                message,
                fence,
                lease,
                key,
                deliveries,
            },
        )
}

fn owner_name(n: u8) -> Owner {
    owner(&format!("o{n}"))
}

fn task_name(n: u8) -> TaskId {
    task(&format!("t{n}"))
}

fn context_name(n: u8) -> nuncio_core::ContextId {
    context(&format!("c{n}"))
}

fn node_name(n: u8) -> NodeId {
    node(&format!("n{n}"))
}

fn key_name(n: u8) -> String {
    format!("k{n}")
}

impl What {
    fn append(&self, last_seq: u64) -> Append {
        let from = last_seq
            .saturating_add(1)
            .saturating_add_signed(self.skew.into());
        let entries: Vec<_> = (from..from + self.n).map(entry).collect();
        Append {
            status: self.status.map(|(state, since)| StatusRow {
                state,
                since: at(since),
            }),
            checkpoint: self
                .checkpoint
                .then(|| Bytes::from(format!("checkpoint at {from}"))),
            message_seq: self.message.then_some(from),
            fence: self.fence.map(Fence),
            lease: self.lease.clone(),
            idempotency: self.key.map(|key| IdempotencyKey {
                key: key_name(key),
                digest: [key; 32],
                // One of the keys has a window so short that it never counts.
                not_before: if key == 0 { at(FAR) } else { Timestamp::MIN },
            }),
            deliveries: self
                .deliveries
                .iter()
                .map(|(config, due)| NewDelivery {
                    config: format!("w{config}"),
                    seq: from,
                    due: at(*due),
                    body: Bytes::from(format!("delivery of {from}")),
                })
                .collect(),
            entries,
        }
    }
}

#[derive(Debug, Default)]
struct Model {
    tasks: Vec<Known>,
    keys: Vec<(Owner, String, IdempotencyRecord)>,
    outbox: Vec<Waiting>,
    dead: Vec<DeadDelivery>,
    deliveries: u64,
}

#[derive(Debug, Clone)]
struct Known {
    owner: Owner,
    stored: StoredTask,
    fence: u64,
    lease: Option<(NodeId, Timestamp)>,
    log: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Waiting {
    delivery: Delivery,
    due: Timestamp,
    claimed: Option<NodeId>,
}

type Played = Result<(), TestCaseError>;

impl Model {
    async fn play(&mut self, store: &dyn Store, call: Call) -> Played {
        match call {
            Call::Create {
                owner,
                id,
                context,
                what,
            } => {
                let new = NewTask {
                    id: task_name(id),
                    context_id: context_name(context),
                    first: what.append(0),
                };
                let expected = self.create(&owner_name(owner), new.clone());
                same(&expected, &store.create(&owner_name(owner), new).await)
            }
            Call::Append { owner, id, what } => {
                let (owner, id) = (owner_name(owner), task_name(id));
                let last = self
                    .find(&owner, &id)
                    .map_or(0, |i| self.tasks[i].stored.last_seq);
                let append = what.append(last);
                let expected = self.append(&owner, &id, &append);
                same(&expected, &store.append(&owner, &id, append).await)
            }
            Call::Entries {
                owner,
                id,
                after,
                limit,
            } => {
                let (owner, id) = (owner_name(owner), task_name(id));
                let expected = self.find(&owner, &id).map(|i| {
                    let log = self.tasks[i].log.iter().filter(|e| e.seq > after);
                    log.take(limit).cloned().collect::<Vec<_>>()
                });
                let got = store.entries(&owner, &id, after, limit).await;
                prop_assert_eq!(expected.ok_or(StoreError::NotFound), got);
                Ok(())
            }
            Call::List { owner, query } => {
                let expected = self.list(&owner_name(owner), &query);
                prop_assert_eq!(Ok(expected), store.list(&owner_name(owner), &query).await);
                Ok(())
            }
            Call::Renew { node, until } => {
                let node = node_name(node);
                for (holder, its) in self.tasks.iter_mut().filter_map(|t| t.lease.as_mut()) {
                    if *holder == node {
                        *its = at(until);
                    }
                }
                prop_assert_eq!(Ok(()), store.renew_leases(&node, at(until)).await);
                Ok(())
            }
            Call::Orphans { node, until, limit } => {
                let node = node_name(node);
                let expected = self.orphans(&node, at(until), limit);
                let got = store.claim_orphans(&node, at(NOW), at(until), limit).await;
                prop_assert_eq!(Ok(expected), got);
                Ok(())
            }
            Call::Claim {
                node,
                now,
                until,
                limit,
            } => {
                let node = node_name(node);
                let expected = self.claim(&node, at(now), at(until), limit);
                let got = store
                    .claim_deliveries(&node, at(now), at(until), limit)
                    .await;
                prop_assert_eq!(Ok(expected), got);
                Ok(())
            }
            Call::Settle {
                node,
                id,
                settlement,
            } => {
                let node = node_name(node);
                self.settle(&node, id, &settlement);
                prop_assert_eq!(Ok(()), store.settle_delivery(&node, id, settlement).await);
                Ok(())
            }
            Call::Prune { policy, limit } => {
                let expected = self.prune(&policy, limit);
                prop_assert_eq!(Ok(expected), store.prune(&policy, limit).await);
                Ok(())
            }
        }
    }

    /// Compares all that can be read.
    async fn compare(&self, store: &dyn Store) -> Played {
        for owner in (0..2).map(owner_name) {
            for id in (0..4).map(task_name) {
                let expected = self.find(&owner, &id).map(|i| &self.tasks[i]);
                let stored = expected
                    .map(|t| t.stored.clone())
                    .ok_or(StoreError::NotFound);
                prop_assert_eq!(stored, store.load(&owner, &id).await);
                let log = expected.map(|t| t.log.clone()).ok_or(StoreError::NotFound);
                prop_assert_eq!(log, store.entries(&owner, &id, 0, 1000).await);
            }
            let everything = ListQuery {
                limit: 100,
                ..ListQuery::default()
            };
            let page = store.list(&owner, &everything).await;
            prop_assert_eq!(Ok(self.list(&owner, &everything)), page);
            for key in (1..3).map(key_name) {
                let expected = self
                    .key(&owner, &key)
                    .map(|r| IdempotencyRecord { at: at(0), ..r });
                let got = store.idempotent(&owner, &key, Timestamp::MIN).await;
                let got = got.map(|r| r.map(|r| IdempotencyRecord { at: at(0), ..r }));
                prop_assert_eq!(Ok(expected), got);
            }
        }
        prop_assert_eq!(Ok(self.dead.clone()), store.dead_deliveries(0, 1000).await);
        Ok(())
    }

    fn find(&self, owner: &Owner, id: &TaskId) -> Option<usize> {
        self.tasks
            .iter()
            .position(|t| t.owner == *owner && t.stored.id == *id)
    }

    fn key(&self, owner: &Owner, key: &str) -> Option<IdempotencyRecord> {
        // Key 0 is always out of its window.
        let found = self
            .keys
            .iter()
            .find(|(o, k, _)| o == owner && k == key && k != "k0")?;
        self.tasks
            .iter()
            .any(|t| t.stored.id == found.2.task)
            .then(|| found.2.clone())
    }

    fn create(&mut self, owner: &Owner, new: NewTask) -> Result<Appended, StoreError> {
        let malformed = Err(StoreError::Malformed(""));
        let status = match new.first.status {
            Some(status) if !new.first.entries.is_empty() => status,
            _ => return malformed,
        };
        if !well_formed(&new.first) {
            return malformed;
        }
        if let Some(key) = &new.first.idempotency
            && let Some(record) = self.key(owner, &key.key)
        {
            return Ok(Appended::Duplicate(record));
        }
        if self.tasks.iter().any(|t| t.stored.id == new.id) {
            return malformed;
        }
        if let Some(key) = &new.first.idempotency {
            // What it stood for is gone, and must not seem to be back with this task's id.
            self.keys.retain(|(o, k, _)| o != owner || *k != key.key);
        }
        self.tasks.push(Known {
            owner: owner.clone(),
            stored: StoredTask {
                id: new.id.clone(),
                context_id: new.context_id,
                // Whatever comes before the first entry, it is not terminal.
                status: StatusRow {
                    state: TaskState::Submitted,
                    since: status.since,
                },
                last_seq: 0,
                last_message_seq: 0,
                checkpoint: None,
                checkpoint_seq: 0,
                leased: false,
            },
            fence: 0,
            lease: None,
            log: Vec::new(),
        });
        let created = self.append(owner, &new.id, &new.first);
        if created.is_err() {
            self.tasks.pop();
        }
        created
    }

    fn append(
        &mut self,
        owner: &Owner,
        id: &TaskId,
        append: &Append,
    ) -> Result<Appended, StoreError> {
        if !well_formed(append) {
            return Err(StoreError::Malformed(""));
        }
        let at = self.find(owner, id).ok_or(StoreError::NotFound)?;
        let key = append
            .idempotency
            .as_ref()
            .and_then(|key| self.key(owner, &key.key));
        if let Some(record) = key {
            return Ok(Appended::Duplicate(record));
        }
        let known = &mut self.tasks[at];
        if known.stored.status.state.is_terminal() {
            let takes = matches!(append.lease, LeaseChange::Take { .. });
            if append.entries.is_empty() && append.checkpoint.is_none() && !takes {
                return Ok(Appended::Committed { fence: None });
            }
            return Err(StoreError::Ended(known.stored.status.state));
        }
        if let Some(fence) = append.fence
            && (known.lease.is_none() || fence.0 != known.fence)
        {
            return Err(StoreError::StaleLease);
        }
        if let (LeaseChange::Take { node, .. }, Some((holder, until))) =
            (&append.lease, &known.lease)
            && holder != node
            && *until > Timestamp::now()
        {
            return Err(StoreError::Leased);
        }
        let last_seq = known.stored.last_seq;
        for (entry, seq) in append.entries.iter().zip(last_seq + 1..) {
            if entry.seq != seq {
                return Err(StoreError::Conflict { last_seq });
            }
        }

        known.log.extend(append.entries.iter().cloned());
        known.stored.last_seq += append.entries.len() as u64;
        if let Some(seq) = append.message_seq {
            known.stored.last_message_seq = seq;
        }
        if append.checkpoint.is_some() {
            known.stored.checkpoint = append.checkpoint.clone();
            known.stored.checkpoint_seq = known.stored.last_seq;
        }
        let mut fence = None;
        match &append.lease {
            LeaseChange::Keep => {}
            LeaseChange::Take { node, until } => {
                known.fence += 1;
                fence = Some(Fence(known.fence));
                known.lease = Some((node.clone(), *until));
            }
            LeaseChange::Release => known.lease = None,
        }
        if let Some(status) = append.status {
            known.stored.status = status;
        }
        if known.stored.status.state.is_terminal() {
            known.lease = None;
        }
        known.stored.leased = known.lease.is_some();

        if let (Some(key), Some(seq)) = (&append.idempotency, append.message_seq) {
            self.keys.retain(|(o, k, _)| o != owner || *k != key.key);
            let record = IdempotencyRecord {
                task: id.clone(),
                digest: key.digest,
                seq,
                at: Timestamp::MIN,
            };
            self.keys.push((owner.clone(), key.key.clone(), record));
        }
        for new in &append.deliveries {
            self.deliveries += 1;
            self.outbox.push(Waiting {
                delivery: Delivery {
                    id: self.deliveries,
                    owner: owner.clone(),
                    task: id.clone(),
                    config: new.config.clone(),
                    seq: new.seq,
                    body: new.body.clone(),
                    attempts: 0,
                },
                due: new.due,
                claimed: None,
            });
        }
        Ok(Appended::Committed { fence })
    }

    fn list(&self, owner: &Owner, query: &ListQuery) -> ListPage {
        let mut fit: Vec<_> = self
            .tasks
            .iter()
            .filter(|t| {
                t.owner == *owner
                    && query
                        .context_id
                        .as_ref()
                        .is_none_or(|c| *c == t.stored.context_id)
                    && query.state.is_none_or(|s| s == t.stored.status.state)
                    && query
                        .status_after
                        .is_none_or(|a| a <= t.stored.status.since)
            })
            .map(|t| t.stored.clone())
            .collect();
        fit.sort_by(|a, b| (b.status.since, &b.id).cmp(&(a.status.since, &a.id)));
        let total = fit.len() as u64;
        if let Some(after) = &query.after {
            fit.retain(|t| (t.status.since, &t.id) < (after.since, &after.id));
        }
        let more = fit.len() > query.limit as usize;
        fit.truncate(query.limit as usize);
        let next = fit.last().filter(|_| more).map(|t| ListCursor {
            since: t.status.since,
            id: t.id.clone(),
        });
        ListPage {
            tasks: fit,
            next,
            total,
        }
    }

    fn orphans(&mut self, node: &NodeId, until: Timestamp, limit: usize) -> Vec<Orphan> {
        let mut lost: Vec<_> = (0..self.tasks.len())
            .filter_map(|i| {
                let (_, ran_out) = self.tasks[i].lease.as_ref()?;
                (*ran_out <= at(NOW)).then_some((*ran_out, i))
            })
            .collect();
        lost.sort_unstable();
        lost.truncate(limit);
        let mut orphans = Vec::new();
        for (_, i) in lost {
            let known = &mut self.tasks[i];
            known.fence += 1;
            known.lease = Some((node.clone(), until));
            orphans.push(Orphan {
                owner: known.owner.clone(),
                task: known.stored.id.clone(),
                fence: Fence(known.fence),
            });
        }
        orphans
    }

    fn claim(
        &mut self,
        node: &NodeId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Vec<Delivery> {
        let mut due: Vec<_> = (0..self.outbox.len())
            .filter(|i| {
                let this = &self.outbox[*i];
                let route = |w: &Waiting| (w.delivery.task.clone(), w.delivery.config.clone());
                let oldest = !self.outbox[..*i]
                    .iter()
                    .any(|older| route(older) == route(this));
                oldest && this.due <= now
            })
            .map(|i| (self.outbox[i].due, i))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        let mut claimed = Vec::new();
        for (_, i) in due {
            let waiting = &mut self.outbox[i];
            claimed.push(waiting.delivery.clone());
            waiting.delivery.attempts += 1;
            waiting.claimed = Some(node.clone());
            waiting.due = until;
        }
        claimed
    }

    fn settle(&mut self, node: &NodeId, id: u64, settlement: &Settlement) {
        let claimed = |w: &Waiting| w.delivery.id == id && w.claimed.as_ref() == Some(node);
        let Some(i) = self.outbox.iter().position(claimed) else {
            return;
        };
        match settlement {
            Settlement::Retry { due } => {
                self.outbox[i].claimed = None;
                self.outbox[i].due = *due;
            }
            Settlement::Delivered => {
                self.outbox.remove(i);
            }
            Settlement::Dead { reason } => {
                let delivery = self.outbox.remove(i).delivery;
                self.dead.push(DeadDelivery {
                    delivery,
                    reason: reason.clone(),
                });
                self.dead.sort_by_key(|dead| dead.delivery.id);
            }
        }
    }

    fn prune(&mut self, policy: &Retention, limit: usize) -> Pruned {
        let mut pruned = Pruned::default();
        for _ in 0..limit {
            let ended: Vec<_> = (0..self.tasks.len())
                .filter(|i| self.tasks[*i].stored.status.state.is_terminal())
                .map(|i| (self.tasks[i].stored.status.since, i))
                .collect();
            let over = policy
                .max_finished
                .is_some_and(|max| ended.len() as u64 > max);
            let first = ended.into_iter().min().filter(|(since, _)| {
                over || policy.finished_before.is_some_and(|before| *since < before)
            });
            if let Some((_, i)) = first {
                let gone = self.tasks.remove(i).stored.id;
                self.dead.retain(|dead| dead.delivery.task != gone);
                pruned.tasks += 1;
                continue;
            }
            let spare = (0..self.tasks.len())
                .filter(|i| {
                    let known = &self.tasks[*i];
                    known.stored.status.state.is_terminal()
                        && known.stored.checkpoint_seq == known.stored.last_seq
                        && !known.log.is_empty()
                        && policy
                            .entries_before
                            .is_some_and(|b| known.stored.status.since < b)
                })
                .min_by_key(|i| (self.tasks[*i].stored.status.since, *i));
            let Some(i) = spare else { break };
            self.tasks[i].log.clear();
            pruned.logs += 1;
        }
        pruned
    }
}

fn well_formed(append: &Append) -> bool {
    let has = |seq: u64| append.entries.iter().any(|e| e.seq == seq);
    (append.status.is_none() || !append.entries.is_empty())
        && append.message_seq.is_none_or(has)
        && (append.idempotency.is_none() || append.message_seq.is_some())
        && append.deliveries.iter().all(|d| has(d.seq))
}

/// Compares answers, but for the wording of a refusal and for the store's clock.
fn same(expected: &Result<Appended, StoreError>, got: &Result<Appended, StoreError>) -> Played {
    let plain = |answer: &Result<Appended, StoreError>| match answer {
        Err(StoreError::Malformed(_)) => Err(StoreError::Malformed("")),
        Ok(Appended::Duplicate(r)) => Ok(Appended::Duplicate(IdempotencyRecord {
            at: at(0),
            ..r.clone()
        })),
        other => other.clone(),
    };
    prop_assert_eq!(plain(expected), plain(got));
    Ok(())
}
