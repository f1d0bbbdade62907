//! Creating tasks and appending to them: numbers, order, ends, atomicity.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_core::TaskState;

use super::{
    COMMITTED, FAR, alice, at, claim_all, context, entries, entry, hook, is_malformed, moved,
    new_task, node, notice, one, status, task,
};
use crate::{
    Append, Entry, IdempotencyKey, LeaseChange, NewTask, Retention, Store, StoreError, StoredTask,
};

/// What was created is what is loaded.
pub async fn a_task_reads_back_as_created(store: Arc<dyn Store>) {
    let new = NewTask {
        id: task("t"),
        context_id: context("ctx"),
        push_configs: Vec::new(),
        first: Append {
            entries: entries(1, 4),
            status: Some(status(TaskState::Completed, 77)),
            checkpoint: Some(Bytes::from_static(b"{}\n{}")),
            message_seq: Some(2),
            ..Append::default()
        },
    };
    assert_eq!(store.create(&alice(), new).await, COMMITTED);
    let stored = store.load(&alice(), &task("t")).await.expect("stored");
    assert_eq!(
        stored,
        StoredTask {
            id: task("t"),
            context_id: context("ctx"),
            status: status(TaskState::Completed, 77),
            last_seq: 4,
            last_message_seq: 2,
            checkpoint: Some(Bytes::from_static(b"{}\n{}")),
            checkpoint_seq: 4,
            leased: false,
        }
    );
    let log = store
        .entries(&alice(), &task("t"), 0, 10)
        .await
        .expect("a log");
    assert_eq!(log, entries(1, 4));
}

/// Numbers run 1, 2, 3 … over all appends.
pub async fn entries_are_numbered_from_one_without_gaps(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let mut last = 1;
    for n in [1, 3, 1, 7] {
        let append = Append {
            entries: entries(last + 1, n),
            ..Append::default()
        };
        assert_eq!(store.append(&alice(), &task("t"), append).await, COMMITTED);
        last += n;
        assert_eq!(
            store
                .load(&alice(), &task("t"))
                .await
                .expect("stored")
                .last_seq,
            last
        );
    }
    let log = store
        .entries(&alice(), &task("t"), 0, 100)
        .await
        .expect("a log");
    assert_eq!(log, entries(1, last));
}

/// A gap, a repeat and a jump within are refused, and say where the log is.
pub async fn an_append_that_does_not_continue_the_numbers_conflicts(store: Arc<dyn Store>) {
    let mut late = new_task("late");
    late.first.entries = entries(2, 1);
    let refused = store.create(&alice(), late).await;
    assert_eq!(refused, Err(StoreError::Conflict { last_seq: 0 }));
    assert_eq!(
        store.load(&alice(), &task("late")).await,
        Err(StoreError::NotFound)
    );

    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    store
        .append(&alice(), &task("t"), one(2))
        .await
        .expect("appended");
    for bad in [
        vec![entry(4)],
        vec![entry(2)],
        vec![entry(0)],
        vec![entry(3), entry(5)],
        vec![entry(3), entry(3)],
        vec![entry(u64::MAX)],
    ] {
        let append = Append {
            entries: bad,
            ..Append::default()
        };
        let refused = store.append(&alice(), &task("t"), append).await;
        assert_eq!(refused, Err(StoreError::Conflict { last_seq: 2 }));
    }
    let log = store
        .entries(&alice(), &task("t"), 0, 10)
        .await
        .expect("a log");
    assert_eq!(log, entries(1, 2));
}

/// A cursor over the log sees every entry once, whatever its portions.
pub async fn entries_come_in_order_and_in_portions(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    // A neighbour, whose entries are none of this task's.
    store
        .create(&alice(), new_task("u"))
        .await
        .expect("created");
    let mut last = 1;
    for n in [5, 1, 4, 9] {
        let append = Append {
            entries: entries(last + 1, n),
            ..Append::default()
        };
        store
            .append(&alice(), &task("t"), append)
            .await
            .expect("appended");
        last += n;
    }
    for portion in [1, 2, 3, 7, 100] {
        let mut seen: Vec<Entry> = Vec::new();
        loop {
            let after = seen.last().map_or(0, |e| e.seq);
            let more = store
                .entries(&alice(), &task("t"), after, portion)
                .await
                .expect("a log");
            assert!(more.len() <= portion);
            if more.is_empty() {
                break;
            }
            seen.extend(more);
        }
        assert_eq!(seen, entries(1, last));
    }
    for after in [last, last + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(
            store.entries(&alice(), &task("t"), after, 10).await,
            Ok(Vec::new())
        );
    }
    assert_eq!(
        store.entries(&alice(), &task("t"), 0, 0).await,
        Ok(Vec::new())
    );
}

