//! Running turns: the agent's future, guarded against panics, overtime and silence.

use super::live::{Ended, Live};
use crate::turn::{Turn, TurnRequest, TurnResult};
use futures_util::{
    FutureExt,
    stream::{AbortHandle, Abortable},
};
use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::OwnedSemaphorePermit;

/// Runs a turn, and after it those of the messages that came meanwhile. Apart from every
/// connection: nothing but the end of the work or a cancel stops it.
pub(crate) fn spawn(
    live: &Arc<Live>,
    number: u64,
    request: TurnRequest,
    permit: OwnedSemaphorePermit,
) {
    let (abort, registration) = AbortHandle::new_pair();
    if !live.set_abort(number, abort) {
        // The task was canceled before its turn began.
        return;
    }
    let live = Arc::clone(live);
    let turns = async move {
        let _permit = permit;
        let mut next = Some((number, request));
        while let Some((number, request)) = next {
            let ended = run_one(&live, number, request).await;
            next = live.end_turn(number, ended);
        }
    };
    tokio::spawn(Abortable::new(turns, registration));
}

async fn run_one(live: &Arc<Live>, number: u64, request: TurnRequest) -> Ended {
    let shared = live.shared();
    let turn = Turn::new(Arc::clone(live), number, request);
    let agent = Arc::clone(&shared.agent);
    let run = async move { agent.run(turn).await };
    let guarded = AssertUnwindSafe(run).catch_unwind();
    let flushing = Flushing {
        inner: Box::pin(guarded),
        live,
        number,
    };
    match tokio::time::timeout(shared.limits.turn, flushing).await {
        Ok(Ok(result)) => Ended::Returned(result),
        Ok(Err(_panic)) => {
            // The panic hook has printed it; the caller learns only that it happened.
            tracing::error!(task = %live.id(), "the agent panicked");
            Ended::Panicked
        }
        Err(_elapsed) => Ended::TimedOut,
    }
}

/// Polls an agent so that all it reports until it yields goes to the store in one batch.
struct Flushing<'l, F> {
    inner: Pin<Box<F>>,
    live: &'l Arc<Live>,
    number: u64,
}

impl<F: Future<Output = Result<TurnResult, Panic>>> Future for Flushing<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.live.enter_poll(self.number);
        let poll = self.inner.as_mut().poll(cx);
        self.live.leave_poll(self.number, poll.is_ready());
        poll
    }
}

type Panic = Box<dyn std::any::Any + Send>;
