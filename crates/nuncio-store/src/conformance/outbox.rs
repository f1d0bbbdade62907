//! Webhook deliveries: committed with their entry, made in order, claimed by one.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{FAR, alice, at, claim_all, hook, new_task, node, notice, one, task};
use crate::{
    Append, Appended, Claim, Delivery, DeliveryFilter, DeliveryState, NodeId, PushConfigRow,
    Settlement, Store,
};

/// Creates a working task that has these push configs.
async fn with_hooks(store: &dyn Store, id: &str, hooks: &[PushConfigRow]) {
    let mut new = new_task(id);
    new.push_configs = hooks.to_vec();
    store.create(&alice(), new).await.expect("created");
}

/// Appends an entry that is to be delivered.
async fn deliver(store: &dyn Store, id: &str, seq: u64, due: i64) {
    let append = Append {
        notices: vec![notice(seq, due)],
        ..one(seq)
    };
    let appended = store.append(&alice(), &task(id), append).await;
    assert!(
        matches!(
            appended,
            Ok(Appended::Committed {
                deliveries: 1..,
                ..
            })
        ),
        "{appended:?}"
    );
}

async fn claim(store: &dyn Store, by: &NodeId, now: i64, until: i64) -> Vec<Delivery> {
    let mut claimed = store
        .claim_deliveries(claim_all(by, now, until))
        .await
        .expect("claimed");
    // Destinations take turns; which has the first is the store's choice.
    claimed.sort_by_key(|d| d.id);
    claimed
}

fn what(claimed: &[Delivery]) -> Vec<(&str, &str, u64)> {
    claimed
        .iter()
        .map(|d| (d.task.as_str(), d.config.as_str(), d.seq))
        .collect()
}

async fn settle(store: &dyn Store, by: &NodeId, id: u64, settlement: Settlement) {
    store
        .settle_delivery(by, id, settlement)
        .await
        .expect("settled");
}

fn retry(due: i64) -> Settlement {
    Settlement::Retry {
        due: at(due),
        reason: "busy".into(),
    }
}

fn dead(reason: &str) -> Settlement {
    Settlement::Dead {
        reason: reason.into(),
    }
}

async fn listed(store: &dyn Store, filter: DeliveryFilter) -> Vec<(u64, DeliveryState)> {
    let all = store.deliveries(filter, 0, 99).await.expect("an answer");
    all.into_iter().map(|(d, s)| (d.seq, s)).collect()
}

fn waiting(due: i64, reason: Option<&str>) -> DeliveryState {
    DeliveryState::Waiting {
        due: at(due),
        reason: reason.map(str::to_owned),
    }
}

/// It is there with its entry, whole, and not before it is due.
pub async fn a_delivery_is_due_as_soon_as_its_entry_is_there(store: Arc<dyn Store>) {
    let a = node("a");
    let mut new = new_task("t");
    new.push_configs = vec![hook("w")];
    new.first.notices = vec![notice(1, 5)];
    let created = store.create(&alice(), new).await;
    let one = Appended::Committed {
        fence: None,
        deliveries: 1,
    };
    assert_eq!(created, Ok(one));
    assert_eq!(claim(&*store, &a, 4, FAR).await, vec![]);
    let none = Claim {
        limit: 0,
        ..claim_all(&a, 5, FAR)
    };
    assert_eq!(store.claim_deliveries(none).await, Ok(vec![]));
    let claimed = claim(&*store, &a, 5, FAR).await;
    let [got] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    let expected = Delivery {
        id: got.id,
        owner: alice(),
        task: task("t"),
        config: "w".into(),
        seq: 1,
        destination: "to w".into(),
        attempts: 0,
        since: at(5),
    };
    assert_eq!(*got, expected);
    settle(&*store, &a, got.id, Settlement::Delivered).await;
    assert_eq!(claim(&*store, &a, FAR, FAR).await, vec![]);
    assert_eq!(listed(&*store, DeliveryFilter::Waiting).await, []);
}

/// One at a time for each task and config, oldest first; other configs and tasks don't wait.
pub async fn of_a_task_and_config_the_oldest_goes_first(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w1"), hook("w2")]).await;
    with_hooks(&*store, "u", &[hook("w1")]).await;
    for seq in 2..5 {
        // The later ones are due earlier, and yet they wait.
        let due = 10 - i64::try_from(seq).expect("small");
        deliver(&*store, "t", seq, due).await;
        deliver(&*store, "u", seq, due).await;
    }
    assert_eq!(
        claim(&*store, &a, 7, FAR).await,
        vec![],
        "the oldest is not due"
    );
    for seq in 2..5 {
        let claimed = claim(&*store, &a, 20, FAR).await;
        assert_eq!(
            what(&claimed),
            [("t", "w1", seq), ("t", "w2", seq), ("u", "w1", seq)]
        );
        assert_eq!(
            claim(&*store, &a, 20, FAR).await,
            vec![],
            "they are on their way"
        );
        for got in claimed {
            settle(&*store, &a, got.id, Settlement::Delivered).await;
        }
    }
    assert_eq!(claim(&*store, &a, FAR, FAR).await, vec![]);
}

