//! Retention: what goes, what stays, and how much at once.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{
    FAR, alice, at, claim_all, entries, hook, lists, moved, new_task, new_task_at, node, notice,
    one, owner, task,
};
use crate::{
    Append, DeliveryFilter, LeaseChange, ListQuery, Pruned, Retention, Settlement, Store,
    StoreError,
};

const NOTHING: Retention = Retention {
    finished_before: None,
    entries_before: None,
    max_finished: None,
};

fn finished_before(ms: i64) -> Retention {
    Retention {
        finished_before: Some(at(ms)),
        ..NOTHING
    }
}

fn tasks(tasks: u64) -> Pruned {
    Pruned { tasks, logs: 0 }
}

/// A completed task of three entries, with a checkpoint.
async fn ended(store: &dyn Store, id: &str, since: i64) {
    let mut new = new_task_at(id, TaskState::Completed, since);
    new.first.entries = entries(1, 3);
    new.first.checkpoint = Some(Bytes::from(format!("checkpoint of {id}")));
    store.create(&alice(), new).await.expect("created");
}

/// A step takes the oldest, no more than it may, and zero says that all is done.
pub async fn finished_tasks_go_in_bounded_steps(store: Arc<dyn Store>) {
    for i in 0..7 {
        ended(&*store, &format!("t{i}"), 10 + i).await;
    }
    ended(&*store, "young", 100).await;
    assert_eq!(store.prune(&NOTHING, 10).await, Ok(tasks(0)));
    let policy = finished_before(17);
    assert_eq!(store.prune(&policy, 0).await, Ok(tasks(0)));
    assert_eq!(store.prune(&policy, 3).await, Ok(tasks(3)));
    for (id, there) in [("t0", false), ("t2", false), ("t3", true), ("young", true)] {
        assert_eq!(store.load(&alice(), &task(id)).await.is_ok(), there, "{id}");
    }
    assert_eq!(
        store.entries(&alice(), &task("t0"), 0, 9).await,
        Err(StoreError::NotFound)
    );
    let refused = store.append(&alice(), &task("t0"), one(4)).await;
    assert_eq!(refused, Err(StoreError::NotFound));
    assert_eq!(store.prune(&policy, 3).await, Ok(tasks(3)));
    assert_eq!(store.prune(&policy, 3).await, Ok(tasks(1)));
    assert_eq!(store.prune(&policy, 3).await, Ok(tasks(0)));
    let page = store.list(&alice(), &lists::all(10)).await.expect("a page");
    assert_eq!((page.tasks.len(), page.total), (1, 1));
    let completed = ListQuery {
        state: Some(TaskState::Completed),
        ..lists::all(10)
    };
    assert_eq!(
        store
            .list(&alice(), &completed)
            .await
            .expect("a page")
            .total,
        1
    );
}

/// Where only logs go, the task stays as its checkpoint says; where there is no checkpoint of the
/// end, the log is needed and stays.
pub async fn logs_go_and_checkpoints_stay(store: Arc<dyn Store>) {
    for i in 0..4 {
        ended(&*store, &format!("t{i}"), 10 + i).await;
    }
    store
        .create(&alice(), new_task("bare"))
        .await
        .expect("created");
    let half = Append {
        checkpoint: Some(Bytes::from_static(b"half")),
        ..one(2)
    };
    store
        .append(&alice(), &task("bare"), half)
        .await
        .expect("appended");
    let end = moved(3, TaskState::Completed, 5);
    store
        .append(&alice(), &task("bare"), end)
        .await
        .expect("ended");
    let before = store.load(&alice(), &task("t0")).await.expect("stored");

    let policy = Retention {
        entries_before: Some(at(13)),
        ..NOTHING
    };
    assert_eq!(
        store.prune(&policy, 2).await,
        Ok(Pruned { tasks: 0, logs: 2 })
    );
    assert_eq!(
        store.prune(&policy, 2).await,
        Ok(Pruned { tasks: 0, logs: 1 })
    );
    assert_eq!(store.prune(&policy, 2).await, Ok(Pruned::default()));
    assert_eq!(store.load(&alice(), &task("t0")).await, Ok(before));
    assert_eq!(store.entries(&alice(), &task("t0"), 0, 9).await, Ok(vec![]));
    for id in ["t3", "bare"] {
        let log = store.entries(&alice(), &task(id), 0, 9).await;
        assert_eq!(log, Ok(entries(1, 3)), "{id}");
    }
    let page = store.list(&alice(), &lists::all(10)).await.expect("a page");
    assert_eq!((page.tasks.len(), page.total), (5, 5));

    // Both at once: what is left of the limit goes to logs.
    let both = Retention {
        entries_before: Some(at(99)),
        ..finished_before(11)
    };
    assert_eq!(
        store.prune(&both, 3).await,
        Ok(Pruned { tasks: 2, logs: 1 })
    );
    assert_eq!(store.prune(&both, 3).await, Ok(Pruned::default()));
}

