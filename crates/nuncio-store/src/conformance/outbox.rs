//! Webhook deliveries: committed with their entry, made in order, claimed by one.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

use super::{FAR, alice, at, new_task, node, one, task};
use crate::{Append, Delivery, NewDelivery, NodeId, Settlement, Store};

pub(crate) fn delivery(config: &str, seq: u64, due: i64) -> NewDelivery {
    let body = Bytes::from(format!("{config}\n{seq}"));
    NewDelivery {
        config: config.into(),
        seq,
        due: at(due),
        body,
    }
}

/// An append of one entry and its deliveries.
fn carrying(seq: u64, deliveries: Vec<NewDelivery>) -> Append {
    Append {
        deliveries,
        ..one(seq)
    }
}

async fn claim(store: &dyn Store, by: &NodeId, now: i64, until: i64) -> Vec<Delivery> {
    store
        .claim_deliveries(by, at(now), at(until), 100)
        .await
        .expect("claimed")
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

/// It is there with its entry, whole, and not before it is due.
pub async fn a_delivery_is_due_as_soon_as_its_entry_is_there(store: Arc<dyn Store>) {
    let a = node("a");
    let mut new = new_task("t");
    new.first.deliveries = vec![delivery("w", 1, 5)];
    store.create(&alice(), new).await.expect("created");
    assert_eq!(claim(&*store, &a, 4, FAR).await, vec![]);
    let none = store.claim_deliveries(&a, at(5), at(FAR), 0).await;
    assert_eq!(none, Ok(vec![]));
    let claimed = claim(&*store, &a, 5, FAR).await;
    let [got] = &claimed[..] else {
        panic!("{claimed:?}")
    };
    assert_eq!((got.owner.clone(), got.task.clone()), (alice(), task("t")));
    assert_eq!((got.config.as_str(), got.seq, got.attempts), ("w", 1, 0));
    assert_eq!(got.body, "w\n1");
    settle(&*store, &a, got.id, Settlement::Delivered).await;
    assert_eq!(claim(&*store, &a, FAR, FAR).await, vec![]);
}

/// One at a time for each task and config, oldest first; other configs and tasks don't wait.
pub async fn of_a_task_and_config_the_oldest_goes_first(store: Arc<dyn Store>) {
    let a = node("a");
    for id in ["t", "u"] {
        store.create(&alice(), new_task(id)).await.expect("created");
    }
    for seq in 2..5 {
        // The later ones are due earlier, and yet they wait.
        let due = 10 - i64::try_from(seq).expect("small");
        let both = vec![delivery("w1", seq, due), delivery("w2", seq, due)];
        store
            .append(&alice(), &task("t"), carrying(seq, both))
            .await
            .expect("appended");
        let one = vec![delivery("w1", seq, due)];
        store
            .append(&alice(), &task("u"), carrying(seq, one))
            .await
            .expect("appended");
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
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let append = carrying(2, vec![delivery("w", 2, 0)]);
    store
        .append(&alice(), &task("t"), append)
        .await
        .expect("appended");
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
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    for seq in 2..4 {
        let append = carrying(seq, vec![delivery("w", seq, 0)]);
        store
            .append(&alice(), &task("t"), append)
            .await
            .expect("appended");
    }
    let dead = || Settlement::Dead {
        reason: "no".into(),
    };
    settle(&*store, &a, 999, Settlement::Delivered).await;
    let claimed = claim(&*store, &a, 1, FAR).await;
    let id = claimed[0].id;
    for settlement in [
        Settlement::Delivered,
        Settlement::Retry { due: at(0) },
        dead(),
    ] {
        settle(&*store, &b, id, settlement).await;
        assert_eq!(claim(&*store, &b, 1, FAR).await, vec![]);
    }
    settle(&*store, &a, id, Settlement::Delivered).await;
    let next = claim(&*store, &b, 1, FAR).await;
    assert_eq!(next[0].seq, 3);
    // A settled one stays settled.
    settle(&*store, &a, id, Settlement::Retry { due: at(0) }).await;
    settle(&*store, &a, id, dead()).await;
    assert_eq!(store.dead_deliveries(0, 9).await, Ok(vec![]));
    assert_eq!(claim(&*store, &a, FAR - 1, FAR).await, vec![]);
}

/// A retry keeps its place: what is behind it waits too.
pub async fn a_retry_waits_until_it_is_due(store: Arc<dyn Store>) {
    let a = node("a");
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    for seq in 2..4 {
        let append = carrying(seq, vec![delivery("w", seq, 0)]);
        store
            .append(&alice(), &task("t"), append)
            .await
            .expect("appended");
    }
    let id = claim(&*store, &a, 1, FAR).await[0].id;
    settle(&*store, &a, id, Settlement::Retry { due: at(30) }).await;
    // It is nobody's now, so it can't be settled.
    settle(&*store, &a, id, Settlement::Delivered).await;
    assert_eq!(claim(&*store, &a, 29, FAR).await, vec![]);
    let again = claim(&*store, &a, 30, FAR).await;
    assert_eq!((again.len(), again[0].id, again[0].attempts), (1, id, 1));
}

/// What is given up is kept with its reason, and the next one has its turn.
pub async fn what_is_given_up_is_kept(store: Arc<dyn Store>) {
    let a = node("a");
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    for seq in 2..6 {
        let append = carrying(seq, vec![delivery("w", seq, 0)]);
        store
            .append(&alice(), &task("t"), append)
            .await
            .expect("appended");
    }
    let mut given_up = Vec::new();
    for seq in 2..5 {
        let claimed = claim(&*store, &a, 1, FAR).await;
        assert_eq!(what(&claimed), [("t", "w", seq)]);
        let reason = format!("410 for {seq}");
        settle(
            &*store,
            &a,
            claimed[0].id,
            Settlement::Dead {
                reason: reason.clone(),
            },
        )
        .await;
        given_up.push((claimed[0].id, seq, reason));
    }
    let dead = store.dead_deliveries(0, 9).await.expect("an answer");
    let seen: Vec<_> = dead
        .iter()
        .map(|d| (d.delivery.id, d.delivery.seq, d.reason.clone()))
        .collect();
    assert_eq!(seen, given_up);
    assert_eq!(
        (dead[0].delivery.attempts, &dead[0].delivery.body[..]),
        (1, &b"w\n2"[..])
    );
    let rest = store
        .dead_deliveries(given_up[0].0, 1)
        .await
        .expect("an answer");
    assert_eq!(rest, dead[1..2]);
    assert_eq!(what(&claim(&*store, &a, 1, FAR).await), [("t", "w", 5)]);
}

/// Couriers that race get each delivery once.
pub async fn racing_couriers_share_the_work(store: Arc<dyn Store>) {
    for i in 0..40 {
        let mut new = new_task(&format!("t{i}"));
        new.first.deliveries = vec![delivery("w1", 1, 0), delivery("w2", 1, 0)];
        store.create(&alice(), new).await.expect("created");
    }
    let racers: Vec<_> = (0..6)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let me = node(&format!("n{i}"));
                let mut mine = Vec::new();
                loop {
                    let more = store
                        .claim_deliveries(&me, at(1), at(FAR), 5)
                        .await
                        .expect("ok");
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
