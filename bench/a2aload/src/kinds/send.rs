//! `send`: messages, each answered with a completed task that echoes it. No two texts are alike, so
//! that an answer to another message is told from its own.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use super::{RunError, Session, Tally, closed_loop};
use crate::{args::SendArgs, proc::Cost, proc::Meter, report::Report, stats::rate};

/// Requests that are not counted, so that both sides have their code and memory at hand.
const WARM_UP: u64 = 20;
/// Numbers of those requests begin here, where no run gets.
const WARM_UP_IDS: u64 = 1 << 50;

pub(crate) async fn run(session: &Session, args: &SendArgs) -> Result<Report, RunError> {
    if !args.no_warm {
        let mut client = session.client();
        for n in 0..WARM_UP {
            let n = WARM_UP_IDS + n;
            session.send(&mut client, n, &own(&args.text, n)).await?;
        }
    }
    let (tally, bytes) = (Tally::default(), Cell::new(0));
    let meter = Meter::start(&session.processes)?;
    let span = closed_loop(session, args.load, async |client, n| {
        let text = own(&args.text, n);
        let began = Instant::now();
        let outcome = session.send(client, n, &text).await;
        tally.record(outcome.map(|body| bytes.set(body.len())), began.elapsed());
    })
    .await;
    let cost = meter.finish()?;
    let mut report = session.report("send");
    report.put("c", args.load.connections);
    fill(&mut report, tally, span, bytes.get(), &cost);
    Ok(report)
}

fn own(text: &str, n: u64) -> String {
    format!("{text} {n}")
}

/// What `send` and `get` both tell.
pub(super) fn fill(report: &mut Report, tally: Tally, span: Duration, bytes: usize, cost: &Cost) {
    let mut latencies = tally.latencies.into_inner();
    let ok = latencies.len() as u64;
    report
        .number("secs", span.as_secs_f64(), 2)
        .put("ok", ok)
        .number("rps", rate(ok, span), 0)
        .latencies("", &mut latencies)
        .failures(&tally.failures.into_inner())
        .number(
            "srv_cpu_us_per_req",
            cost.server_cpu * 1e6 / ok.max(1) as f64,
            1,
        )
        .put("resp_bytes", bytes)
        .cost(cost);
}
