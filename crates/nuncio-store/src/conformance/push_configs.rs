//! Push notification configs of a task.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{
    FAR, alice, at, claim_all, hook, moved, new_task, new_task_at, node, notice, one, owner, task,
};
use crate::{
    Append, Appended, Delivery, DeliveryFilter, PushConfigRow, Settlement, Store, StoreError,
};

async fn set(store: &dyn Store, config: PushConfigRow) {
    let set = store
        .set_push_config(&alice(), &task("t"), config, 9, at(50))
        .await;
    set.expect("set");
}

/// Appends an entry that is to be delivered; says to how many.
async fn deliver(store: &dyn Store, seq: u64) -> usize {
    let append = Append {
        notices: vec![notice(seq, 0)],
        ..one(seq)
    };
    match store.append(&alice(), &task("t"), append).await {
        Ok(Appended::Committed { deliveries, .. }) => deliveries,
        other => panic!("{other:?}"),
    }
}

async fn waiting(store: &dyn Store) -> Vec<Delivery> {
    let all = store.deliveries(DeliveryFilter::Waiting, 0, 99).await;
    all.expect("an answer")
        .into_iter()
        .map(|(d, _)| d)
        .collect()
}

fn what(deliveries: &[Delivery]) -> Vec<(&str, u64)> {
    deliveries
        .iter()
        .map(|d| (d.config.as_str(), d.seq))
        .collect()
}

/// Each entry goes to the configs that are there when it is committed; a finished task's configs
/// can be set and read too.
pub async fn a_config_gets_what_is_committed_after_it(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    assert_eq!(store.push_configs(&alice(), &task("t")).await, Ok(vec![]));
    assert_eq!(deliver(&*store, 2).await, 0);
    set(&*store, hook("b")).await;
    assert_eq!(deliver(&*store, 3).await, 1);
    set(&*store, hook("a")).await;
    assert_eq!(deliver(&*store, 4).await, 2);
    let quiet = store.append(&alice(), &task("t"), one(5)).await;
    assert_eq!(quiet, super::COMMITTED);
    assert_eq!(
        what(&waiting(&*store).await),
        [("b", 3), ("b", 4), ("a", 4)]
    );
    let end = moved(6, TaskState::Completed, 9);
    store
        .append(&alice(), &task("t"), end)
        .await
        .expect("ended");
    set(&*store, hook("late")).await;
    assert_eq!(
        store.push_configs(&alice(), &task("t")).await,
        Ok(vec![hook("b"), hook("a"), hook("late")]),
        "those set first come first"
    );
    assert_eq!(waiting(&*store).await.len(), 3);

    // One append may carry several notices, and a new task its configs.
    let mut new = new_task_at("u", TaskState::Completed, 1);
    new.push_configs = vec![hook("x"), hook("y")];
    new.first.entries = super::entries(1, 3);
    new.first.notices = vec![notice(1, 0), notice(3, 0)];
    let four = Appended::Committed {
        fence: None,
        deliveries: 4,
    };
    assert_eq!(store.create(&alice(), new).await, Ok(four));
    assert_eq!(
        store.push_configs(&alice(), &task("u")).await,
        Ok(vec![hook("x"), hook("y")])
    );
}

/// What it had to get goes where the new one says, now.
pub async fn a_replaced_config_keeps_its_place_and_its_deliveries(store: Arc<dyn Store>) {
    let a = node("a");
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    for id in ["x", "y", "z"] {
        set(&*store, hook(id)).await;
    }
    deliver(&*store, 2).await;
    deliver(&*store, 3).await;
    for got in store
        .claim_deliveries(claim_all(&a, 1, FAR))
        .await
        .expect("claimed")
    {
        let settlement = match got.config.as_str() {
            "x" => Settlement::Retry {
                due: at(FAR - 1),
                reason: "no such host".into(),
            },
            // One is on its way, and stays so.
            "y" => continue,
            _ => Settlement::Delivered,
        };
        let settled = store.settle_delivery(&a, got.id, settlement).await;
        settled.expect("settled");
    }
    let moved = |id: &str| PushConfigRow {
        destination: "elsewhere".into(),
        body: Bytes::from_static(b"other"),
        ..hook(id)
    };
    set(&*store, moved("x")).await;
    set(&*store, moved("y")).await;
    assert_eq!(
        store.push_configs(&alice(), &task("t")).await,
        Ok(vec![moved("x"), moved("y"), hook("z")])
    );
    for got in waiting(&*store).await {
        let to = if got.config == "z" {
            "to z"
        } else {
            "elsewhere"
        };
        assert_eq!(got.destination, to, "{got:?}");
    }
    let early = store.claim_deliveries(claim_all(&a, 49, FAR)).await;
    assert_eq!(what(&early.expect("claimed")), [("z", 3)]);
    let now = store.claim_deliveries(claim_all(&a, 50, FAR)).await;
    assert_eq!(what(&now.expect("claimed")), [("x", 2)]);
}

