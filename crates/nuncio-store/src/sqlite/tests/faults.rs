//! A disk that is full, a file that turns read-only, a statement that fails: what was stored
//! stays, what can be done is done, and what can't says why.

use std::sync::mpsc;

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{SqliteOptions, SqliteStore, make, open};
use crate::{
    Append, Appended, Entry, LeaseChange, Maintenance, Retention, Store, StoreError,
    conformance::{
        COMMITTED, FAR, alice, at, lists, moved, new_task, new_task_at, node, one, task,
    },
    sqlite::error::Failure,
};

/// A finished task of 20 kB.
fn large(id: &str) -> crate::NewTask {
    let mut new = new_task_at(id, TaskState::Completed, 1);
    new.first.entries = vec![Entry {
        seq: 1,
        body: Bytes::from(vec![b'x'; 20_000]),
    }];
    new
}

fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_has_no_room_and_keeps_the_rest() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions {
        max_bytes: Some(1 << 20),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(dir.path().join("tasks.db"), &options).expect("opened");
    store
        .create(&alice(), new_task("open"))
        .await
        .expect("created");
    let mut made = 0;
    let refused = loop {
        match store.create(&alice(), large(&format!("t{made}"))).await {
            Ok(_) => made += 1,
            Err(e) => break e,
        }
    };
    let text = unavailable::<()>(Err(refused));
    assert!(
        text.contains("tasks.db") && text.contains("no room"),
        "{text}"
    );
    assert!((30..60).contains(&made), "{made} tasks of 20 kB in 1 MiB");

    // Nothing of what was refused is there, all of what was not is.
    let gone = store.load(&alice(), &task(&format!("t{made}"))).await;
    assert_eq!(gone, Err(StoreError::NotFound));
    let page = store
        .list(&alice(), &lists::all(100))
        .await
        .expect("a page");
    assert_eq!((page.tasks.len(), page.total), (made + 1, made as u64 + 1));
    for i in 0..made {
        let id = task(&format!("t{i}"));
        let log = store.entries(&alice(), &id, 0, 9).await.expect("a log");
        assert_eq!(log[0].body.len(), 20_000);
    }
    // Room comes back with pruning, and then all goes on.
    let policy = Retention {
        finished_before: Some(at(FAR)),
        entries_before: None,
        max_finished: None,
    };
    assert_eq!(store.prune(&policy, 10).await.expect("pruned").tasks, 10);
    assert_eq!(store.create(&alice(), large("after")).await, COMMITTED);
    assert_eq!(
        store.append(&alice(), &task("open"), one(2)).await,
        COMMITTED
    );
    drop(store);
    // Without the limit, more fits; and it is all there after a new start.
    let store = open(&dir);
    assert_eq!(
        store
            .load(&alice(), &task("open"))
            .await
            .expect("stored")
            .last_seq,
        2
    );
    for i in 0..50 {
        store
            .create(&alice(), large(&format!("more{i}")))
            .await
            .expect("created");
    }
}

