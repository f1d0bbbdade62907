//! Random calls, played against a store and against a naive model of all its rules.
//!
//! The model is written from the traits' documentation, with vectors and scans, and shares no
//! code with the stores. Names and numbers are drawn from so few that they meet all the time.
//! Answers are compared whole; the one thing left out is the wording of `Malformed`, and the
//! store's own clock in an idempotency record.

use std::collections::HashMap;

use bytes::Bytes;
use nuncio_core::{Owner, TaskId, TaskState, Timestamp};
use proptest::{prelude::*, test_runner::TestRunner};

use super::{FAR, at, block_on, context, entry, node, notice, owner, task};
use crate::{
    Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, Entry, Fence, IdempotencyKey,
    IdempotencyRecord, LeaseChange, ListCursor, ListPage, ListQuery, NewTask, NodeId, Orphan,
    Pruned, PushConfigRow, Retention, Settlement, StatusRow, Store, StoreError, StoredTask,
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
        hooks: Vec<PushConfigRow>,
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
    SetHook {
        owner: u8,
        id: u8,
        hook: PushConfigRow,
        limit: usize,
        now: i64,
    },
    DeleteHook {
        owner: u8,
        id: u8,
        hook: u8,
    },
    Claim(Claim),
    Settle {
        node: u8,
        id: u64,
        settlement: Settlement,
    },
    Expire {
        before: i64,
        limit: usize,
    },
    Retry {
        id: u64,
        now: i64,
    },
    Drop {
        id: u64,
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
    notices: Vec<i64>,
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
        (0..4i64).prop_map(|due| Settlement::Retry {
            due: at(due),
            reason: "busy".into()
        }),
        Just(Settlement::Dead {
            reason: "given up".into()
        }),
        Just(Settlement::Gone),
    ];
    // Which destination comes first is the store's choice, so there is room for all of them.
    let claim = (
        who.clone(),
        0..4i64,
        until.clone(),
        0..3usize,
        prop::option::weighted(0.3, (0..3u8, 0..3usize)),
    )
        .prop_map(|(by, now, until, per_destination, under_way)| Claim {
            node: node_name(by),
            now: at(now),
            until: at(until),
            limit: 100,
            per_destination,
            under_way: under_way
                .into_iter()
                .map(|(to, n)| (destination(to), n))
                .collect(),
        });
    let hooks = prop::collection::btree_map(0..3u8, 0..3u8, 0..3)
        .prop_map(|hooks| hooks.into_iter().map(|(id, to)| hook(id, to)).collect());
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
        4 => (who.clone(), id.clone(), 0..2u8, hooks, what())
            .prop_map(|(owner, id, context, hooks, what)| {
                Call::Create { owner, id, context, hooks, what }
            }),
        10 => (who.clone(), id.clone(), what())
            .prop_map(|(owner, id, what)| Call::Append { owner, id, what }),
        2 => (who.clone(), id.clone(), 0..9u64, 0..5usize)
            .prop_map(|(owner, id, after, limit)| Call::Entries { owner, id, after, limit }),
        3 => (who.clone(), query).prop_map(|(owner, query)| Call::List { owner, query }),
        1 => (who.clone(), until.clone()).prop_map(|(node, until)| Call::Renew { node, until }),
        1 => (who.clone(), until.clone(), 0..4usize)
            .prop_map(|(node, until, limit)| Call::Orphans { node, until, limit }),
        3 => (who.clone(), id.clone(), (0..3u8, 0..3u8), 0..4usize, 0..4i64)
            .prop_map(|(owner, id, (name, to), limit, now)| {
                Call::SetHook { owner, id, hook: hook(name, to), limit, now }
            }),
        1 => (who.clone(), id, 0..3u8)
            .prop_map(|(owner, id, hook)| Call::DeleteHook { owner, id, hook }),
        4 => claim.prop_map(Call::Claim),
        4 => (who, 1..9u64, settlement)
            .prop_map(|(node, id, settlement)| Call::Settle { node, id, settlement }),
        1 => (0..4i64, 0..3usize).prop_map(|(before, limit)| Call::Expire { before, limit }),
        1 => (1..9u64, 0..4i64).prop_map(|(id, now)| Call::Retry { id, now }),
        1 => (1..9u64).prop_map(|id| Call::Drop { id }),
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
        prop::collection::vec(0..4i64, 0..3),
    )
        .prop_map(
            |(skew, n, status, checkpoint, message, fence, lease, key, notices)| What {
                skew,
                n,
                status,
                checkpoint,
                message,
                fence,
                lease,
                key,
                notices,
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

fn hook(n: u8, to: u8) -> PushConfigRow {
    PushConfigRow {
        id: hook_name(n),
        destination: destination(to),
        body: Bytes::from(format!("config {n} to {to}")),
    }
}

fn hook_name(n: u8) -> String {
    format!("w{n}")
}

fn destination(n: u8) -> String {
    format!("d{n}")
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
            notices: self.notices.iter().map(|due| notice(from, *due)).collect(),
            entries,
        }
    }
}