/// A courier that is gone does not keep its deliveries; each claim counts as an attempt.
pub async fn a_claim_that_runs_out_is_due_again(store: Arc<dyn Store>) {
    let (a, b) = (node("a"), node("b"));
    with_hooks(&*store, "t", &[hook("w")]).await;
    deliver(&*store, "t", 2, 0).await;
    let first = claim(&*store, &a, 1, 50).await;
    assert_eq!((what(&first), first[0].attempts), (vec![("t", "w", 2)], 0));
    assert_eq!(claim(&*store, &b, 49, 90).await, vec![]);
    let second = claim(&*store, &b, 50, 90).await;
    assert_eq!((second[0].id, second[0].attempts), (first[0].id, 1));
    // Too late: it is another's now.
    settle(&*store, &a, first[0].id, Settlement::Delivered).await;
    let third = claim(&*store, &a, 90, FAR).await;
    assert_eq!((third[0].id, third[0].attempts), (first[0].id, 2));
}

/// A settlement by anybody else, or for nothing, does nothing.
pub async fn only_the_claimant_settles(store: Arc<dyn Store>) {
    let (a, b) = (node("a"), node("b"));
    with_hooks(&*store, "t", &[hook("w")]).await;
    for seq in 2..4 {
        deliver(&*store, "t", seq, 0).await;
    }
    settle(&*store, &a, 999, Settlement::Delivered).await;
    let id = claim(&*store, &a, 1, FAR).await[0].id;
    for settlement in [
        Settlement::Delivered,
        retry(0),
        dead("no"),
        Settlement::Gone,
    ] {
        settle(&*store, &b, id, settlement).await;
        assert_eq!(claim(&*store, &b, 1, FAR).await, vec![]);
    }
    settle(&*store, &a, id, Settlement::Delivered).await;
    let next = claim(&*store, &b, 1, FAR).await;
    assert_eq!(next[0].seq, 3);
    // A settled one stays settled.
    settle(&*store, &a, id, retry(0)).await;
    settle(&*store, &a, id, dead("no")).await;
    assert_eq!(listed(&*store, DeliveryFilter::Dead).await, []);
    assert_eq!(claim(&*store, &a, FAR - 1, FAR).await, vec![]);
}

/// A retry keeps its place: what is behind it waits too.
pub async fn a_retry_waits_until_it_is_due(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w")]).await;
    for seq in 2..4 {
        deliver(&*store, "t", seq, 0).await;
    }
    let id = claim(&*store, &a, 1, FAR).await[0].id;
    settle(&*store, &a, id, retry(30)).await;
    // It is nobody's now, so it can't be settled.
    settle(&*store, &a, id, Settlement::Delivered).await;
    assert_eq!(claim(&*store, &a, 29, FAR).await, vec![]);
    assert_eq!(
        listed(&*store, DeliveryFilter::Waiting).await,
        [(2, waiting(30, Some("busy"))), (3, waiting(0, None))]
    );
    let again = claim(&*store, &a, 30, FAR).await;
    assert_eq!((again.len(), again[0].id, again[0].attempts), (1, id, 1));
}

/// What is given up is kept with its reason, and the next one has its turn.
pub async fn what_is_given_up_is_kept(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w")]).await;
    for seq in 2..6 {
        deliver(&*store, "t", seq, 0).await;
    }
    let mut given_up = Vec::new();
    for seq in 2..5 {
        let claimed = claim(&*store, &a, 1, FAR).await;
        assert_eq!(what(&claimed), [("t", "w", seq)]);
        let reason = format!("400 for {seq}");
        settle(&*store, &a, claimed[0].id, dead(&reason)).await;
        given_up.push((seq, DeliveryState::Dead { reason }));
    }
    assert_eq!(listed(&*store, DeliveryFilter::Dead).await, given_up);
    let dead = store.deliveries(DeliveryFilter::Dead, 0, 9).await;
    let dead = dead.expect("an answer");
    assert_eq!(dead[0].0.attempts, 1);
    let rest = store
        .deliveries(DeliveryFilter::Dead, dead[0].0.id, 1)
        .await
        .expect("an answer");
    assert_eq!(rest, dead[1..2]);
    assert_eq!(what(&claim(&*store, &a, 1, FAR).await), [("t", "w", 5)]);
}

