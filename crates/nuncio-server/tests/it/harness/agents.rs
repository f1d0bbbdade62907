//! Agents that do what a test says, when it says so.

use nuncio_server::{Agent, Turn, TurnResult, async_trait};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Semaphore;

type Run = dyn Fn(Turn) -> Pin<Box<dyn Future<Output = TurnResult> + Send>> + Send + Sync;

/// An agent made of a closure.
#[derive(Clone)]
pub(crate) struct Script {
    run: Arc<Run>,
    resumes: bool,
    runs: Arc<AtomicUsize>,
}

/// An agent that runs `run` for each turn.
pub(crate) fn script<F>(run: impl Fn(Turn) -> F + Send + Sync + 'static) -> Script
where
    F: Future<Output = TurnResult> + Send + 'static,
{
    let run = Arc::new(
        move |turn| -> Pin<Box<dyn Future<Output = TurnResult> + Send>> { Box::pin(run(turn)) },
    );
    Script {
        run,
        resumes: false,
        runs: Arc::default(),
    }
}

/// The same, and the number of turns that were begun.
pub(crate) fn counted<F>(
    run: impl Fn(Turn) -> F + Send + Sync + 'static,
) -> (Script, Arc<AtomicUsize>)
where
    F: Future<Output = TurnResult> + Send + 'static,
{
    let script = script(run);
    let runs = Arc::clone(&script.runs);
    (script, runs)
}

impl Script {
    /// An agent whose lost turns can be run again.
    pub(crate) fn resuming(mut self) -> Self {
        self.resumes = true;
        self
    }
}

#[async_trait]
impl Agent for Script {
    async fn run(&self, turn: Turn) -> TurnResult {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (self.run)(turn).await
    }

    fn resumes(&self) -> bool {
        self.resumes
    }
}

/// A door between a test and its agent. Each [`open`](Self::open) lets one through.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn open(&self) {
        self.0.add_permits(1);
    }

    /// Lets everybody through from now on.
    pub(crate) fn open_wide(&self) {
        self.0.add_permits(1 << 20);
    }

    /// Waits to be let through, for ever.
    pub(crate) async fn pass(&self) {
        self.0
            .acquire()
            .await
            .expect("gates are never closed")
            .forget();
    }

    /// Waits to be let through by something that must happen.
    pub(crate) async fn reached(&self) {
        super::soon("the gate opens", self.pass()).await;
    }
}
