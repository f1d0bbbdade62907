//! `stream`: messages whose answer is a stream of some chunks and an end.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::HashMap,
    time::Instant,
};

use super::{Failure, PATIENCE, RunError, Session, Tally, closed_loop};
use crate::{
    args::StreamArgs,
    proc::Meter,
    report::Report,
    sse::EventKind,
    stats::{Latencies, rate},
};

/// Shapes of streams that are shown.
const SHAPES: usize = 3;

pub(crate) async fn run(session: &Session, args: &StreamArgs) -> Result<Report, RunError> {
    let text = format!("stream:{}", args.chunks);
    let (tally, first) = (Tally::default(), RefCell::new(Latencies::default()));
    let (events, shapes) = (
        Cell::new(0_u64),
        RefCell::new(HashMap::<String, u64>::new()),
    );
    let meter = Meter::start(&session.processes)?;
    let span = closed_loop(session, args.load, async |client, n| {
        let began = Instant::now();
        let mut shape = Shape::default();
        let request = session.requests.stream(n, &text);
        let outcome = client.events(&request, PATIENCE, |data| {
            if shape.letters.is_empty() {
                first.borrow_mut().record(began.elapsed());
            }
            events.set(events.get() + 1);
            shape.add(EventKind::of(data));
        });
        let outcome = outcome.await.and_then(|()| shape.check(args.chunks));
        tally.record(outcome, began.elapsed());
        *shapes.borrow_mut().entry(shape.letters).or_default() += 1;
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

/// The events of a stream, a letter each.
#[derive(Debug, Default)]
struct Shape {
    letters: String,
    chunks: u64,
    ended: bool,
}

impl Shape {
    fn add(&mut self, event: EventKind) {
        self.letters.push(event.letter());
        self.chunks += u64::from(event == EventKind::Artifact);
        self.ended = event.is_end();
    }

    /// Every chunk there, and nothing after the end. A stream that is no more than the finished
    /// task says all there is too.
    fn check(&self, chunks: u64) -> Result<(), Failure> {
        if self.ended && (self.chunks == chunks || self.letters.ends_with('T')) {
            return Ok(());
        }
        Err(Failure::Shape(self.letters.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_all_its_chunks_and_an_end() {
        use EventKind::{Artifact, Status, Task};
        let (end, task) = (Status { ended: true }, Task { ended: true });
        for (events, fine) in [
            (&[Artifact, Artifact, end][..], true),
            (&[Artifact, end], false),
            (&[Artifact, Artifact], false),
            (&[Artifact, end, Artifact], false),
            (&[task], true),
            (&[], false),
        ] {
            let mut shape = Shape::default();
            events.iter().for_each(|event| shape.add(*event));
            assert_eq!(shape.check(2).is_ok(), fine, "{}", shape.letters);
        }
    }
}
