//! Owner scope: what is another's is absent.

use std::sync::Arc;

use bytes::Bytes;
use nuncio_core::{Owner, Principal, TaskState};

use super::{
    FAR, alice, at, claim_all, context, hook, lists::all, moved, new_task, notice, one, owner, task,
};
use crate::{
    Append, Appended, Entry, IdempotencyKey, LeaseChange, ListQuery, NewTask, NodeId, Store,
    StoreError,
};

/// Every method answers for a foreign task exactly as for one that never was.
pub async fn another_owners_task_is_as_absent_as_none(store: Arc<dyn Store>) {
    let mut mine = new_task("t");
    mine.first.message_seq = Some(1);
    mine.first.idempotency = Some(IdempotencyKey {
        key: "k".into(),
        digest: [1; 32],
        not_before: at(0),
    });
    store.create(&alice(), mine).await.expect("created");
    let known = owner("bob");
    store
        .create(&known, new_task("bobs"))
        .await
        .expect("created");
    for stranger in [known, owner("carol")] {
        for id in [task("t"), task("none")] {
            assert_eq!(store.load(&stranger, &id).await, Err(StoreError::NotFound));
            assert_eq!(
                store.entries(&stranger, &id, 0, 9).await,
                Err(StoreError::NotFound)
            );
            let attempts = [
                one(2),
                moved(2, TaskState::Canceled, 9),
                one(9),
                Append::default(),
                Append {
                    lease: LeaseChange::Release,
                    ..Append::default()
                },
            ];
            for append in attempts {
                let refused = store.append(&stranger, &id, append).await;
                assert_eq!(refused, Err(StoreError::NotFound));
            }
        }
        assert_eq!(store.idempotent(&stranger, "k", at(0)).await, Ok(None));
        let query = ListQuery {
            context_id: Some(context("c")),
            ..all(10)
        };
        for query in [query, all(10)] {
            let page = store.list(&stranger, &query).await.expect("a page");
            assert!(page.tasks.iter().all(|t| t.id != task("t")));
            assert_eq!(page.total, page.tasks.len() as u64);
        }
        // A key of another's is free.
        let mut theirs = new_task(&format!("of {stranger:?}"));
        theirs.first.message_seq = Some(1);
        theirs.first.idempotency = Some(IdempotencyKey {
            key: "k".into(),
            digest: [2; 32],
            not_before: at(0),
        });
        assert_eq!(store.create(&stranger, theirs).await, super::COMMITTED);
    }
    let stored = store.load(&alice(), &task("t")).await.expect("stored");
    assert_eq!(
        (stored.last_seq, stored.status.state),
        (1, TaskState::Working)
    );
}

/// Principals whose names run into each other own different things, and so do tenants.
pub async fn owners_that_look_alike_are_apart(store: Arc<dyn Store>) {
    let owners = [
        Principal::new("a", "bc").owner(),
        Principal::new("ab", "c").owner(),
        Principal::new("a", "bc").in_tenant("t").owner(),
        Principal::new("a", "bc/t").owner(),
        Principal::new("A", "BC").owner(),
        Principal::new("a", "b%").owner(),
        Principal::new("a", "b_").owner(),
        Principal::new("a", &"x".repeat(5000)).owner(),
        Principal::anonymous().owner(),
        Owner::from_stored(""),
        Owner::from_stored("' OR 1=1 --"),
    ];
    for (i, owner) in owners.iter().enumerate() {
        store
            .create(owner, new_task(&format!("t{i}")))
            .await
            .expect("created");
    }
    for (i, owner) in owners.iter().enumerate() {
        let page = store.list(owner, &all(50)).await.expect("a page");
        let ids: Vec<_> = page.tasks.into_iter().map(|t| t.id).collect();
        assert_eq!((ids, page.total), (vec![task(&format!("t{i}"))], 1));
    }
}

/// Ids, contexts, keys and configs are opaque, whatever a query language makes of their letters.
pub async fn ids_may_hold_anything(store: Arc<dyn Store>) {
    let names = [
        "_",
        "%",
        "a_b",
        "aXb",
        "a%",
        "'",
        "\"",
        "';DROP TABLE tasks;--",
        "\\",
        "?1",
        ":id",
        "a b",
        "A",
        "a",
        "ä",
        "a\u{308}",
        "日本語",
        "🦀",
        "null",
        "0",
        "00",
        "0x10",
        "1e3",
        "-",
        "*",
        "[a]",
        &"é".repeat(128),
    ];
    for (i, name) in names.iter().enumerate() {
        let body = Bytes::from(format!("entry {i}"));
        let new = NewTask {
            id: task(name),
            context_id: context(name),
            push_configs: vec![hook(name)],
            first: Append {
                entries: vec![Entry {
                    seq: 1,
                    body: body.clone(),
                }],
                message_seq: Some(1),
                idempotency: Some(IdempotencyKey {
                    key: (*name).to_owned(),
                    digest: [u8::try_from(i).expect("few names"); 32],
                    not_before: at(0),
                }),
                notices: vec![notice(1, 0)],
                ..moved(1, TaskState::Working, 1)
            },
        };
        assert_eq!(
            store.create(&alice(), new).await,
            Ok(Appended::Committed {
                fence: None,
                deliveries: 1
            }),
            "{name:?}"
        );
    }
    for (i, name) in names.iter().enumerate() {
        let stored = store.load(&alice(), &task(name)).await.expect("stored");
        assert_eq!((stored.id, stored.context_id), (task(name), context(name)));
        let log = store
            .entries(&alice(), &task(name), 0, 9)
            .await
            .expect("a log");
        assert_eq!(log[0].body, format!("entry {i}"), "{name:?}");
        let query = ListQuery {
            context_id: Some(context(name)),
            ..all(50)
        };
        let page = store.list(&alice(), &query).await.expect("a page");
        let ids: Vec<_> = page.tasks.into_iter().map(|t| t.id).collect();
        assert_eq!((ids, page.total), (vec![task(name)], 1), "{name:?}");
        let record = store
            .idempotent(&alice(), name, at(0))
            .await
            .expect("an answer");
        assert_eq!(record.expect("a record").task, task(name));
    }
    // The order of a list is the order of the ids' bytes, and a cursor may be any of them.
    let mut ids: Vec<_> = names.iter().map(|name| task(name)).collect();
    ids.sort();
    ids.reverse();
    assert_eq!(super::lists::walk(&*store, &alice(), &all(1)).await, ids);
    let courier = NodeId("' _%".into());
    let due = store
        .claim_deliveries(claim_all(&courier, 1, FAR))
        .await
        .expect("claimed");
    assert_eq!(due.len(), names.len());
    for delivery in due {
        assert_eq!(delivery.task.as_str(), delivery.config);
        assert_eq!(delivery.owner, alice());
        store
            .settle_delivery(&courier, delivery.id, crate::Settlement::Delivered)
            .await
            .expect("settled");
    }
    let due = store
        .claim_deliveries(claim_all(&courier, FAR, FAR))
        .await
        .expect("claimed");
    assert_eq!(due, vec![]);
}
