//! `stream`: messages whose answer is a stream of some chunks and an end.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::HashMap,
    time::Instant,
};

use super::{
    PATIENCE, RunError, Session, Tally, closed_loop,
    reading::{Reading, Script},
};
use crate::{
    args::StreamArgs,
    proc::Meter,
    report::Report,
    stats::{Latencies, rate},
};

/// Shapes of streams that are shown.
const SHAPES: usize = 3;

pub(crate) async fn run(session: &Session, args: &StreamArgs) -> Result<Report, RunError> {
    let text = format!("stream:{}", args.chunks);
    let script = Script::new(args.chunks);
    let (tally, first) = (Tally::default(), RefCell::new(Latencies::default()));
    let (events, shapes) = (
        Cell::new(0_u64),
        RefCell::new(HashMap::<String, u64>::new()),
    );
    let meter = Meter::start(&session.processes)?;
    let span = closed_loop(session, args.load, async |client, n| {
        let began = Instant::now();
        let mut reading = Reading::new(&script, session.requests.id_mark(n));
        let mut seen = 0;
        let request = session.requests.stream(n, &text);
        let outcome = client.events(&request, PATIENCE, |data| {
            if seen == 0 {
                first.borrow_mut().record(began.elapsed());
            }
            seen += 1;
            reading.add(data);
        });
        let outcome = outcome.await.and_then(|()| reading.check());
        tally.record(outcome, began.elapsed());
        events.set(events.get() + seen);
        *shapes.borrow_mut().entry(reading.letters).or_default() += 1;
    })
    .await;
    let cost = meter.finish()?;

    let mut latencies = tally.latencies.into_inner();
    let (streams, events) = (latencies.len() as u64, events.get());
    let mut shapes: Vec<_> = shapes.into_inner().into_iter().collect();
    shapes.sort_by_key(|(_, count)| Reverse(*count));
    let shapes: Vec<_> = shapes
        .iter()
        .take(SHAPES)
        .map(|(shape, count)| format!("{shape}x{count}"))
        .collect();
    let mut report = session.report("stream");
    report
        .put("c", args.load.connections)
        .number("secs", span.as_secs_f64(), 2)
        .put("ok", streams)
        .number("streams_per_s", rate(streams, span), 0)
        .number("events_per_s", rate(events, span), 0)
        .number(
            "events_per_stream",
            events as f64 / streams.max(1) as f64,
            1,
        )
        .latencies("", &mut latencies)
        .latencies("first_", &mut first.into_inner())
        .put("shapes", shapes.join(" "))
        .failures(&tally.failures.into_inner())
        .number(
            "srv_cpu_us_per_stream",
            cost.server_cpu * 1e6 / streams.max(1) as f64,
            1,
        )
        .number(
            "srv_cpu_us_per_event",
            cost.server_cpu * 1e6 / events.max(1) as f64,
            2,
        )
        .cost(&cost);
    Ok(report)
}
