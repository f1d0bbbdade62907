//! That lists and claims walk indexes and nothing else, so that no page and no claim costs more
//! than another.

use nuncio_core::TaskState;
use rusqlite::params_from_iter;

use super::make;
use crate::{
    ListCursor, ListQuery,
    conformance::{at, context, task},
    sqlite::{outbox, query},
};

/// Every combination of filters.
fn queries() -> Vec<ListQuery> {
    let mut queries = Vec::new();
    for context_id in [None, Some(context("c"))] {
        for state in [None, Some(TaskState::Working)] {
            for status_after in [None, Some(at(5))] {
                for after in [
                    None,
                    Some(ListCursor {
                        since: at(7),
                        id: task("t"),
                    }),
                ] {
                    queries.push(ListQuery {
                        context_id: context_id.clone(),
                        state,
                        status_after,
                        after,
                        limit: 50,
                    });
                }
            }
        }
    }
    queries
}

#[tokio::test]
async fn every_list_walks_an_index_and_sorts_nothing() {
    let (store, _dir) = make().await;
    for query in queries() {
        let shown = format!("{query:?}");
        let plans = store.readers.run(move |conn| {
            let mut plans = Vec::new();
            for (sql, binds) in [query::page_sql(1, &query), query::total_sql(1, &query)] {
                let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
                let steps = explain
                    .query_map(params_from_iter(binds), |row| row.get::<_, String>(3))?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                plans.push(steps);
            }
            Ok(plans)
        });
        let plans = plans.await.expect("plans");
        let [page, total] = &plans[..] else {
            panic!("{plans:?}")
        };
        for step in page.iter().chain(total) {
            assert!(!step.contains("TEMP B-TREE"), "{shown} sorts: {step}");
            assert!(!step.starts_with("SCAN"), "{shown} scans: {step}");
        }
        // Each walk begins and ends where the filters say.
        let walks = page.iter().filter(|step| step.contains("tasks"));
        for walk in walks {
            assert!(walk.contains("USING COVERING INDEX"), "{shown}: {walk}");
            assert!(walk.contains("since>"), "{shown}: {walk}");
            assert!(walk.contains("(since,id)<"), "{shown}: {walk}");
        }
    }
}

#[tokio::test]
async fn a_claim_walks_its_index_and_sorts_nothing() {
    let (store, _dir) = make().await;
    let plans = store.readers.run(move |conn| {
        let mut plans = Vec::new();
        for sql in [outbox::NEXT_DESTINATION, &outbox::due_sql()] {
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let mut rows = explain.raw_query();
            while let Some(row) = rows.next()? {
                plans.push(row.get::<_, String>(3)?);
            }
        }
        Ok(plans)
    });
    let steps = plans.await.expect("plans");
    for step in &steps {
        assert!(!step.contains("TEMP B-TREE"), "{steps:?}");
        assert!(!step.starts_with("SCAN"), "{steps:?}");
    }
    let walks = steps
        .iter()
        .filter(|step| step.contains("deliveries_ready"));
    assert_eq!(walks.count(), 2, "{steps:?}");
}
