//! A clean stop and a new start: everything is there, and nobody of before is.

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{make, open};
use crate::{
    Append, Appended, Fence, IdempotencyKey, LeaseChange, Maintenance, Settlement, Store,
    StoreError,
    conformance::{
        COMMITTED, FAR, alice, at, claim_all, entries, hook, lists, moved, new_task, node, notice,
        one, task,
    },
};

#[tokio::test]
async fn all_that_was_stored_is_there_after_a_restart() {
    let (store, dir) = make().await;
    let mut new = new_task("t");
    new.first.message_seq = Some(1);
    new.first.idempotency = Some(IdempotencyKey {
        key: "k".into(),
        digest: [3; 32],
        not_before: at(0),
    });
    store.create(&alice(), new).await.expect("created");
    // The newest entries are in the log alone.
    let append = Append {
        entries: entries(2, 5),
        ..Append::default()
    };
    store
        .append(&alice(), &task("t"), append)
        .await
        .expect("appended");
    let end = Append {
        checkpoint: Some(Bytes::from_static(b"the end")),
        ..moved(1, TaskState::Completed, 7)
    };
    let done = crate::NewTask {
        first: end,
        ..new_task("done")
    };
    store.create(&alice(), done).await.expect("created");

    let before = (
        store.load(&alice(), &task("t")).await,
        store.load(&alice(), &task("done")).await,
        store.entries(&alice(), &task("t"), 0, 99).await,
        store.list(&alice(), &lists::all(9)).await,
        store.idempotent(&alice(), "k", at(0)).await,
    );
    drop(store);
    let store = open(&dir);
    let after = (
        store.load(&alice(), &task("t")).await,
        store.load(&alice(), &task("done")).await,
        store.entries(&alice(), &task("t"), 0, 99).await,
        store.list(&alice(), &lists::all(9)).await,
        store.idempotent(&alice(), "k", at(0)).await,
    );
    assert_eq!(before, after);
    let refused = store.append(&alice(), &task("t"), one(6)).await;
    assert_eq!(refused, Err(StoreError::Conflict { last_seq: 6 }));
    assert_eq!(store.append(&alice(), &task("t"), one(7)).await, COMMITTED);
    let refused = store.append(&alice(), &task("done"), one(2)).await;
    assert_eq!(refused, Err(StoreError::Ended(TaskState::Completed)));
}

#[tokio::test]
async fn a_lease_of_before_the_restart_is_an_orphans_whatever_time_it_had() {
    let (store, dir) = make().await;
    let take = |by: &str| Append {
        lease: LeaseChange::Take {
            node: node(by),
            until: at(FAR),
        },
        ..Append::default()
    };
    for id in ["kept", "released", "ended", "retaken"] {
        store.create(&alice(), new_task(id)).await.expect("created");
        store
            .append(&alice(), &task(id), take("old"))
            .await
            .expect("taken");
    }
    let release = Append {
        lease: LeaseChange::Release,
        ..Append::default()
    };
    store
        .append(&alice(), &task("released"), release)
        .await
        .expect("released");
    let end = moved(2, TaskState::Failed, 9);
    store
        .append(&alice(), &task("ended"), end)
        .await
        .expect("ended");
    drop(store);

    let store = open(&dir);
    assert!(
        store
            .load(&alice(), &task("kept"))
            .await
            .expect("stored")
            .leased
    );
    // A message that comes before anybody looks for orphans is not kept out.
    let retaken = store.append(&alice(), &task("retaken"), take("new")).await;
    assert_eq!(
        retaken,
        Ok(Appended::Committed {
            fence: Some(Fence(2)),
            deliveries: 0
        })
    );
    let orphans = store
        .claim_orphans(&node("new"), at(0), at(FAR), 9)
        .await
        .expect("claimed");
    let claimed: Vec<_> = orphans.iter().map(|o| (o.task.as_str(), o.fence)).collect();
    assert_eq!(claimed, [("kept", Fence(2))]);
    let late = Append {
        fence: Some(Fence(1)),
        ..one(2)
    };
    let refused = store.append(&alice(), &task("kept"), late).await;
    assert_eq!(refused, Err(StoreError::StaleLease));
    assert_eq!(
        store.claim_orphans(&node("new"), at(0), at(FAR), 9).await,
        Ok(vec![])
    );
}

#[tokio::test]
async fn a_delivery_claimed_before_the_restart_is_due_again() {
    let (store, dir) = make().await;
    let mut new = new_task("t");
    new.push_configs = vec![hook("w")];
    new.first.notices = vec![notice(1, 0)];
    store.create(&alice(), new).await.expect("created");
    let claimed = store
        .claim_deliveries(claim_all(&node("old"), 1, FAR))
        .await
        .expect("claimed");
    assert_eq!(claimed.len(), 1);
    drop(store);

    let store = open(&dir);
    let old = Settlement::Delivered;
    store
        .settle_delivery(&node("old"), claimed[0].id, old)
        .await
        .expect("settled");
    let again = store
        .claim_deliveries(claim_all(&node("new"), 1, FAR))
        .await
        .expect("claimed");
    let seen: Vec<_> = again
        .iter()
        .map(|d| (d.config.as_str(), d.seq, d.attempts))
        .collect();
    assert_eq!(seen, [("w", 1, 1)]);
    let configs = store.push_configs(&alice(), &task("t")).await;
    assert_eq!(configs, Ok(vec![hook("w")]));
}