#[derive(Debug, Default)]
struct Model {
    tasks: Vec<Known>,
    keys: Vec<(Owner, String, IdempotencyRecord)>,
    outbox: Vec<Posting>,
    deliveries: u64,
}

#[derive(Debug, Clone)]
struct Known {
    owner: Owner,
    stored: StoredTask,
    fence: u64,
    lease: Option<(NodeId, Timestamp)>,
    log: Vec<Entry>,
    hooks: Vec<PushConfigRow>,
}

#[derive(Debug, Clone)]
struct Posting {
    delivery: Delivery,
    due: Timestamp,
    claimed: Option<NodeId>,
    reason: Option<String>,
    dead: bool,
}

type Played = Result<(), TestCaseError>;

impl Model {
    async fn play(&mut self, store: &dyn Store, call: Call) -> Played {
        match call {
            Call::Create {
                owner,
                id,
                context,
                hooks,
                what,
            } => {
                let new = NewTask {
                    id: task_name(id),
                    context_id: context_name(context),
                    push_configs: hooks,
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
            Call::SetHook {
                owner,
                id,
                hook,
                limit,
                now,
            } => {
                let (owner, id) = (owner_name(owner), task_name(id));
                let expected = self.set_hook(&owner, &id, &hook, limit, at(now));
                let got = store
                    .set_push_config(&owner, &id, hook, limit, at(now))
                    .await;
                prop_assert_eq!(expected, got);
                Ok(())
            }
            Call::DeleteHook { owner, id, hook } => {
                let (owner, id, hook) = (owner_name(owner), task_name(id), hook_name(hook));
                let expected = self
                    .find(&owner, &id)
                    .map(|i| self.delete_hook(i, &hook))
                    .ok_or(StoreError::NotFound);
                let got = store.delete_push_config(&owner, &id, &hook).await;
                prop_assert_eq!(expected, got);
                Ok(())
            }
            Call::Claim(claim) => {
                let expected = self.claim(&claim);
                let mut got = store.claim_deliveries(claim).await;
                if let Ok(got) = &mut got {
                    got.sort_by_key(|d| d.id);
                }
                prop_assert_eq!(Ok(expected), got);
                Ok(())
            }
            Call::Expire { before, limit } => {
                let expected = self.expire(at(before), limit);
                let got = store.expire_deliveries(at(before), "too old", limit).await;
                prop_assert_eq!(Ok(expected), got);
                Ok(())
            }
            Call::Retry { id, now } => {
                let expected = self.retry(id, at(now));
                prop_assert_eq!(Ok(expected), store.retry_delivery(id, at(now)).await);
                Ok(())
            }
            Call::Drop { id } => {
                let known = self.outbox.iter().position(|p| p.delivery.id == id);
                let expected = known.map(|i| self.outbox.remove(i)).is_some();
                prop_assert_eq!(Ok(expected), store.drop_delivery(id).await);
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
                let hooks = expected
                    .map(|t| t.hooks.clone())
                    .ok_or(StoreError::NotFound);
                prop_assert_eq!(hooks, store.push_configs(&owner, &id).await);
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
        for filter in [DeliveryFilter::Waiting, DeliveryFilter::Dead] {
            let expected: Vec<_> = self
                .outbox
                .iter()
                .filter(|p| p.dead == (filter == DeliveryFilter::Dead))
                .map(Posting::listed)
                .collect();
            let got = store.deliveries(filter, 0, 1000).await;
            prop_assert_eq!(Ok(expected), got);
        }
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
            hooks: new.push_configs,
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
                return Ok(Appended::Committed {
                    fence: None,
                    deliveries: 0,
                });
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
        let mut deliveries = 0;
        for notice in &append.notices {
            for hook in &self.tasks[at].hooks {
                deliveries += 1;
                self.deliveries += 1;
                self.outbox.push(Posting {
                    delivery: Delivery {
                        id: self.deliveries,
                        owner: owner.clone(),
                        task: id.clone(),
                        config: hook.id.clone(),
                        seq: notice.seq,
                        destination: hook.destination.clone(),
                        attempts: 0,
                        since: notice.due,
                    },
                    due: notice.due,
                    claimed: None,
                    reason: None,
                    dead: false,
                });
            }
        }
        Ok(Appended::Committed { fence, deliveries })
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

    fn set_hook(
        &mut self,
        owner: &Owner,
        id: &TaskId,
        hook: &PushConfigRow,
        limit: usize,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let i = self.find(owner, id).ok_or(StoreError::NotFound)?;
        let hooks = &mut self.tasks[i].hooks;
        if let Some(known) = hooks.iter_mut().find(|h| h.id == hook.id) {
            *known = hook.clone();
        } else if hooks.len() < limit {
            hooks.push(hook.clone());
        } else {
            return Err(StoreError::TooManyPushConfigs);
        }
        for posting in &mut self.outbox {
            if posting.delivery.task == *id && posting.delivery.config == hook.id {
                posting.delivery.destination.clone_from(&hook.destination);
                if !posting.dead && posting.claimed.is_none() {
                    posting.due = posting.due.min(now);
                }
            }
        }
        Ok(())
    }

    fn delete_hook(&mut self, task: usize, hook: &str) -> bool {
        let known = &mut self.tasks[task];
        let before = known.hooks.len();
        known.hooks.retain(|h| h.id != hook);
        let id = &known.stored.id;
        self.outbox
            .retain(|p| p.delivery.task != *id || p.delivery.config != hook);
        known.hooks.len() < before
    }

    /// Of a posting's task and config the one whose turn it is: the one on its way, if there is
    /// one, else the oldest.
    fn head(&self, of: &Posting) -> u64 {
        let mut queue: Vec<_> = self
            .outbox
            .iter()
            .filter(|p| {
                !p.dead
                    && p.delivery.task == of.delivery.task
                    && p.delivery.config == of.delivery.config
            })
            .collect();
        queue.sort_by_key(|p| (p.claimed.is_none(), p.delivery.id));
        queue[0].delivery.id
    }

    fn claim(&mut self, claim: &Claim) -> Vec<Delivery> {
        let mut due: Vec<_> = (0..self.outbox.len())
            .filter(|i| {
                let this = &self.outbox[*i];
                !this.dead && self.head(this) == this.delivery.id && this.due <= claim.now
            })
            .collect();
        due.sort_by_key(|i| (self.outbox[*i].due, self.outbox[*i].delivery.id));
        let mut taken: HashMap<String, usize> = claim.under_way.clone();
        let mut claimed = Vec::new();
        for i in due {
            let posting = &mut self.outbox[i];
            let taken = taken
                .entry(posting.delivery.destination.clone())
                .or_default();
            if *taken < claim.per_destination {
                *taken += 1;
                claimed.push(posting.delivery.clone());
                posting.delivery.attempts += 1;
                posting.claimed = Some(claim.node.clone());
                posting.due = claim.until;
            }
        }
        claimed.sort_by_key(|d| d.id);
        claimed
    }

    fn settle(&mut self, node: &NodeId, id: u64, settlement: &Settlement) {
        let claimed = |p: &Posting| p.delivery.id == id && p.claimed.as_ref() == Some(node);
        let Some(i) = self.outbox.iter().position(claimed) else {
            return;
        };
        match settlement {
            Settlement::Retry { due, reason } => {
                self.outbox[i].claimed = None;
                self.outbox[i].due = *due;
                self.outbox[i].reason = Some(reason.clone());
            }
            Settlement::Delivered => {
                self.outbox.remove(i);
            }
            Settlement::Dead { reason } => self.outbox[i].give_up(reason),
            Settlement::Gone => {
                let Delivery { task, config, .. } = self.outbox[i].delivery.clone();
                let task = self.tasks.iter().position(|t| t.stored.id == task);
                self.delete_hook(task.expect("its task stays as long as it does"), &config);
            }
        }
    }

    fn expire(&mut self, before: Timestamp, limit: usize) -> usize {
        let mut old: Vec<_> = (0..self.outbox.len())
            .filter(|i| {
                let this = &self.outbox[*i];
                !this.dead
                    && this.claimed.is_none()
                    && self.head(this) == this.delivery.id
                    && this.delivery.since < before
            })
            .collect();
        old.truncate(limit);
        for i in &old {
            self.outbox[*i].give_up("too old");
        }
        old.len()
    }

    fn retry(&mut self, id: u64, now: Timestamp) -> bool {
        let Some(posting) = self.outbox.iter_mut().find(|p| p.delivery.id == id) else {
            return false;
        };
        if posting.dead {
            posting.dead = false;
            posting.delivery.attempts = 0;
            posting.delivery.since = now;
        }
        if posting.claimed.is_none() {
            posting.due = now;
        }
        true
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
            let free = ended.into_iter().filter(|(_, i)| !self.holds(*i));
            let first = free.min().filter(|(since, _)| {
                over || policy.finished_before.is_some_and(|before| *since < before)
            });
            if let Some((_, i)) = first {
                let gone = self.tasks.remove(i).stored.id;
                self.outbox.retain(|p| p.delivery.task != gone);
                pruned.tasks += 1;
                continue;
            }
            let spare = (0..self.tasks.len())
                .filter(|i| {
                    let known = &self.tasks[*i];
                    known.stored.status.state.is_terminal()
                        && known.stored.checkpoint_seq == known.stored.last_seq
                        && !known.log.is_empty()
                        && !self.holds(*i)
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

    /// Whether a task has deliveries to be made.
    fn holds(&self, task: usize) -> bool {
        let id = &self.tasks[task].stored.id;
        self.outbox
            .iter()
            .any(|p| !p.dead && p.delivery.task == *id)
    }
}

impl Posting {
    fn give_up(&mut self, reason: &str) {
        self.dead = true;
        self.claimed = None;
        self.reason = Some(reason.to_owned());
    }

    fn listed(&self) -> (Delivery, DeliveryState) {
        let reason = self.reason.clone();
        let state = if self.dead {
            DeliveryState::Dead {
                reason: reason.expect("it was given up for one"),
            }
        } else {
            DeliveryState::Waiting {
                due: self.due,
                reason,
            }
        };
        (self.delivery.clone(), state)
    }
}

fn well_formed(append: &Append) -> bool {
    let has = |seq: u64| append.entries.iter().any(|e| e.seq == seq);
    (append.status.is_none() || !append.entries.is_empty())
        && append.message_seq.is_none_or(has)
        && (append.idempotency.is_none() || append.message_seq.is_some())
        && append.notices.iter().all(|n| has(n.seq))
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