/// Couriers that race get each delivery once.
pub async fn racing_couriers_share_the_work(store: Arc<dyn Store>) {
    for i in 0..40 {
        let mut new = new_task(&format!("t{i}"));
        new.push_configs = vec![hook("w1"), hook("w2")];
        new.first.notices = vec![notice(1, 0)];
        store.create(&alice(), new).await.expect("created");
    }
    let racers: Vec<_> = (0..6)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let me = node(&format!("n{i}"));
                let mut mine = Vec::new();
                loop {
                    let five = Claim {
                        limit: 5,
                        ..claim_all(&me, 1, FAR)
                    };
                    let more = store.claim_deliveries(five).await.expect("ok");
                    if more.is_empty() {
                        return mine;
                    }
                    for got in &more {
                        settle(&*store, &me, got.id, Settlement::Delivered).await;
                    }
                    mine.extend(more);
                }
            })
        })
        .collect();
    let mut made = Vec::new();
    for racer in racers {
        made.extend(racer.await.expect("no panic"));
    }
    let distinct: BTreeSet<_> = made.iter().map(|d| (&d.task, &d.config)).collect();
    assert_eq!((made.len(), distinct.len()), (80, 80));
}

/// A destination with a long queue has its share of a claim, and so have all the others; what is
/// under way counts.
pub async fn no_destination_waits_for_another(store: Arc<dyn Store>) {
    let a = node("a");
    let to = |id: &str, destination: &str| PushConfigRow {
        destination: destination.to_owned(),
        ..hook(id)
    };
    for i in 0..20 {
        let id = format!("busy{i}");
        with_hooks(&*store, &id, &[to("w", "busy")]).await;
        deliver(&*store, &id, 2, 0).await;
    }
    for (i, destination) in ["ally", "calm", "zoo"].into_iter().enumerate() {
        let id = format!("other{i}");
        with_hooks(&*store, &id, &[to("w", destination)]).await;
        deliver(&*store, &id, 2, 1).await;
    }
    let share = |limit, under_way: &[(&str, usize)]| Claim {
        limit,
        per_destination: 3,
        under_way: under_way
            .iter()
            .map(|(to, n)| ((*to).to_owned(), *n))
            .collect(),
        ..claim_all(&a, 1, FAR)
    };
    let count = |claimed: &[Delivery]| {
        let mut counts = HashMap::new();
        for got in claimed {
            *counts.entry(got.destination.clone()).or_insert(0) += 1;
        }
        let mut counts: Vec<(String, i32)> = counts.into_iter().collect();
        counts.sort();
        counts
    };
    let some = |counts: &[(&str, i32)]| -> Vec<(String, i32)> {
        counts
            .iter()
            .map(|(to, n)| ((*to).to_owned(), *n))
            .collect()
    };
    // Nothing for a destination that has its share under way, but for the others.
    let first = store
        .claim_deliveries(share(99, &[("busy", 3), ("zoo", 5)]))
        .await;
    assert_eq!(
        count(&first.expect("claimed")),
        some(&[("ally", 1), ("calm", 1)])
    );
    let second = store.claim_deliveries(share(99, &[("busy", 1)])).await;
    assert_eq!(
        count(&second.expect("claimed")),
        some(&[("busy", 2), ("zoo", 1)])
    );
    // Claims with little room take turns: none of the newcomers waits for all of the busy one's.
    for (i, destination) in ["aunt", "uncle"].into_iter().enumerate() {
        let id = format!("newcomer{i}");
        with_hooks(&*store, &id, &[to("w", destination)]).await;
        deliver(&*store, &id, 2, 1).await;
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let claimed = store.claim_deliveries(share(3, &[])).await;
        seen.extend(claimed.expect("claimed"));
    }
    let seen = count(&seen);
    for newcomer in ["aunt", "uncle"] {
        assert!(seen.contains(&(newcomer.to_owned(), 1)), "{seen:?}");
    }
}

