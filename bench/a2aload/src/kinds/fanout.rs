//! `fanout`: one task whose events go to many followers at once.
//!
//! A starter opens the task as a stream. The agent pauses, which is when the followers subscribe;
//! then it reports its chunks, and all that counts is how long it takes until the last follower
//! has the last of them.

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use futures_util::{
    future::join,
    stream::{FuturesUnordered, StreamExt},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use super::{
    RunError, Session,
    reading::{Reading, Script},
};
use crate::{
    args::FanoutArgs,
    proc::{Cost, Memory, Meter},
    report::Report,
    requests::task_id,
    sse::EventKind,
    stats::{Failures, rate},
};

/// How long the task may take to have an id.
const BORN: Duration = Duration::from_secs(10);
/// How long deliveries may take once the agent has said all.
const TAIL: Duration = Duration::from_secs(20);
/// Followers that come at once: a flood of connections is not what is measured.
const BATCH: u64 = 50;
/// The pause until the next that do.
const BATCH_GAP: Duration = Duration::from_millis(10);
/// Between the last arrival and the look at memory.
const SETTLE: Duration = Duration::from_millis(100);

/// What the followers have seen.
#[derive(Debug, Default)]
struct Seen {
    attached: Cell<u64>,
    deliveries: Cell<u64>,
    complete: Cell<u64>,
    first: Cell<Option<Instant>>,
    last: Cell<Option<Instant>>,
    failures: RefCell<Failures>,
}

impl Seen {
    fn delivery(&self) {
        let now = Instant::now();
        self.deliveries.set(self.deliveries.get() + 1);
        self.first.set(self.first.get().or(Some(now)));
        self.last.set(Some(now));
    }

    /// From a moment to the last delivery.
    fn last_after(&self, moment: Option<Instant>) -> Duration {
        let span = moment.zip(self.last.get());
        span.map_or(Duration::ZERO, |(from, last)| {
            last.saturating_duration_since(from)
        })
    }
}

/// How things stood when the followers had gathered.
#[derive(Debug)]
struct Gathered<'p> {
    attached: u64,
    after: Duration,
    resident: Memory,
    meter: Meter<'p>,
}

pub(crate) async fn run(session: &Session, args: &FanoutArgs) -> Result<Report, RunError> {
    let (tell, told) = oneshot::channel();
    let own = Cell::new(0_u64);
    let starter = start(session, args, tell, &own);
    let (_, report) = join(starter, follow(session, args, told, &own)).await;
    report
}

/// Opens the task, tells its id, and counts the chunks that its own stream carries.
async fn start(
    session: &Session,
    args: &FanoutArgs,
    tell: oneshot::Sender<String>,
    own: &Cell<u64>,
) {
    let text = format!(
        "fanout:{}:{}:{}",
        args.events, args.start_ms, args.interval_ms
    );
    let mut tell = Some(tell);
    let request = session.requests.stream(1, &text);
    let mut client = session.client();
    let stream = client.events(&request, patience(args), |data| {
        // The first event names the task in any dialect.
        if let Some((tell, task)) = tell.take().and_then(|tell| Some((tell, task_id(data)?))) {
            // Nobody listens any more where it took too long.
            let _ = tell.send(task);
        }
        own.set(own.get() + u64::from(EventKind::of(data) == EventKind::Artifact));
    });
    // What its end is, the followers say.
    let _ = stream.await;
}

async fn follow(
    session: &Session,
    args: &FanoutArgs,
    told: oneshot::Receiver<String>,
    own: &Cell<u64>,
) -> Result<Report, RunError> {
    let started = Instant::now();
    let told = timeout(BORN, told).await;
    let task = told.ok().and_then(Result::ok).ok_or(RunError::NoTask)?;
    // The agent's pause began just before its task had an id.
    let emits_at = Instant::now() + Duration::from_millis(args.start_ms);
    let (seen, script) = (Seen::default(), Script::new(args.events));
    let before = session.processes.resident()?;
    let meter = Meter::start(&session.processes)?;
    let followers: FuturesUnordered<_> = (0..args.subs)
        .map(|n| follower(session, args, n, &task, &script, &seen))
        .collect();
    let gathered = gather(session, args, started, emits_at, &seen);
    let ((), gathered) = join(followers.collect::<()>(), gathered).await;
    let gathered = gathered?;
    let run = Run {
        seen,
        before,
        emits_at,
        own: own.get(),
        delivering: gathered.meter.finish()?,
        whole: meter.finish()?,
        gathered,
    };
    Ok(run.report(session, args))
}