/// Those waiting, those on their way and those given up.
pub async fn a_deleted_config_takes_its_deliveries_along(store: Arc<dyn Store>) {
    let a = node("a");
    let mut new = new_task("t");
    new.push_configs = vec![hook("x"), hook("y")];
    store.create(&alice(), new).await.expect("created");
    for seq in 2..5 {
        deliver(&*store, seq).await;
    }
    let claimed = store
        .claim_deliveries(claim_all(&a, 1, FAR))
        .await
        .expect("claimed");
    for got in &claimed {
        let dead = Settlement::Dead {
            reason: "no".into(),
        };
        store
            .settle_delivery(&a, got.id, dead)
            .await
            .expect("settled");
    }
    let under_way = store
        .claim_deliveries(claim_all(&a, 1, FAR))
        .await
        .expect("claimed");
    assert_eq!(under_way.len(), 2);
    let delete = |id: &'static str| {
        let store = Arc::clone(&store);
        async move { store.delete_push_config(&alice(), &task("t"), id).await }
    };
    assert_eq!(delete("none").await, Ok(false));
    assert_eq!(delete("x").await, Ok(true));
    assert_eq!(delete("x").await, Ok(false));
    assert_eq!(
        store.push_configs(&alice(), &task("t")).await,
        Ok(vec![hook("y")])
    );
    assert_eq!(what(&waiting(&*store).await), [("y", 3), ("y", 4)]);
    let dead = store.deliveries(DeliveryFilter::Dead, 0, 9).await;
    let dead: Vec<_> = dead.expect("listed").into_iter().map(|(d, _)| d).collect();
    assert_eq!(what(&dead), [("y", 2)]);
    for got in &under_way {
        let settled = store
            .settle_delivery(&a, got.id, Settlement::Delivered)
            .await;
        settled.expect("settled, or gone");
    }
    // One of the same name starts anew.
    set(&*store, hook("x")).await;
    assert_eq!(deliver(&*store, 5).await, 2);
    assert_eq!(
        what(&waiting(&*store).await),
        [("y", 4), ("y", 5), ("x", 5)]
    );
}

/// As its receiver said.
pub async fn a_receiver_that_is_gone_loses_its_config(store: Arc<dyn Store>) {
    let a = node("a");
    let mut new = new_task("t");
    new.push_configs = vec![hook("x"), hook("y")];
    store.create(&alice(), new).await.expect("created");
    deliver(&*store, 2).await;
    deliver(&*store, 3).await;
    let claimed = store
        .claim_deliveries(claim_all(&a, 1, FAR))
        .await
        .expect("claimed");
    let of_x = claimed.iter().find(|d| d.config == "x").expect("claimed");
    let settled = store.settle_delivery(&a, of_x.id, Settlement::Gone).await;
    settled.expect("settled");
    assert_eq!(
        store.push_configs(&alice(), &task("t")).await,
        Ok(vec![hook("y")])
    );
    assert_eq!(what(&waiting(&*store).await), [("y", 2), ("y", 3)]);
    assert_eq!(deliver(&*store, 4).await, 1);
}

/// Replacing one is no addition.
pub async fn a_task_has_so_many_and_no_more(store: Arc<dyn Store>) {
    for id in ["t", "u"] {
        store.create(&alice(), new_task(id)).await.expect("created");
    }
    let set = |id: &'static str, to: &'static str, limit| {
        let store = Arc::clone(&store);
        async move {
            store
                .set_push_config(&alice(), &task(to), hook(id), limit, at(0))
                .await
        }
    };
    assert_eq!(set("a", "t", 2).await, Ok(()));
    assert_eq!(set("b", "t", 2).await, Ok(()));
    let full = Err(StoreError::TooManyPushConfigs);
    assert_eq!(set("c", "t", 2).await, full);
    assert_eq!(set("a", "t", 2).await, Ok(()));
    // Even where the limit was lowered since.
    assert_eq!(set("b", "t", 1).await, Ok(()));
    assert_eq!(set("c", "u", 2).await, Ok(()));
    let deleted = store.delete_push_config(&alice(), &task("t"), "a").await;
    assert_eq!(deleted, Ok(true));
    assert_eq!(set("c", "t", 2).await, Ok(()));
    assert_eq!(set("d", "u", 0).await, full);
    // Of those that race for the last place, one gets it.
    let racers: Vec<_> = ["e", "f", "g", "h"]
        .map(|id| tokio::spawn(set(id, "u", 2)))
        .into_iter()
        .collect();
    let mut won = 0;
    for racer in racers {
        won += usize::from(racer.await.expect("no panic").is_ok());
    }
    assert_eq!(won, 1);
    let configs = store.push_configs(&alice(), &task("u")).await;
    assert_eq!(configs.expect("an answer").len(), 2);
}

/// To read, to set and to delete.
pub async fn another_owners_configs_are_as_absent_as_none(store: Arc<dyn Store>) {
    let mut new = new_task("t");
    new.push_configs = vec![hook("x")];
    store.create(&alice(), new).await.expect("created");
    let bob = owner("bob");
    for id in ["t", "none"] {
        let id = task(id);
        let read = store.push_configs(&bob, &id).await;
        assert_eq!(read, Err(StoreError::NotFound));
        let set = store.set_push_config(&bob, &id, hook("x"), 9, at(0)).await;
        assert_eq!(set, Err(StoreError::NotFound));
        // Also where the limit would have refused it.
        let set = store.set_push_config(&bob, &id, hook("y"), 0, at(0)).await;
        assert_eq!(set, Err(StoreError::NotFound));
        let deleted = store.delete_push_config(&bob, &id, "x").await;
        assert_eq!(deleted, Err(StoreError::NotFound));
    }
    assert_eq!(
        store.push_configs(&alice(), &task("t")).await,
        Ok(vec![hook("x")])
    );
}