/// Beyond the maximum, those that ended first go, whoever's they are.
pub async fn beyond_the_maximum_the_first_to_end_go(store: Arc<dyn Store>) {
    for (i, since) in [30, 10, 50, 20, 40].into_iter().enumerate() {
        let new = new_task_at(&format!("t{since}"), TaskState::Failed, since);
        store
            .create(&owner(&format!("o{}", i % 2)), new)
            .await
            .expect("created");
    }
    store
        .create(&owner("o0"), new_task_at("open", TaskState::Working, 1))
        .await
        .expect("ok");
    let policy = Retention {
        max_finished: Some(2),
        ..NOTHING
    };
    assert_eq!(store.prune(&policy, 2).await, Ok(tasks(2)));
    assert_eq!(store.prune(&policy, 2).await, Ok(tasks(1)));
    assert_eq!(store.prune(&policy, 2).await, Ok(tasks(0)));
    let mut left = lists::walk(&*store, &owner("o0"), &lists::all(9)).await;
    left.extend(lists::walk(&*store, &owner("o1"), &lists::all(9)).await);
    left.sort();
    assert_eq!(left, [task("open"), task("t40"), task("t50")]);
    let none = Retention {
        max_finished: Some(0),
        ..NOTHING
    };
    assert_eq!(store.prune(&none, 9).await, Ok(tasks(2)));
}

/// No policy touches a task that has not ended.
pub async fn unfinished_tasks_stay(store: Arc<dyn Store>) {
    let open = [
        TaskState::Submitted,
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::AuthRequired,
    ];
    for (i, state) in open.into_iter().enumerate() {
        let mut new = new_task_at(&format!("t{i}"), state, 0);
        new.first.checkpoint = Some(Bytes::from_static(b"so far"));
        if i % 2 == 0 {
            new.first.lease = LeaseChange::Take {
                node: node("a"),
                until: at(1),
            };
        }
        store.create(&alice(), new).await.expect("created");
    }
    let all = Retention {
        finished_before: Some(at(FAR)),
        entries_before: Some(at(FAR)),
        max_finished: Some(0),
    };
    assert_eq!(store.prune(&all, 100).await, Ok(Pruned::default()));
    for i in 0..open.len() {
        let log = store.entries(&alice(), &task(&format!("t{i}")), 0, 9).await;
        assert_eq!(log, Ok(entries(1, 1)));
    }
}

/// A task with deliveries to be made stays, and so does its log; what was given up goes with it.
pub async fn a_task_stays_until_its_deliveries_are_made(store: Arc<dyn Store>) {
    let a = node("a");
    let mut new = new_task_at("t", TaskState::Completed, 5);
    new.push_configs = vec![hook("w"), hook("lost")];
    new.first.entries = entries(1, 2);
    new.first.checkpoint = Some(Bytes::from_static(b"checkpoint"));
    new.first.notices = vec![notice(1, 0), notice(2, 0)];
    store.create(&alice(), new).await.expect("created");
    ended(&*store, "other", 6).await;
    let mut everything = finished_before(7);
    everything.entries_before = Some(at(7));
    everything.max_finished = Some(0);
    assert_eq!(store.prune(&everything, 9).await, Ok(tasks(1)));
    let mut left = 4;
    while left > 0 {
        let due = store.claim_deliveries(claim_all(&a, 9, FAR)).await;
        for got in due.expect("claimed") {
            assert_eq!(store.prune(&everything, 9).await, Ok(Pruned::default()));
            let log = store.entries(&alice(), &task("t"), 0, 9).await;
            assert_eq!(log, Ok(entries(1, 2)));
            let settlement = match got.config.as_str() {
                "lost" => Settlement::Dead {
                    reason: "no".into(),
                },
                _ => Settlement::Delivered,
            };
            let settled = store.settle_delivery(&a, got.id, settlement).await;
            settled.expect("settled");
            left -= 1;
        }
    }
    let dead = store.deliveries(DeliveryFilter::Dead, 0, 9).await;
    let dead = dead.expect("an answer");
    assert_eq!(dead.len(), 2);
    // One that is to be tried again keeps its task again.
    let again = store.retry_delivery(dead[0].0.id, at(10)).await;
    assert_eq!(again, Ok(true));
    assert_eq!(store.prune(&everything, 9).await, Ok(Pruned::default()));
    assert_eq!(store.drop_delivery(dead[0].0.id).await, Ok(true));
    assert_eq!(store.prune(&everything, 9).await, Ok(tasks(1)));
    let dead = store.deliveries(DeliveryFilter::Dead, 0, 9).await;
    assert_eq!(dead, Ok(vec![]));
}