/// One follower, from its subscription to the end of its stream.
async fn follower(
    session: &Session,
    args: &FanoutArgs,
    n: u64,
    task: &str,
    script: &Script,
    seen: &Seen,
) {
    sleep(BATCH_GAP * u32::try_from(n / BATCH).unwrap_or(u32::MAX)).await;
    // The starter's request is number 1.
    let n = n + 2;
    let mut reading = Reading::new(script, session.requests.id_mark(n));
    let mut attached = false;
    let request = session.requests.subscribe(n, task);
    let mut client = session.client();
    let stream = client.events(&request, patience(args), |data| {
        if !attached {
            attached = true;
            seen.attached.set(seen.attached.get() + 1);
        }
        if reading.add(data) == EventKind::Artifact {
            seen.delivery();
        }
    });
    match stream.await.and_then(|()| reading.check()) {
        Ok(()) => seen.complete.set(seen.complete.get() + 1),
        Err(failure) => seen.failures.borrow_mut().record(&failure),
    }
}

/// Waits until all have come, or the agent is about to begin.
async fn gather<'p>(
    session: &'p Session,
    args: &FanoutArgs,
    started: Instant,
    emits_at: Instant,
    seen: &Seen,
) -> Result<Gathered<'p>, RunError> {
    let latest = emits_at - Duration::from_millis(300);
    while seen.attached.get() < args.subs && seen.first.get().is_none() && Instant::now() < latest {
        sleep(Duration::from_millis(5)).await;
    }
    let (attached, after) = (seen.attached.get(), started.elapsed());
    sleep(SETTLE).await;
    let resident = session.processes.resident()?;
    Ok(Gathered {
        attached,
        after,
        resident,
        meter: Meter::start(&session.processes)?,
    })
}

fn patience(args: &FanoutArgs) -> Duration {
    Duration::from_millis(args.start_ms + args.events * args.interval_ms) + TAIL
}

/// All that a report tells.
#[derive(Debug)]
struct Run<'p> {
    seen: Seen,
    gathered: Gathered<'p>,
    /// Memory before the first follower came.
    before: Memory,
    emits_at: Instant,
    /// Chunks on the starter's own stream.
    own: u64,
    /// From when the followers had gathered.
    delivering: Cost,
    /// From before they did.
    whole: Cost,
}

impl Run<'_> {
    fn report(&self, session: &Session, args: &FanoutArgs) -> Report {
        let (seen, gathered) = (&self.seen, &self.gathered);
        let deliveries = seen.deliveries.get();
        let span = seen.last_after(seen.first.get());
        let from_emit = seen.last_after(Some(self.emits_at));
        let delivering = self.delivering.server_cpu;
        let attaching = self.whole.server_cpu - delivering;
        let subs = args.subs as f64;
        let mut report = session.report("fanout");
        report
            .number("emit_to_last_s", from_emit.as_secs_f64(), 3)
            .number("delivered_per_s_from_emit", rate(deliveries, from_emit), 0)
            .put("subs", args.subs)
            .put("events", args.events)
            .put("interval_ms", args.interval_ms)
            .put("attached_before_start", gathered.attached)
            .number("attach_s", gathered.after.as_secs_f64(), 2)
            .put("delivered", deliveries)
            .put("expected", args.subs * args.events)
            .number("span_s", span.as_secs_f64(), 3)
            .number("delivered_per_s", rate(deliveries, span), 0)
            .put("subs_complete", seen.complete.get())
            .put("subs_incomplete", args.subs - seen.complete.get())
            .put("starter_events", self.own)
            .number(
                "rss_per_sub_kb",
                gathered.resident.kb_above(self.before) / subs,
                1,
            )
            .number("rss_attached_mb", gathered.resident.mb(), 1)
            .failures(&seen.failures.borrow())
            .number(
                "srv_cpu_us_per_delivery",
                delivering * 1e6 / deliveries.max(1) as f64,
                2,
            )
            .number("attach_cpu_us_per_sub", attaching * 1e6 / subs, 0)
            .cost(&self.delivering);
        report
    }
}
