//! Leases: who runs a task, and what becomes of one whose node is gone.

use std::{collections::BTreeSet, sync::Arc};

use nuncio_core::{TaskId, TaskState, Timestamp};

use super::{COMMITTED, FAR, alice, at, moved, new_task, node, one, task};
use crate::{Append, Appended, Fence, LeaseChange, Orphan, Store, StoreError};

fn take(by: &str, until: i64) -> Append {
    Append {
        lease: LeaseChange::Take {
            node: node(by),
            until: at(until),
        },
        ..Append::default()
    }
}

fn release() -> Append {
    Append {
        lease: LeaseChange::Release,
        ..Append::default()
    }
}

fn under(fence: Fence, append: Append) -> Append {
    Append {
        fence: Some(fence),
        ..append
    }
}

async fn taken(store: &dyn Store, id: &str, append: Append) -> Fence {
    match store.append(&alice(), &task(id), append).await {
        Ok(Appended::Committed {
            fence: Some(fence), ..
        }) => fence,
        other => panic!("no lease was taken: {other:?}"),
    }
}

async fn leased(store: &dyn Store, id: &str) -> bool {
    store
        .load(&alice(), &task(id))
        .await
        .expect("stored")
        .leased
}

/// A lease is taken, kept by what is written under it, and given back.
pub async fn a_lease_is_taken_kept_and_released(store: Arc<dyn Store>) {
    let mut new = new_task("t");
    new.first.lease = LeaseChange::Take {
        node: node("a"),
        until: at(FAR),
    };
    let Ok(Appended::Committed {
        fence: Some(fence), ..
    }) = store.create(&alice(), new).await
    else {
        panic!("no lease was taken");
    };
    assert!(leased(&*store, "t").await);
    assert_eq!(
        store
            .append(&alice(), &task("t"), under(fence, one(2)))
            .await,
        COMMITTED
    );
    assert!(leased(&*store, "t").await);
    // A user's message comes under no lease, and leaves it alone.
    assert_eq!(store.append(&alice(), &task("t"), one(3)).await, COMMITTED);
    assert!(leased(&*store, "t").await);
    assert_eq!(
        store
            .append(&alice(), &task("t"), under(fence, release()))
            .await,
        COMMITTED
    );
    assert!(!leased(&*store, "t").await);
    let late = store
        .append(&alice(), &task("t"), under(fence, one(4)))
        .await;
    assert_eq!(late, Err(StoreError::StaleLease));
}

/// Nobody takes what another node holds; its own node may, and everybody once it ran out.
pub async fn another_nodes_lease_is_respected_while_in_force(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let first = taken(&*store, "t", take("a", FAR)).await;
    let refused = store.append(&alice(), &task("t"), take("b", FAR)).await;
    assert_eq!(refused, Err(StoreError::Leased));
    let with_entries = Append {
        entries: one(2).entries,
        ..take("b", FAR)
    };
    let refused = store.append(&alice(), &task("t"), with_entries).await;
    assert_eq!(refused, Err(StoreError::Leased));
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        1
    );
    // This one is over as soon as it is taken.
    let second = taken(&*store, "t", take("a", 0)).await;
    assert!(second > first);
    assert!(
        leased(&*store, "t").await,
        "a lease that ran out is still to be claimed"
    );
    let third = taken(&*store, "t", take("b", FAR)).await;
    assert!(third > second);
    let late = store
        .append(&alice(), &task("t"), under(second, one(2)))
        .await;
    assert_eq!(late, Err(StoreError::StaleLease));
}

/// A lease that ran out but that nobody took still writes; one that was taken over does not.
pub async fn a_stale_fence_is_refused(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let never = store
        .append(&alice(), &task("t"), under(Fence(0), one(2)))
        .await;
    assert_eq!(never, Err(StoreError::StaleLease));
    let fence = taken(&*store, "t", take("a", 0)).await;
    assert_eq!(
        store
            .append(&alice(), &task("t"), under(fence, one(2)))
            .await,
        COMMITTED
    );
    let orphans = store
        .claim_orphans(&node("b"), at(10), at(FAR), 10)
        .await
        .expect("claimed");
    assert_eq!(orphans.len(), 1);
    for append in [
        one(3),
        moved(3, TaskState::Completed, 9),
        release(),
        take("a", FAR),
    ] {
        let refused = store
            .append(&alice(), &task("t"), under(fence, append))
            .await;
        assert_eq!(refused, Err(StoreError::StaleLease));
    }
    let wrong = Fence(orphans[0].fence.0 + 1);
    let refused = store
        .append(&alice(), &task("t"), under(wrong, one(3)))
        .await;
    assert_eq!(refused, Err(StoreError::StaleLease));
    let good = under(orphans[0].fence, one(3));
    assert_eq!(store.append(&alice(), &task("t"), good).await, COMMITTED);
}

