//! `get`: reads of one finished task.

use std::{cell::Cell, time::Instant};

use super::{RunError, Session, Tally, closed_loop, echo, send};
use crate::{args::GetArgs, proc::Meter, report::Report, requests::task_id};

pub(crate) async fn run(session: &Session, args: &GetArgs) -> Result<Report, RunError> {
    let mut client = session.client();
    let task = task_id(session.send(&mut client, 0, &args.text).await?).ok_or(RunError::NoTask)?;
    let marks = [
        &format!("\"{task}\""),
        &*echo(&args.text),
        session.completed(),
    ];
    let (tally, bytes) = (Tally::default(), Cell::new(0));
    let meter = Meter::start(&session.processes)?;
    let span = closed_loop(session, args.load, async |client, n| {
        let began = Instant::now();
        let answer = client.exchange(&session.requests.get(n, &task)).await;
        let outcome = answer.and_then(|status| session.check(n, status, &client.body, &marks));
        bytes.set(client.body.len());
        tally.record(outcome, began.elapsed());
    })
    .await;
    let cost = meter.finish()?;
    let mut report = session.report("get");
    report.put("c", args.load.connections);
    send::fill(&mut report, tally, span, bytes.get(), &cost);
    Ok(report)
}
