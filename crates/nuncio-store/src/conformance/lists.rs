//! Lists: order, filters, totals, pages.

use std::{collections::BTreeMap, sync::Arc};

use nuncio_core::{Owner, TaskId, TaskState};

use super::{alice, at, context, moved, new_task_at, owner, task};
use crate::{ListCursor, ListQuery, NewTask, Store};

/// A query without filters.
pub(crate) fn all(limit: u32) -> ListQuery {
    ListQuery {
        limit,
        ..ListQuery::default()
    }
}

/// The ids of all pages of a query.
pub(crate) async fn walk(store: &dyn Store, owner: &Owner, query: &ListQuery) -> Vec<TaskId> {
    let mut query = query.clone();
    let mut ids = Vec::new();
    loop {
        let page = store.list(owner, &query).await.expect("a page");
        assert!(page.tasks.len() <= query.limit as usize);
        let last = page.tasks.last().map(|t| (t.status.since, t.id.clone()));
        ids.extend(page.tasks.into_iter().map(|t| t.id));
        match page.next {
            None => return ids,
            Some(next) => {
                assert_eq!(last, Some((next.since, next.id.clone())));
                let place = |c: &ListCursor| (c.since, c.id.clone());
                let on = query
                    .after
                    .as_ref()
                    .is_none_or(|after| place(&next) < place(after));
                assert!(on, "a list that does not end");
                query.after = Some(next);
            }
        }
    }
}

async fn create(store: &dyn Store, id: &str, ctx: &str, state: TaskState, since: i64) {
    let new = NewTask {
        context_id: context(ctx),
        ..new_task_at(id, state, since)
    };
    store.create(&alice(), new).await.expect("created");
}

fn ids(names: &[&str]) -> Vec<TaskId> {
    names.iter().map(|name| task(name)).collect()
}

/// Order is by status time, and where that is equal by id; a new status moves a task up.
pub async fn newest_status_comes_first_and_ties_go_by_id(store: Arc<dyn Store>) {
    for (id, state, since) in [
        ("b", TaskState::Working, 5),
        ("d", TaskState::Completed, 5),
        ("a", TaskState::Submitted, 5),
        ("c", TaskState::Working, 5),
        ("old", TaskState::Failed, -3),
        ("new", TaskState::InputRequired, 6),
    ] {
        create(&*store, id, "c", state, since).await;
    }
    let order = ids(&["new", "d", "c", "b", "a", "old"]);
    for limit in 1..8 {
        assert_eq!(walk(&*store, &alice(), &all(limit)).await, order);
    }
    store
        .append(&alice(), &task("a"), moved(2, TaskState::Working, 7))
        .await
        .expect("ok");
    let order = ids(&["a", "new", "d", "c", "b", "old"]);
    assert_eq!(walk(&*store, &alice(), &all(2)).await, order);
}

/// Each combination of filters lets through what it says, and the total counts just that.
pub async fn filters_hold_and_totals_count_what_they_let_through(store: Arc<dyn Store>) {
    let states: Vec<_> = TaskState::ALL
        .into_iter()
        .filter(|s| *s != TaskState::Unspecified)
        .collect();
    let mut made = Vec::new();
    for (i, state) in states.iter().cycle().take(60).enumerate() {
        let n = i64::try_from(i).expect("few");
        let (id, ctx, since) = (format!("t{i:02}"), format!("c{}", i % 3), n % 7);
        create(&*store, &id, &ctx, *state, since).await;
        made.push((since, id, ctx, *state));
    }
    // Some move on, so that counts that only ever grow are found out.
    for row in made
        .iter_mut()
        .filter(|row| !row.3.is_terminal() && row.0 % 2 == 0)
    {
        row.0 += 3;
        row.3 = if row.0 % 3 == 0 {
            TaskState::Completed
        } else {
            TaskState::Working
        };
        store
            .append(&alice(), &task(&row.1), moved(2, row.3, row.0))
            .await
            .expect("moved");
    }
    made.sort_by(|a, b| (b.0, &b.1).cmp(&(a.0, &a.1)));
    let contexts = [None, Some("c0"), Some("c2"), Some("none")];
    let after = [None, Some(-1), Some(0), Some(4), Some(9), Some(99)];
    for ctx in contexts {
        for state in TaskState::ALL.into_iter().map(Some).chain([None]) {
            for after in after {
                let expected: Vec<_> = made
                    .iter()
                    .filter(|(since, _, c, s)| {
                        ctx.is_none_or(|ctx| ctx == c)
                            && state.is_none_or(|state| state == *s)
                            && after.is_none_or(|after| after <= *since)
                    })
                    .map(|(_, id, ..)| task(id))
                    .collect();
                let query = ListQuery {
                    context_id: ctx.map(context),
                    state,
                    status_after: after.map(at),
                    ..all(4)
                };
                assert_eq!(walk(&*store, &alice(), &query).await, expected, "{query:?}");
                let page = store.list(&alice(), &query).await.expect("a page");
                assert_eq!(page.total, expected.len() as u64, "{query:?}");
                // The total does not hang on the page.
                if let Some(next) = page.next {
                    let query = ListQuery {
                        after: Some(next),
                        ..query
                    };
                    let page = store.list(&alice(), &query).await.expect("a page");
                    assert_eq!(page.total, expected.len() as u64, "{query:?}");
                }
            }
        }
    }
}