/// Neither a burst of entries, nor large ones, nor empty ones come back changed.
pub async fn long_appends_and_empty_bodies_read_back(store: Arc<dyn Store>) {
    let body = |seq: u64| match seq % 4 {
        0 => Bytes::new(),
        1 => Bytes::from(vec![b'x'; 3000]),
        2 => Bytes::from_static("müßig \u{2028} \0".as_bytes()),
        _ => Bytes::from(vec![0xff; 17]),
    };
    let burst: Vec<_> = (2..2002)
        .map(|seq| Entry {
            seq,
            body: body(seq),
        })
        .collect();
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let append = Append {
        entries: burst.clone(),
        ..Append::default()
    };
    store
        .append(&alice(), &task("t"), append)
        .await
        .expect("appended");
    let large = Entry {
        seq: 2002,
        body: Bytes::from(vec![b'y'; 3 << 20]),
    };
    let append = Append {
        entries: vec![large.clone()],
        ..Append::default()
    };
    store
        .append(&alice(), &task("t"), append)
        .await
        .expect("appended");

    let mut seen = Vec::new();
    loop {
        let after = seen.last().map_or(1, |e: &Entry| e.seq);
        let more = store
            .entries(&alice(), &task("t"), after, 64)
            .await
            .expect("a log");
        if more.is_empty() {
            break;
        }
        seen.extend(more);
    }
    assert_eq!(seen.pop(), Some(large));
    assert!(seen == burst, "a burst came back changed");
    // Alone, too, from the midst of it.
    let alone = store
        .entries(&alice(), &task("t"), 1234, 1)
        .await
        .expect("a log");
    assert_eq!(
        alone,
        [Entry {
            seq: 1235,
            body: body(1235)
        }]
    );
}

/// What breaks the rules whatever the task is, is refused as malformed.
pub async fn a_malformed_append_is_refused(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let newline = Entry {
        seq: 2,
        body: Bytes::from_static(b"a\nb"),
    };
    let key = IdempotencyKey {
        key: "k".into(),
        digest: [0; 32],
        not_before: at(0),
    };
    let malformed = [
        Append {
            entries: vec![newline],
            ..Append::default()
        },
        Append {
            status: Some(status(TaskState::Working, 2)),
            ..Append::default()
        },
        moved(2, TaskState::Unspecified, 2),
        Append {
            message_seq: Some(3),
            ..one(2)
        },
        Append {
            idempotency: Some(key),
            ..one(2)
        },
        Append {
            notices: vec![notice(1, 0)],
            ..one(2)
        },
    ];
    for append in malformed {
        let shown = format!("{append:?}");
        assert!(
            is_malformed(&store.append(&alice(), &task("t"), append).await),
            "{shown}"
        );
    }
    let mut empty = new_task("empty");
    empty.first.entries.clear();
    assert!(is_malformed(&store.create(&alice(), empty).await));
    let mut stateless = new_task("stateless");
    stateless.first.status = None;
    assert!(is_malformed(&store.create(&alice(), stateless).await));
    assert_eq!(
        store
            .load(&alice(), &task("t"))
            .await
            .expect("stored")
            .last_seq,
        1
    );
}

/// The first terminal state wins, in whatever append it comes.
pub async fn nothing_follows_a_terminal_state(store: Arc<dyn Store>) {
    let terminal = [
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::Rejected,
    ];
    for (i, end) in terminal.into_iter().enumerate() {
        let id = task(&format!("t{i}"));
        store
            .create(&alice(), new_task(id.as_str()))
            .await
            .expect("created");
        assert_eq!(
            store.append(&alice(), &id, moved(2, end, 5)).await,
            COMMITTED
        );
        let late = [
            one(3),
            moved(3, TaskState::Failed, 9),
            moved(3, TaskState::Working, 9),
            Append {
                checkpoint: Some(Bytes::from_static(b"late")),
                ..Append::default()
            },
            Append {
                lease: LeaseChange::Take {
                    node: node("n"),
                    until: at(FAR),
                },
                ..Append::default()
            },
        ];
        for append in late {
            let refused = store.append(&alice(), &id, append).await;
            assert_eq!(refused, Err(StoreError::Ended(end)));
        }
        let stored = store.load(&alice(), &id).await.expect("stored");
        assert_eq!((stored.status, stored.last_seq), (status(end, 5), 2));
        assert_eq!(stored.checkpoint, None);
    }
    // A task may end with its first append.
    store
        .create(
            &alice(),
            super::new_task_at("short", TaskState::Rejected, 1),
        )
        .await
        .expect("ok");
    let refused = store.append(&alice(), &task("short"), one(2)).await;
    assert_eq!(refused, Err(StoreError::Ended(TaskState::Rejected)));
}

