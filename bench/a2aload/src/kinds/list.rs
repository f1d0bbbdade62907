//! `list`: page 1 of the list of tasks, over and over on one connection, then a walk from page to
//! page.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{Client, Failure, RunError, Session, Tally};
use crate::{args::ListArgs, proc::Meter, report::Report};

pub(crate) async fn run(session: &Session, args: &ListArgs) -> Result<Report, RunError> {
    let mut client = session.client();
    let span = Duration::from_secs(args.secs);
    let tally = Tally::default();
    let (mut first, mut shape) = (None, Page::default());
    let meter = Meter::start(&session.processes)?;
    let started = Instant::now();
    for n in 0..args.n {
        if started.elapsed() > span {
            break;
        }
        let (outcome, took) = page(session, &mut client, n, args, None).await;
        first.get_or_insert(took);
        tally.record(outcome.map(|page| shape = page), took);
    }
    let cost = meter.finish()?;

    let walk = Tally::default();
    let started = Instant::now();
    let (mut token, mut pages) = (None::<String>, 0);
    let mut seen = HashSet::new();
    for n in 0..args.walk {
        if started.elapsed() > span {
            break;
        }
        let (outcome, took) = page(session, &mut client, n, args, token.as_deref()).await;
        let outcome = outcome.and_then(|page| {
            token = page.next;
            let fresh = page.ids.into_iter().all(|id| seen.insert(id));
            fresh.then_some(()).ok_or(PageError::Again)?;
            Ok(())
        });
        let failed = outcome.is_err();
        walk.record(outcome, took);
        if failed {
            break;
        }
        pages += 1;
        if token.is_none() {
            break;
        }
    }

    let mut failures = tally.failures.into_inner();
    failures.merge(walk.failures.into_inner());
    let mut latencies = tally.latencies.into_inner();
    let done = latencies.len() as u64;
    let mut report = session.report("list");
    report
        .put("n", done)
        .number("first_ms", first.unwrap_or_default().as_secs_f64() * 1e3, 2)
        .latencies("", &mut latencies)
        .put("bytes", shape.bytes)
        .put("total_size", shape.total)
        .put("tasks_on_page", shape.ids.len())
        .put("walk_pages", pages)
        .latencies("walk_", &mut walk.latencies.into_inner())
        .failures(&failures)
        .number(
            "srv_cpu_ms_per_req",
            cost.server_cpu * 1e3 / done.max(1) as f64,
            2,
        )
        .cost(&cost);
    Ok(report)
}

async fn page(
    session: &Session,
    client: &mut Client,
    n: u64,
    args: &ListArgs,
    token: Option<&str>,
) -> (Result<Page, Failure>, Duration) {
    let request = session.requests.list(n, args.page_size, token);
    let began = Instant::now();
    let answer = client.exchange(&request).await;
    let took = began.elapsed();
    let page = answer.and_then(|status| {
        session.check(n, status, &client.body, &["\"tasks\""])?;
        let page = Page::read(&client.body);
        page.check(args)?;
        Ok(page)
    });
    (page, took)
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    #[error("the page has {0} tasks and is not the last")]
    NotFull(usize),
    #[error("the list has {0:?} tasks by its own account")]
    Total(Option<u64>),
    #[error("a task came twice on the walk")]
    Again,
}

/// What a page says of itself.
#[derive(Debug, Default)]
struct Page {
    bytes: usize,
    ids: Vec<String>,
    total: Option<u64>,
    next: Option<String>,
}

impl Page {
    /// Reads as much as there is.
    fn read(body: &[u8]) -> Self {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let page = answer.get("result").unwrap_or(&answer);
        let tasks = page.get("tasks").and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let id = |task: &Value| task.get("id").and_then(text);
        Self {
            bytes: body.len(),
            ids: tasks.into_iter().flatten().filter_map(id).collect(),
            total: page.get("totalSize").and_then(Value::as_u64),
            next: page
                .get("nextPageToken")
                .and_then(text)
                .filter(|token| !token.is_empty()),
        }
    }

    fn check(&self, args: &ListArgs) -> Result<(), PageError> {
        let tasks = self.ids.len();
        let full = tasks as u64 == args.page_size;
        if !full && self.next.is_some() {
            return Err(PageError::NotFull(tasks));
        }
        if args.total.is_some() && self.total != args.total {
            return Err(PageError::Total(self.total));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn args(total: &str) -> ListArgs {
        let line = format!("a2aload list --url http://127.0.0.1:9 --page-size 2 {total}");
        match Cli::parse_from(line.split_whitespace()).command {
            Command::List(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_page_is_full_or_the_last() {
        let short = br#"{"result":{"tasks":[{"id":"a"}],"nextPageToken":"x","totalSize":3}}"#;
        let last = br#"{"result":{"tasks":[{"id":"a"}],"nextPageToken":"","totalSize":3}}"#;
        let full = br#"{"tasks":[{"id":"a"},{"id":"b"}],"nextPageToken":"x","totalSize":3}"#;
        for (body, total, wrong) in [
            (&short[..], "", Some(PageError::NotFull(1))),
            (last, "", None),
            (full, "--total 3", None),
            (full, "--total 4", Some(PageError::Total(Some(3)))),
            (b"no page", "--total 4", Some(PageError::Total(None))),
        ] {
            assert_eq!(Page::read(body).check(&args(total)).err(), wrong);
        }
    }
}