/// No number comes twice on a task, however the leases end.
pub async fn fences_grow_with_every_lease(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let mut last = Fence(0);
    for round in 0..6 {
        let fence = taken(
            &*store,
            "t",
            take("a", if round % 2 == 0 { FAR } else { 0 }),
        )
        .await;
        assert!(fence > last);
        last = fence;
        if round % 3 == 0 {
            store
                .append(&alice(), &task("t"), under(fence, release()))
                .await
                .expect("released");
        }
        let mut orphans = store
            .claim_orphans(&node("b"), at(9), at(0), 1)
            .await
            .expect("claimed");
        if let Some(orphan) = orphans.pop() {
            assert!(orphan.fence > last);
            last = orphan.fence;
        }
    }
}

/// A terminal state gives the lease back, whoever wrote it; to give it back again does no harm.
pub async fn the_end_of_a_task_ends_its_lease(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let fence = taken(&*store, "t", take("a", 0)).await;
    let canceled = moved(2, TaskState::Canceled, 9);
    assert_eq!(
        store.append(&alice(), &task("t"), canceled).await,
        COMMITTED
    );
    assert!(!leased(&*store, "t").await);
    let late = store
        .append(&alice(), &task("t"), under(fence, one(3)))
        .await;
    assert_eq!(late, Err(StoreError::Ended(TaskState::Canceled)));
    assert_eq!(
        store
            .append(&alice(), &task("t"), under(fence, release()))
            .await,
        COMMITTED
    );
    let orphans = store.claim_orphans(&node("b"), at(FAR), at(FAR), 10).await;
    assert_eq!(orphans, Ok(vec![]));
}

/// Renewing reaches all leases of the node, those that ran out too, and no other's.
pub async fn renewing_keeps_leases_of_that_node_only(store: Arc<dyn Store>) {
    for (id, by) in [("t1", "a"), ("t2", "a"), ("u", "b")] {
        store.create(&alice(), new_task(id)).await.expect("created");
        taken(&*store, id, take(by, 100)).await;
    }
    store
        .renew_leases(&node("a"), at(1000))
        .await
        .expect("renewed");
    store
        .renew_leases(&node("nobody"), at(5000))
        .await
        .expect("renewed");
    let claim = async |now: i64| {
        let orphans = store
            .claim_orphans(&node("c"), at(now), at(FAR), 10)
            .await
            .expect("claimed");
        orphans
            .into_iter()
            .map(|o| o.task)
            .collect::<BTreeSet<TaskId>>()
    };
    assert_eq!(claim(99).await, BTreeSet::new());
    assert_eq!(claim(100).await, [task("u")].into());
    assert_eq!(claim(999).await, BTreeSet::new());
    assert_eq!(claim(1000).await, [task("t1"), task("t2")].into());
}

/// Of many that look for orphans, one gets each.
pub async fn orphans_are_claimed_once(store: Arc<dyn Store>) {
    for i in 0..30 {
        let id = format!("t{i}");
        let mut new = new_task(&id);
        let until = if i % 3 == 0 { at(FAR) } else { at(5) };
        new.first.lease = LeaseChange::Take {
            node: node("dead"),
            until,
        };
        store
            .create(&super::owner(&format!("o{}", i % 4)), new)
            .await
            .expect("created");
    }
    let racers: Vec<_> = (0..6)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let me = node(&format!("n{i}"));
                let mut mine = Vec::new();
                loop {
                    let more = store
                        .claim_orphans(&me, at(10), at(FAR), 2)
                        .await
                        .expect("ok");
                    if more.is_empty() {
                        return mine;
                    }
                    mine.extend(more);
                }
            })
        })
        .collect();
    let mut claimed: Vec<Orphan> = Vec::new();
    for racer in racers {
        claimed.extend(racer.await.expect("no panic"));
    }
    let ids: BTreeSet<_> = claimed.iter().map(|o| o.task.clone()).collect();
    assert_eq!((claimed.len(), ids.len()), (20, 20), "each orphan once");
    for orphan in claimed {
        // What comes back is enough to go on with.
        let stored = store
            .load(&orphan.owner, &orphan.task)
            .await
            .expect("stored");
        assert!(stored.leased);
        let append = under(orphan.fence, moved(2, TaskState::Failed, 9));
        assert_eq!(
            store.append(&orphan.owner, &orphan.task, append).await,
            COMMITTED
        );
    }
}

/// A claim takes no more than asked for, the longest lost first, and nothing of one's own that is
/// in force.
pub async fn orphans_are_claimed_in_portions(store: Arc<dyn Store>) {
    for (id, until) in [("late", 30), ("early", 10), ("middle", 20), ("alive", FAR)] {
        store.create(&alice(), new_task(id)).await.expect("created");
        taken(&*store, id, take("a", until)).await;
    }
    let claim = async |now: i64, until: Timestamp, limit| {
        let orphans = store
            .claim_orphans(&node("a"), at(now), until, limit)
            .await
            .expect("ok");
        orphans.into_iter().map(|o| o.task).collect::<Vec<_>>()
    };
    assert_eq!(claim(50, at(FAR), 0).await, vec![]);
    assert_eq!(
        claim(50, at(FAR), 2).await,
        vec![task("early"), task("middle")]
    );
    assert_eq!(claim(50, at(60), 2).await, vec![task("late")]);
    assert_eq!(claim(50, at(FAR), 2).await, vec![]);
    assert_eq!(claim(60, at(FAR), 2).await, vec![task("late")]);
}