/// Pages of any size join to the whole list.
pub async fn pages_join_without_gap_or_repeat(store: Arc<dyn Store>) {
    for i in 0..100 {
        create(
            &*store,
            &format!("t{i:03}"),
            "c",
            TaskState::Completed,
            i / 10,
        )
        .await;
    }
    let whole: Vec<_> = (0..100).rev().map(|i| task(&format!("t{i:03}"))).collect();
    for limit in [1, 3, 10, 99, 100, 101, u32::MAX] {
        assert_eq!(walk(&*store, &alice(), &all(limit)).await, whole);
    }
    let full = store.list(&alice(), &all(100)).await.expect("a page");
    assert_eq!(
        full.next, None,
        "a page that ends the list names no next one"
    );
    let none = store.list(&alice(), &all(0)).await.expect("a page");
    assert_eq!((none.tasks, none.next, none.total), (vec![], None, 100));
}

/// Any cursor is a place: behind the last, between two, or of a task that is gone.
pub async fn a_page_behind_the_end_is_empty(store: Arc<dyn Store>) {
    for (id, since) in [("a", 1), ("c", 3)] {
        create(&*store, id, "c", TaskState::Working, since).await;
    }
    let behind = async |since: i64, id: &str| {
        let after = Some(ListCursor {
            since: at(since),
            id: task(id),
        });
        let query = ListQuery { after, ..all(10) };
        let page = store.list(&alice(), &query).await.expect("a page");
        assert_eq!((page.next, page.total), (None, 2));
        page.tasks.into_iter().map(|t| t.id).collect::<Vec<_>>()
    };
    assert_eq!(behind(-9, "z").await, vec![]);
    assert_eq!(behind(1, "a").await, vec![]);
    assert_eq!(behind(1, "b").await, ids(&["a"]));
    assert_eq!(behind(2, "gone").await, ids(&["a"]));
    assert_eq!(behind(9, "z").await, ids(&["c", "a"]));
    let nobody = store
        .list(&owner("nobody"), &all(10))
        .await
        .expect("a page");
    assert_eq!((nobody.tasks, nobody.next, nobody.total), (vec![], None, 0));
}

/// While tasks are created and moved, a walk sees each that does not move exactly once.
pub async fn what_does_not_move_is_listed_once_while_others_write(store: Arc<dyn Store>) {
    for i in 0..120 {
        create(
            &*store,
            &format!("still{i:03}"),
            "c",
            TaskState::Working,
            100 + i % 5,
        )
        .await;
        create(
            &*store,
            &format!("mover{i:03}"),
            "c",
            TaskState::Working,
            100 + i % 5,
        )
        .await;
    }
    let writer = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for i in 0..120 {
                let id = task(&format!("mover{i:03}"));
                let state = if i % 2 == 0 {
                    TaskState::Working
                } else {
                    TaskState::Completed
                };
                store
                    .append(&alice(), &id, moved(2, state, 200 + i))
                    .await
                    .expect("moved");
                create(
                    &*store,
                    &format!("new{i:03}"),
                    "c",
                    TaskState::Completed,
                    300,
                )
                .await;
            }
        })
    };
    let mut walks = 0;
    while !writer.is_finished() || walks < 3 {
        let mut seen: BTreeMap<TaskId, usize> = BTreeMap::new();
        for id in walk(&*store, &alice(), &all(7)).await {
            *seen.entry(id).or_default() += 1;
        }
        for i in 0..120 {
            let still = task(&format!("still{i:03}"));
            assert_eq!(
                seen.get(&still),
                Some(&1),
                "{still} was skipped or repeated"
            );
        }
        walks += 1;
    }
    writer.await.expect("no panic");
    let page = store.list(&alice(), &all(1)).await.expect("a page");
    assert_eq!(page.total, 360);
}