#[tokio::test]
async fn of_a_commit_that_fails_only_the_culprits_fail() {
    let (store, _dir) = make().await;
    for id in ["a", "b"] {
        store.create(&alice(), new_task(id)).await.expect("created");
    }
    let (owner, a, b) = (alice(), task("a"), task("b"));
    let lease = LeaseChange::Take {
        node: node("n"),
        until: at(FAR),
    };
    // Hold the writer, so that what follows shares a transaction.
    let (open_gate, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let hold = store.writer.run(0, move |_| {
        let _ = gate.lock().expect("a lock").recv();
        Ok(())
    });
    let first = store.append(&owner, &a, Append { lease, ..one(2) });
    let culprit = store.writer.run(0, |desk| {
        // It has written before it fails.
        desk.conn()
            .execute("UPDATE tasks SET context = 'spoilt'", [])?;
        desk.conn().execute("INSERT INTO nowhere VALUES (1)", [])?;
        Ok::<_, Failure>(())
    });
    let second = store.append(&owner, &a, moved(3, TaskState::InputRequired, 9));
    let refused = store.append(&owner, &a, one(3));
    let third = store.append(&owner, &b, moved(2, TaskState::Completed, 9));
    // Polled last, when all are queued. The gate stays open, as the jobs are tried twice.
    let release = async { drop(open_gate) };
    let (held, first, culprit, second, refused, third, ()) =
        tokio::join!(hold, first, culprit, second, refused, third, release);
    held.expect("held");
    assert_eq!(
        first,
        Ok(Appended::Committed {
            fence: Some(crate::Fence(1)),
            deliveries: 0
        })
    );
    assert!(unavailable(culprit).contains("nowhere"));
    assert_eq!(second, COMMITTED);
    assert_eq!(refused, Err(StoreError::Conflict { last_seq: 3 }));
    assert_eq!(third, COMMITTED);

    let stored = store.load(&owner, &a).await.expect("stored");
    assert_eq!(
        (stored.last_seq, stored.context_id.as_str(), stored.leased),
        (3, "c", true)
    );
    for (state, n) in [
        (TaskState::Working, 0),
        (TaskState::InputRequired, 1),
        (TaskState::Completed, 1),
    ] {
        let query = crate::ListQuery {
            state: Some(state),
            ..lists::all(9)
        };
        assert_eq!(
            store.list(&owner, &query).await.expect("a page").total,
            n,
            "{state:?}"
        );
    }
    // The lease is remembered as it was committed.
    let other = LeaseChange::Take {
        node: node("m"),
        until: at(FAR),
    };
    let take = Append {
        lease: other,
        ..Append::default()
    };
    assert_eq!(
        store.append(&owner, &a, take).await,
        Err(StoreError::Leased)
    );
    let orphans = store.claim_orphans(&node("m"), at(10), at(FAR), 9).await;
    assert_eq!(orphans, Ok(vec![]));
}

#[tokio::test]
async fn leases_are_as_they_were_after_a_commit_that_failed() {
    let (store, _dir) = make().await;
    for id in ["free", "held"] {
        store.create(&alice(), new_task(id)).await.expect("created");
    }
    let take = |by: &str| Append {
        lease: LeaseChange::Take {
            node: node(by),
            until: at(FAR),
        },
        ..Append::default()
    };
    store
        .append(&alice(), &task("held"), take("n"))
        .await
        .expect("taken");
    let spoilt = store.writer.run(0, move |desk| {
        desk.append(&alice(), &task("free"), &take("n"))?;
        desk.renew_leases(&node("n"), at(0));
        let release = Append {
            lease: LeaseChange::Release,
            ..Append::default()
        };
        desk.append(&alice(), &task("held"), &release)?;
        Err::<(), _>(Failure::Sql(rusqlite::Error::InvalidQuery))
    });
    unavailable(spoilt.await);
    let orphans = store.claim_orphans(&node("m"), at(10), at(FAR), 9).await;
    assert_eq!(orphans, Ok(vec![]));
    let take = |by: &str| Append {
        lease: LeaseChange::Take {
            node: node(by),
            until: at(FAR),
        },
        ..Append::default()
    };
    let refused = store.append(&alice(), &task("held"), take("m")).await;
    assert_eq!(refused, Err(StoreError::Leased));
    let taken = store.append(&alice(), &task("free"), take("m")).await;
    assert_eq!(
        taken,
        Ok(Appended::Committed {
            fence: Some(crate::Fence(1)),
            deliveries: 0
        })
    );
}

#[tokio::test]
async fn a_file_that_turns_read_only_says_so_and_can_still_be_read() {
    let (store, dir) = make().await;
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let turn = store.writer.run(0, |desk| {
        Ok(desk.conn().execute_batch("PRAGMA query_only = ON")?)
    });
    turn.await.expect("set");
    let text = unavailable(store.append(&alice(), &task("t"), one(2)).await);
    assert!(
        text.contains("is read-only") && text.contains("write access"),
        "{text}"
    );
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        1
    );
    drop(store);
    let store = open(&dir);
    assert_eq!(store.append(&alice(), &task("t"), one(2)).await, COMMITTED);
}

#[tokio::test]
async fn another_program_that_holds_the_file_locked_is_named_as_the_reason() {
    let (store, _dir) = make().await;
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let impatient = store.writer.run(0, |desk| {
        Ok(desk.conn().busy_timeout(std::time::Duration::ZERO)?)
    });
    impatient.await.expect("set");
    let other = rusqlite::Connection::open(store.path()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("begun");
    let text = unavailable(store.append(&alice(), &task("t"), one(2)).await);
    assert!(
        text.contains("another program holds the database locked"),
        "{text}"
    );
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        1
    );
    other.execute_batch("ROLLBACK").expect("rolled back");
    assert_eq!(store.append(&alice(), &task("t"), one(2)).await, COMMITTED);
}

#[tokio::test]
async fn a_log_row_that_was_damaged_is_reported_and_not_passed_on() {
    let (store, _dir) = make().await;
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let damage = store.writer.run(0, |desk| {
        Ok(desk.conn().execute("UPDATE log SET bodies = x'0a0a'", [])?)
    });
    damage.await.expect("damaged");
    let text = unavailable(store.entries(&alice(), &task("t"), 0, 9).await);
    assert!(
        text.contains("damaged") && text.contains("backup"),
        "{text}"
    );
}
