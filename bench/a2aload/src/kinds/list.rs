//! `list`: page 1 of the list of tasks, over and over on one connection, then a walk from page to
//! page.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Client, Failure, RunError, Session, Tally, check};
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
        let (outcome, took) = page(session, &mut client, n, args.page_size, None).await;
        if first.is_none() {
            first = Some(took);
            shape = Page::read(&client.body);
        }
        tally.record(outcome, took);
    }
    let cost = meter.finish()?;

    let walk = Tally::default();
    let started = Instant::now();
    let (mut token, mut pages) = (None, 0);
    for n in 0..args.walk {
        if started.elapsed() > span {
            break;
        }
        let asked = page(session, &mut client, n, args.page_size, token.as_deref());
        let (outcome, took) = asked.await;
        let failed = outcome.is_err();
        walk.record(outcome, took);
        if failed {
            break;
        }
        pages += 1;
        token = Page::read(&client.body).next;
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
        .put("tasks_on_page", shape.tasks)
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
    size: u64,
    token: Option<&str>,
) -> (Result<(), Failure>, Duration) {
    let request = session.requests.list(n, size, token);
    let began = Instant::now();
    let answer = client.exchange(&request).await;
    let took = began.elapsed();
    (
        answer.and_then(|status| check(status, &client.body, &["\"tasks\""])),
        took,
    )
}

/// What a page says of itself.
#[derive(Debug, Default)]
struct Page {
    bytes: usize,
    tasks: usize,
    total: Option<u64>,
    next: Option<String>,
}

impl Page {
    /// Reads as much as there is.
    fn read(body: &[u8]) -> Self {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let page = answer.get("result").unwrap_or(&answer);
        let next = page.get("nextPageToken").and_then(Value::as_str);
        Self {
            bytes: body.len(),
            tasks: page
                .get("tasks")
                .and_then(Value::as_array)
                .map_or(0, Vec::len),
            total: page.get("totalSize").and_then(Value::as_u64),
            next: next
                .filter(|token| !token.is_empty())
                .map(ToOwned::to_owned),
        }
    }
}
