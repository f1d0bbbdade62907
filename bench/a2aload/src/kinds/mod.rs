//! The kinds of load, one a module, and what they share: the session, a client that reconnects,
//! and the closed loop.

pub(crate) mod fanout;
pub(crate) mod get;
pub(crate) mod idle;
pub(crate) mod list;
mod reading;
pub(crate) mod send;
pub(crate) mod stream;

use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    time::{Duration, Instant, SystemTime, SystemTimeError, UNIX_EPOCH},
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use list::PageError;
use memchr::memmem;
use reading::Wrong;
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    args::{LoopArgs, TargetArgs},
    http::{Connection, Head, HttpError},
    proc::{ProcError, Processes},
    report::Report,
    requests::{Dialect, Requests},
    sse::EventReader,
    stats::{Failures, Latencies},
};

/// Longest that one exchange may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// Characters of an answer that an error quotes.
const QUOTED: usize = 200;

/// Why a run has no result. What goes wrong with single requests is counted instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("no runtime: {0}")]
    Runtime(io::Error),
    #[error("the clock is before 1970")]
    Clock(#[from] SystemTimeError),
    #[error(transparent)]
    Proc(#[from] ProcError),
    #[error("the first request failed: {0}")]
    First(#[from] Failure),
    #[error("the server named no task")]
    NoTask,
}

/// Why one exchange counts as an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("no whole answer in {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("http {status}: {body}")]
    Answer { status: u16, body: String },
    #[error("http {status} and no stream: {body}")]
    NoStream { status: u16, body: String },
    #[error(transparent)]
    Page(#[from] PageError),
    #[error("the stream is not as asked for: {what} ({letters}) {said}")]
    Stream {
        what: Wrong,
        letters: String,
        said: String,
    },
}

/// One server, and what is said to it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) requests: Requests,
    pub(crate) processes: Processes,
    address: SocketAddr,
    label: String,
}

impl Session {
    pub(crate) fn new(target: &TargetArgs) -> Result<Self, RunError> {
        let address = target.url.address;
        let processes = match &target.pid[..] {
            [] => Processes::listening_on(address.port())?,
            pids => Processes::new(pids.to_vec()),
        };
        let run = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
        let requests = Requests::new(target, run);
        Ok(Self {
            requests,
            processes,
            address,
            label: target.label.clone(),
        })
    }

    pub(crate) fn report(&self, kind: &str) -> Report {
        Report::new(&self.label, kind)
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            address: self.address,
            connection: None,
            body: Vec::with_capacity(4096),
        }
    }

    /// The state of a completed task.
    fn completed(&self) -> &'static str {
        match self.requests.dialect {
            Dialect::JsonRpc03 => "\"completed\"",
            Dialect::JsonRpc10 | Dialect::Rest10 => "TASK_STATE_COMPLETED",
        }
    }

    /// Sends a message and returns the answer, checked: a completed task with the text echoed.
    pub(crate) async fn send<'c>(
        &self,
        client: &'c mut Client,
        n: u64,
        text: &str,
    ) -> Result<&'c [u8], Failure> {
        let status = client.exchange(&self.requests.send(n, text)).await?;
        self.check(n, status, &client.body, &[&echo(text), self.completed()])?;
        Ok(&client.body)
    }

    /// Whether an answer is the result of request `n` with all these marks in it. The text is
    /// searched and not parsed, for the reason given at
    /// [`EventKind::of`](crate::sse::EventKind::of).
    fn check(&self, n: u64, status: u16, body: &[u8], marks: &[&str]) -> Result<(), Failure> {
        let has = |mark: &str| memmem::find(body, mark.as_bytes()).is_some();
        let fine = status == 200
            && self.requests.id_mark(n).is_in(body)
            && marks.iter().all(|mark| has(mark))
            && !has("\"error\"");
        if fine {
            return Ok(());
        }
        Err(Failure::Answer {
            status,
            body: quote(body),
        })
    }
}

/// What the agent makes of a text, as JSON.
fn echo(text: &str) -> String {
    Value::from(format!("echo: {text}")).to_string()
}

fn quote(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(QUOTED).collect()
}

/// One connection, made anew where the last exchange left none that can be used.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
    /// The last answer of [`exchange`](Self::exchange).
    body: Vec<u8>,
}

impl Client {
    /// Whether the connection was left open by the last exchange.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// A request and its whole answer; returns the status.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<u16, Failure> {
        let exchange = async {
            let (mut connection, mut head) = self.ask(request).await?;
            connection.body(&mut head, &mut self.body).await?;
            self.keep(connection, &head);
            Ok(head.status)
        };
        timeout(PATIENCE, exchange)
            .await
            .unwrap_or(Err(Failure::Timeout(PATIENCE)))
    }

    /// A request whose answer is a stream, each of whose events is given to `on_event`.
    pub(crate) async fn events(
        &mut self,
        request: &[u8],
        patience: Duration,
        mut on_event: impl FnMut(&[u8]),
    ) -> Result<(), Failure> {
        let exchange = async {
            let (mut connection, mut head) = self.ask(request).await?;
            if !head.is_sse || head.status != 200 {
                connection.body(&mut head, &mut self.body).await?;
                self.keep(connection, &head);
                let body = quote(&self.body);
                return Err(Failure::NoStream {
                    status: head.status,
                    body,
                });
            }
            let mut reader = EventReader::default();
            loop {
                self.body.clear();
                let more = connection.piece(&mut head, &mut self.body).await?;
                reader.feed(&self.body, &mut on_event);
                if !more {
                    self.keep(connection, &head);
                    return Ok(());
                }
            }
        };
        timeout(patience, exchange)
            .await
            .unwrap_or(Err(Failure::Timeout(patience)))
    }

    // The connection is taken, so that one which failed or was given up half-way is dropped.
    async fn ask(&mut self, request: &[u8]) -> Result<(Connection, Head), HttpError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let head = connection.ask(request).await?;
        Ok((connection, head))
    }

    fn keep(&mut self, connection: Connection, head: &Head) {
        self.connection = head.keeps_alive().then_some(connection);
    }
}

/// What a closed loop gathers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) latencies: RefCell<Latencies>,
    pub(crate) failures: RefCell<Failures>,
}

impl Tally {
    pub(crate) fn record(&self, outcome: Result<(), Failure>, took: Duration) {
        match outcome {
            Ok(()) => self.latencies.borrow_mut().record(took),
            Err(failure) => self.failures.borrow_mut().record(&failure),
        }
    }
}

/// Lets every connection do one piece of work after another until time or count is used up, and
/// returns how long that took. The work gets a number, from 1.
pub(crate) async fn closed_loop(
    session: &Session,
    load: LoopArgs,
    work: impl AsyncFn(&mut Client, u64),
) -> Duration {
    let started = Instant::now();
    let (work, next) = (&work, &Cell::new(1));
    let connections: FuturesUnordered<_> = (0..load.connections)
        .map(|_| async move {
            let mut client = session.client();
            while started.elapsed() < load.span() {
                let n = next.get();
                if load.n.is_some_and(|most| n > most) {
                    break;
                }
                next.set(n + 1);
                work(&mut client, n).await;
            }
        })
        .collect();
    connections.collect::<()>().await;
    started.elapsed()
}