/// Its attempts count from zero, and it has its old place in the order.
pub async fn what_was_given_up_can_be_tried_again(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w")]).await;
    for seq in 2..5 {
        deliver(&*store, "t", seq, 0).await;
    }
    let first = claim(&*store, &a, 1, FAR).await[0].id;
    settle(&*store, &a, first, dead("no")).await;
    let second = claim(&*store, &a, 1, FAR).await[0].id;
    // While the second is on its way, the first is the next, not beside it.
    assert_eq!(store.retry_delivery(first, at(7)).await, Ok(true));
    assert_eq!(listed(&*store, DeliveryFilter::Dead).await, []);
    assert_eq!(claim(&*store, &a, 9, FAR).await, vec![]);
    settle(&*store, &a, second, retry(8)).await;
    let again = claim(&*store, &a, 9, FAR).await;
    assert_eq!(what(&again), [("t", "w", 2)]);
    assert_eq!((again[0].attempts, again[0].since), (0, at(7)));
    settle(&*store, &a, first, Settlement::Delivered).await;
    let rest = claim(&*store, &a, 9, FAR).await;
    assert_eq!((what(&rest), rest[0].attempts), (vec![("t", "w", 3)], 1));

    // Whatever waits is due now; what is on its way is left alone; what is not there is not.
    settle(&*store, &a, second, retry(500)).await;
    assert_eq!(store.retry_delivery(second, at(10)).await, Ok(true));
    let rest = claim(&*store, &a, 10, 20).await;
    assert_eq!((what(&rest), rest[0].attempts), (vec![("t", "w", 3)], 2));
    assert_eq!(store.retry_delivery(second, at(10)).await, Ok(true));
    assert_eq!(claim(&*store, &a, 19, FAR).await, vec![]);
    settle(&*store, &a, second, Settlement::Delivered).await;
    assert_eq!(store.retry_delivery(second, at(10)).await, Ok(false));
    assert_eq!(what(&claim(&*store, &a, 19, FAR).await), [("t", "w", 4)]);
}

/// Whether it waits, is on its way or was given up.
pub async fn a_delivery_can_be_dropped(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w")]).await;
    for seq in 2..6 {
        deliver(&*store, "t", seq, 0).await;
    }
    let all = store.deliveries(DeliveryFilter::Waiting, 0, 9).await;
    let ids: Vec<_> = all.expect("listed").iter().map(|(d, _)| d.id).collect();
    assert_eq!(claim(&*store, &a, 1, FAR).await[0].id, ids[0]);
    settle(&*store, &a, ids[0], dead("no")).await;
    assert_eq!(store.drop_delivery(ids[0]).await, Ok(true));
    assert_eq!(store.drop_delivery(ids[0]).await, Ok(false));
    assert_eq!(listed(&*store, DeliveryFilter::Dead).await, []);
    assert_eq!(store.drop_delivery(ids[2]).await, Ok(true));
    assert_eq!(claim(&*store, &a, 1, FAR).await[0].id, ids[1]);
    assert_eq!(store.drop_delivery(ids[1]).await, Ok(true));
    settle(&*store, &a, ids[1], retry(0)).await;
    let rest = claim(&*store, &a, 1, FAR).await;
    assert_eq!(what(&rest), [("t", "w", 5)]);
    assert_eq!(store.drop_delivery(999).await, Ok(false));
}

/// Counted from when it was first due; not while an attempt is under way.
pub async fn what_is_too_old_is_given_up(store: Arc<dyn Store>) {
    let a = node("a");
    with_hooks(&*store, "t", &[hook("w")]).await;
    with_hooks(&*store, "u", &[hook("w")]).await;
    for (seq, due) in [(2, 10), (3, 20), (4, 30)] {
        deliver(&*store, "t", seq, due).await;
    }
    deliver(&*store, "u", 2, 10).await;
    let claimed = claim(&*store, &a, 15, FAR).await;
    assert_eq!(what(&claimed), [("t", "w", 2), ("u", "w", 2)]);
    settle(&*store, &a, claimed[0].id, retry(900)).await;
    let expire = |before, limit| store.expire_deliveries(at(before), "too old", limit);
    assert_eq!(expire(10, 9).await, Ok(0));
    assert_eq!(expire(11, 0).await, Ok(0));
    assert_eq!(expire(11, 9).await, Ok(1), "the other is on its way");
    let too_old = |seq| {
        let reason = "too old".to_owned();
        (seq, DeliveryState::Dead { reason })
    };
    assert_eq!(listed(&*store, DeliveryFilter::Dead).await, [too_old(2)]);
    let next = claim(&*store, &a, 40, FAR).await;
    assert_eq!(what(&next), [("t", "w", 3)]);
    settle(&*store, &a, next[0].id, retry(900)).await;
    settle(&*store, &a, claimed[1].id, retry(900)).await;
    // In steps as small as one likes, until nothing is left to give up.
    let mut steps = 0;
    while expire(31, 1).await.expect("an answer") > 0 {
        steps += 1;
    }
    assert_eq!(steps, 3);
    assert_eq!(listed(&*store, DeliveryFilter::Waiting).await, []);
}