/// Of many ends that race, each at the right number, one is written.
pub async fn of_racing_terminal_states_one_wins(store: Arc<dyn Store>) {
    for round in 0..20 {
        let id = task(&format!("t{round}"));
        store
            .create(&alice(), new_task(id.as_str()))
            .await
            .expect("created");
        let ends = [TaskState::Completed, TaskState::Canceled, TaskState::Failed];
        let racers: Vec<_> = ends
            .into_iter()
            .cycle()
            .take(9)
            .map(|end| {
                let (store, id) = (Arc::clone(&store), id.clone());
                tokio::spawn(
                    async move { (end, store.append(&alice(), &id, moved(2, end, 9)).await) },
                )
            })
            .collect();
        let mut winner = None;
        let mut refusals = Vec::new();
        for racer in racers {
            match racer.await.expect("no panic") {
                (end, Ok(_)) => assert_eq!(winner.replace(end), None, "two ends were written"),
                (_, Err(refused)) => refusals.push(refused),
            }
        }
        let winner = winner.expect("one end was written");
        assert!(
            refusals.iter().all(|e| *e == StoreError::Ended(winner)),
            "{refusals:?}"
        );
        assert_eq!(
            store
                .load(&alice(), &id)
                .await
                .expect("stored")
                .status
                .state,
            winner
        );
    }
}

/// Of many appends that race for a number, one gets it, and the others learn of it.
pub async fn of_racing_appends_with_one_number_one_wins(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    // Each racer appends ten entries of its own, going on from where the log is.
    let racers: Vec<_> = (0..8)
        .map(|racer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut last = 1;
                for n in 0..10 {
                    loop {
                        let body = Bytes::from(format!("{racer}/{n}"));
                        let entries = vec![Entry {
                            seq: last + 1,
                            body,
                        }];
                        let append = Append {
                            entries,
                            ..Append::default()
                        };
                        match store.append(&alice(), &task("t"), append).await {
                            Ok(_) => break last += 1,
                            Err(StoreError::Conflict { last_seq }) => last = last_seq,
                            Err(e) => panic!("{e}"),
                        }
                    }
                }
            })
        })
        .collect();
    for racer in racers {
        racer.await.expect("no panic");
    }
    let log = store
        .entries(&alice(), &task("t"), 1, 100)
        .await
        .expect("a log");
    assert!(log.iter().map(|e| e.seq).eq(2..=81));
    for racer in 0..8 {
        let prefix = format!("{racer}/");
        let own = log.iter().filter(|e| e.body.starts_with(prefix.as_bytes()));
        let expected: Vec<_> = (0..10)
            .map(|n| Bytes::from(format!("{racer}/{n}")))
            .collect();
        assert!(
            own.map(|e| &e.body).eq(&expected),
            "an entry is lost or out of order"
        );
    }
}

/// Appends that one caller starts without waiting are done in the order in which it started them.
pub async fn appends_take_effect_in_the_order_of_the_calls(store: Arc<dyn Store>) {
    use std::task::{Context, Waker};
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let (owner, id) = (alice(), task("t"));
    let mut started = Vec::new();
    for seq in 2..200 {
        let mut append = store.append(&owner, &id, one(seq));
        // The first poll is what starts it.
        let polled = append
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if let std::task::Poll::Ready(done) = polled {
            assert_eq!(done, COMMITTED);
        } else {
            started.push(append);
        }
    }
    // Nor does the order of the answers matter.
    for append in started.into_iter().rev() {
        assert_eq!(append.await, COMMITTED);
    }
    assert_eq!(store.load(&owner, &id).await.expect("stored").last_seq, 199);
}

