//! The writer's queue: its order, its bound, and callers that go away.

use std::{
    sync::{Arc, Mutex, mpsc},
    task::{Context, Waker},
};

use bytes::Bytes;

use super::{SqliteOptions, SqliteStore, make};
use crate::{
    Append, Entry, Store, StoreError,
    conformance::{COMMITTED, alice, new_task, one, task},
};

/// Keeps the writer busy until the sender is dropped.
fn hold(
    store: &SqliteStore,
) -> (
    mpsc::Sender<()>,
    impl Future<Output = Result<(), StoreError>>,
) {
    let (sender, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let held = store.writer.run(0, move |_| {
        let _ = gate.lock().expect("a lock").recv();
        Ok(())
    });
    (sender, held)
}

fn poll<T>(future: std::pin::Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

#[tokio::test]
async fn whoever_calls_first_is_served_first_however_much_others_call() {
    let (store, _dir) = make().await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let (gate, held) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll(held.as_mut()).is_none());
    // More than fits a transaction, by callers of all kinds.
    let mut waiting = Vec::new();
    for i in 0..3000 {
        let order = Arc::clone(&order);
        let mut job = Box::pin(store.writer.run(i % 7 * 1000, move |_| {
            order.lock().expect("a lock").push(i);
            if i % 5 == 0 {
                Err(StoreError::NotFound.into())
            } else {
                Ok(())
            }
        }));
        assert!(poll(job.as_mut()).is_none());
        waiting.push(job);
    }
    drop(gate);
    held.await.expect("held");
    for (i, job) in waiting.into_iter().enumerate() {
        assert_eq!(job.await.is_ok(), i % 5 != 0);
    }
    assert!(order.lock().expect("a lock").iter().copied().eq(0..3000));
}

#[tokio::test]
async fn an_append_whose_caller_goes_away_is_done() {
    let (store, _dir) = make().await;
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let (owner, id) = (alice(), task("t"));
    let (gate, held) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll(held.as_mut()).is_none());
    let mut append = store.append(&owner, &id, one(2));
    assert!(poll(append.as_mut()).is_none());
    drop(append);
    // One that was never polled never was.
    drop(store.append(&owner, &id, one(3)));
    drop(gate);
    held.await.expect("held");
    assert_eq!(store.append(&owner, &id, one(3)).await, COMMITTED);
}

#[tokio::test]
async fn what_waits_is_bounded_and_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions {
        max_queued_bytes: 100_000,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(dir.path().join("tasks.db"), &options).expect("opened");
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let (owner, id) = (alice(), task("t"));
    let (gate, held) = hold(&store);
    let mut held = Box::pin(held);
    assert!(poll(held.as_mut()).is_none());
    let heavy = |seq| Append {
        entries: vec![Entry {
            seq,
            body: Bytes::from(vec![b'x'; 10_000]),
        }],
        ..Append::default()
    };
    let mut taken = Vec::new();
    let refused = loop {
        let mut append = store.append(&owner, &id, heavy(taken.len() as u64 + 2));
        match poll(append.as_mut()) {
            None => taken.push(append),
            Some(answer) => break answer,
        }
    };
    let Err(StoreError::Unavailable(text)) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        text.contains("wait to be written") && text.contains("try again"),
        "{text}"
    );
    assert_eq!(taken.len(), 9);
    drop(gate);
    held.await.expect("held");
    for append in taken {
        assert_eq!(append.await, COMMITTED);
    }
    // A single append may be larger than all that may wait.
    let giant = Append {
        entries: vec![Entry {
            seq: 11,
            body: Bytes::from(vec![b'x'; 200_000]),
        }],
        ..Append::default()
    };
    let mut answer = store.append(&owner, &id, giant.clone()).await;
    while let Err(StoreError::Unavailable(_)) = answer {
        // The count of what waits may trail the answers by a moment.
        tokio::task::yield_now().await;
        answer = store.append(&owner, &id, giant.clone()).await;
    }
    assert_eq!(answer, COMMITTED);
}

#[tokio::test]
async fn dropping_the_store_finishes_what_is_queued() {
    let (store, dir) = make().await;
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    {
        let (owner, id) = (alice(), task("t"));
        let (_gate, held) = hold(&store);
        let mut held = Box::pin(held);
        assert!(poll(held.as_mut()).is_none());
        for seq in 2..50 {
            let mut append = store.append(&owner, &id, one(seq));
            assert!(poll(append.as_mut()).is_none());
        }
    }
    drop(store);
    assert!(
        !dir.path().join("tasks.db-wal").exists(),
        "the log was not folded in"
    );
    let store = super::open(&dir);
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        49
    );
}
