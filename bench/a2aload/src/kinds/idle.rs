//! `idle`: connections that have been used once and are held open, and the memory that the server
//! has for them.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{RunError, Session};
use crate::{args::IdleArgs, proc::Meter, report::Report, requests::task_id, stats::Failures};

/// Between the last request and the look at memory.
const SETTLE: Duration = Duration::from_millis(300);
const TEXT: &str = "hello";

pub(crate) async fn run(session: &Session, args: &IdleArgs) -> Result<Report, RunError> {
    let mut starter = session.client();
    let task = task_id(session.send(&mut starter, 0, TEXT).await?).ok_or(RunError::NoTask)?;
    // All read the same task, so that the server keeps nothing but the connections.
    let marks = [&format!("\"{task}\""), session.completed()];
    let meter = Meter::start(&session.processes)?;
    let began = Instant::now();
    let (mut held, mut failures) = (Vec::new(), Failures::default());
    for n in 1..=args.connections {
        let mut client = session.client();
        let answer = client.exchange(&session.requests.get(n, &task)).await;
        let checked = answer.and_then(|status| session.check(n, status, &client.body, &marks));
        if let Err(failure) = checked {
            failures.record(&failure);
        }
        held.push(client);
    }
    let took = began.elapsed();
    sleep(SETTLE).await;
    let cost = meter.finish()?;
    let open = held.iter().filter(|client| client.is_open()).count();
    let grown = cost.resident_after.kb_above(cost.resident_before);
    let mut report = session.report("idle");
    report
        .put("connections", args.connections)
        .put("open", open)
        .number("secs", took.as_secs_f64(), 2)
        .number("kb_per_connection", grown / open.max(1) as f64, 2)
        .failures(&failures)
        .number(
            "srv_cpu_us_per_connection",
            cost.server_cpu * 1e6 / open.max(1) as f64,
            1,
        )
        .cost(&cost);
    Ok(report)
}
