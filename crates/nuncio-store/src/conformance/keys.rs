//! Idempotency keys.

use std::sync::Arc;

use nuncio_core::TaskState;

use super::{COMMITTED, FAR, alice, at, moved, new_task, one, task};
use crate::{Append, Appended, IdempotencyKey, IdempotencyRecord, NewTask, Retention, Store};

fn key(name: &str, digest: u8, not_before: i64) -> IdempotencyKey {
    IdempotencyKey {
        key: name.into(),
        digest: [digest; 32],
        not_before: at(not_before),
    }
}

fn keyed(append: Append, seq: u64, key: IdempotencyKey) -> Append {
    Append {
        message_seq: Some(seq),
        idempotency: Some(key),
        ..append
    }
}

fn new_keyed(id: &str, key: IdempotencyKey) -> NewTask {
    let new = new_task(id);
    NewTask {
        first: keyed(new.first, 1, key),
        ..new
    }
}

async fn record(store: &dyn Store, name: &str, not_before: i64) -> Option<(String, u8, u64)> {
    let found = store
        .idempotent(&alice(), name, at(not_before))
        .await
        .expect("an answer");
    found.map(|r| (r.task.as_str().to_owned(), r.digest[0], r.seq))
}

fn duplicate(answer: &Result<Appended, crate::StoreError>) -> &IdempotencyRecord {
    match answer {
        Ok(Appended::Duplicate(record)) => record,
        other => panic!("no duplicate: {other:?}"),
    }
}

/// A key stands for the first send, in a new task or in one that goes on.
pub async fn a_key_is_used_once(store: Arc<dyn Store>) {
    assert_eq!(record(&*store, "k", 0).await, None);
    assert_eq!(
        store.create(&alice(), new_keyed("t", key("k", 1, 0))).await,
        COMMITTED
    );
    assert_eq!(record(&*store, "k", 0).await, Some(("t".into(), 1, 1)));
    let again = store.create(&alice(), new_keyed("u", key("k", 2, 0))).await;
    assert_eq!(
        (duplicate(&again).task.as_str(), duplicate(&again).digest),
        ("t", [1; 32])
    );
    assert_eq!(
        store.load(&alice(), &task("u")).await,
        Err(crate::StoreError::NotFound)
    );

    let sent = keyed(one(2), 2, key("k2", 3, 0));
    assert_eq!(
        store.append(&alice(), &task("t"), sent.clone()).await,
        COMMITTED
    );
    assert_eq!(record(&*store, "k2", 0).await, Some(("t".into(), 3, 2)));
    let again = store.append(&alice(), &task("t"), sent).await;
    assert_eq!(duplicate(&again).seq, 2);
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        2
    );
}

/// Of many sends with one key, one is written, and all others are told which.
pub async fn of_racing_sends_with_one_key_one_is_written(store: Arc<dyn Store>) {
    for round in 0..10 {
        let racers: Vec<_> = (0..8)
            .map(|i| {
                let store = Arc::clone(&store);
                let new = new_keyed(&format!("t{round}-{i}"), key(&format!("k{round}"), i, 0));
                tokio::spawn(async move { (i, store.create(&alice(), new).await) })
            })
            .collect();
        let mut written = Vec::new();
        let mut told = Vec::new();
        for racer in racers {
            let (i, answer) = racer.await.expect("no panic");
            match answer {
                Ok(Appended::Committed { .. }) => written.push(i),
                other => told.push(duplicate(&other).clone()),
            }
        }
        let [winner] = written[..] else {
            panic!("written: {written:?}")
        };
        let id = task(&format!("t{round}-{winner}"));
        assert!(
            told.iter()
                .all(|r| r.task == id && r.digest == [winner; 32])
        );
        assert_eq!(told.len(), 7);
    }
    let page = store
        .list(&alice(), &super::lists::all(1))
        .await
        .expect("a page");
    assert_eq!(page.total, 10);
}

/// A record older than the window counts as absent, and makes room for the next.
pub async fn a_key_out_of_its_window_is_replaced(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_keyed("t", key("k", 1, 0)))
        .await
        .expect("created");
    assert_eq!(record(&*store, "k", FAR).await, None);
    assert_eq!(
        store
            .create(&alice(), new_keyed("u", key("k", 2, FAR)))
            .await,
        COMMITTED
    );
    assert_eq!(
        store
            .create(&alice(), new_keyed("v", key("k", 3, FAR)))
            .await,
        COMMITTED
    );
    // Pruning takes such records and no others.
    store
        .create(&alice(), new_keyed("w", key("kept", 4, 0)))
        .await
        .expect("created");
    let nothing = Retention {
        finished_before: None,
        entries_before: None,
        max_finished: None,
    };
    assert_eq!(
        store.prune(&nothing, 100).await,
        Ok(crate::Pruned::default())
    );
    assert_eq!(record(&*store, "k", 0).await, None);
    assert_eq!(record(&*store, "kept", 0).await, Some(("w".into(), 4, 1)));
}

/// Whatever became of the task meanwhile, a retry learns that it is one; only where the task is
/// gone altogether is there nothing to tell.
pub async fn a_retry_is_told_so_even_after_the_end(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let sent = keyed(one(2), 2, key("k", 1, 0));
    store
        .append(&alice(), &task("t"), sent.clone())
        .await
        .expect("sent");
    store
        .append(&alice(), &task("t"), one(3))
        .await
        .expect("appended");
    let again = store.append(&alice(), &task("t"), sent.clone()).await;
    assert_eq!(duplicate(&again).seq, 2, "before the numbers are looked at");
    store
        .append(&alice(), &task("t"), moved(4, TaskState::Completed, 9))
        .await
        .expect("ended");
    let again = store.append(&alice(), &task("t"), sent).await;
    assert_eq!(duplicate(&again).seq, 2, "before the end is looked at");

    let all = Retention {
        finished_before: Some(at(FAR)),
        entries_before: None,
        max_finished: None,
    };
    assert_eq!(store.prune(&all, 10).await.expect("pruned").tasks, 1);
    assert_eq!(record(&*store, "k", 0).await, None);
    assert_eq!(
        store.create(&alice(), new_keyed("u", key("k", 5, 0))).await,
        COMMITTED
    );
}