/// An append is all there or not at all.
pub async fn a_refused_append_leaves_nothing(store: Arc<dyn Store>) {
    let mut new = new_task("t");
    new.push_configs = vec![hook("w")];
    store.create(&alice(), new).await.expect("created");
    let before = store.load(&alice(), &task("t")).await.expect("stored");
    let all = |seq: u64, fence| Append {
        entries: entries(seq, 2),
        status: Some(status(TaskState::Completed, 50)),
        checkpoint: Some(Bytes::from_static(b"checkpoint")),
        message_seq: Some(seq),
        fence,
        lease: LeaseChange::Take {
            node: node("n"),
            until: at(FAR),
        },
        idempotency: Some(IdempotencyKey {
            key: "k".into(),
            digest: [7; 32],
            not_before: at(0),
        }),
        notices: vec![notice(seq, 0)],
    };
    let untouched = async |what: &str| {
        assert_eq!(
            store.load(&alice(), &task("t")).await,
            Ok(before.clone()),
            "{what}"
        );
        assert_eq!(
            store.entries(&alice(), &task("t"), 1, 9).await,
            Ok(vec![]),
            "{what}"
        );
        assert_eq!(
            store.idempotent(&alice(), "k", at(0)).await,
            Ok(None),
            "{what}"
        );
        let due = store.claim_deliveries(claim_all(&node("n"), 10, 20)).await;
        assert_eq!(due, Ok(vec![]), "{what}");
        let page = store
            .list(&alice(), &super::lists::all(10))
            .await
            .expect("a page");
        assert_eq!(
            (page.tasks.as_slice(), page.total),
            ([before.clone()].as_slice(), 1),
            "{what}"
        );
    };
    let refused = store.append(&alice(), &task("t"), all(3, None)).await;
    assert_eq!(refused, Err(StoreError::Conflict { last_seq: 1 }));
    untouched("a conflict").await;
    let refused = store
        .append(&alice(), &task("t"), all(2, Some(crate::Fence(1))))
        .await;
    assert_eq!(refused, Err(StoreError::StaleLease));
    untouched("a stale fence").await;
    let refused = store
        .append(&super::owner("bob"), &task("t"), all(2, None))
        .await;
    assert_eq!(refused, Err(StoreError::NotFound));
    untouched("another owner").await;
    let twice = NewTask {
        id: task("t"),
        context_id: context("c2"),
        push_configs: vec![hook("x")],
        first: all(1, None),
    };
    assert!(is_malformed(&store.create(&alice(), twice).await));
    untouched("an id that exists").await;
    let configs = store.push_configs(&alice(), &task("t")).await;
    assert_eq!(configs, Ok(vec![hook("w")]));

    // And what is not refused is all there.
    store
        .append(&alice(), &task("t"), all(2, None))
        .await
        .expect("appended");
    assert!(
        store
            .idempotent(&alice(), "k", at(0))
            .await
            .expect("an answer")
            .is_some()
    );
    let due = store
        .claim_deliveries(claim_all(&node("n"), 10, 20))
        .await
        .expect("claimed");
    assert_eq!(due.len(), 1);
}

/// A checkpoint replaces the one before, and says up to where it goes.
pub async fn a_checkpoint_stands_for_the_entries_before_it(store: Arc<dyn Store>) {
    store
        .create(&alice(), new_task("t"))
        .await
        .expect("created");
    let with = |append: Append, text: &'static [u8]| Append {
        checkpoint: Some(Bytes::from_static(text)),
        ..append
    };
    let place = async || {
        let stored = store.load(&alice(), &task("t")).await.expect("stored");
        (stored.checkpoint, stored.checkpoint_seq, stored.last_seq)
    };
    assert_eq!(place().await, (None, 0, 1));
    store
        .append(&alice(), &task("t"), with(one(2), b"two"))
        .await
        .expect("appended");
    assert_eq!(place().await, (Some(Bytes::from_static(b"two")), 2, 2));
    store
        .append(&alice(), &task("t"), one(3))
        .await
        .expect("appended");
    assert_eq!(place().await, (Some(Bytes::from_static(b"two")), 2, 3));
    // One may also come later, by itself.
    store
        .append(&alice(), &task("t"), with(Append::default(), b"three"))
        .await
        .expect("ok");
    assert_eq!(place().await, (Some(Bytes::from_static(b"three")), 3, 3));
    store
        .append(
            &alice(),
            &task("t"),
            with(moved(4, TaskState::Completed, 9), b"end"),
        )
        .await
        .expect("appended");
    assert_eq!(place().await, (Some(Bytes::from_static(b"end")), 4, 4));
}

/// An id names one task, whoever creates it, and a pruned one may come again.
pub async fn a_task_id_is_taken_once(store: Arc<dyn Store>) {
    store
        .create(&alice(), super::new_task_at("t", TaskState::Completed, 1))
        .await
        .expect("ok");
    for owner in [alice(), super::owner("bob")] {
        assert!(is_malformed(&store.create(&owner, new_task("t")).await));
    }
    let all = Retention {
        finished_before: Some(at(FAR)),
        entries_before: None,
        max_finished: None,
    };
    assert_eq!(store.prune(&all, 10).await.expect("pruned").tasks, 1);
    assert_eq!(store.create(&alice(), new_task("t")).await, COMMITTED);
    let log = store
        .entries(&alice(), &task("t"), 0, 10)
        .await
        .expect("a log");
    assert_eq!(log, entries(1, 1));
}
