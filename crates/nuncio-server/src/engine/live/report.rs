//! What is said of a task on its way into the log: by users, and by the agent in its turn.

use super::{Live, state::State};
use crate::{agent::AgentError, engine::EngineError, turn::TurnRequest};
use futures_util::stream::AbortHandle;
use nuncio_core::{Fault, LogEvent};
use nuncio_store::IdempotencyKey;
use std::{pin::pin, sync::Arc};

impl Live {
    /// Makes the task known, whatever the agent will say.
    pub(crate) fn give_birth(self: &Arc<Self>) {
        let mut state = self.state.lock();
        self.birth(&mut state);
        self.kick(&mut state);
    }

    pub(super) fn birth(self: &Arc<Self>, state: &mut State) {
        // A turn that was answered with a bare message leaves no task behind.
        if !state.born && state.reply.is_none() {
            state.born = true;
            self.shared.register(self);
            let event = LogEvent::Created(state.task.clone());
            let key = state.idempotency.take();
            state.queue(key, event);
        }
    }

    /// Adds a user's message to the task. Where a turn runs, it may take the message; where none
    /// does, the caller is to run the turn that is returned, which it must be able to.
    pub(crate) fn add_message(
        self: &Arc<Self>,
        mut request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
        can_run: bool,
    ) -> Result<(u64, Option<(u64, TurnRequest)>), EngineError> {
        request.message.task_id = Some(self.id.clone());
        request.message.context_id = Some(self.context_id.clone());
        let mut state = self.state.lock();
        if state.outline.state().is_terminal() {
            return Err(EngineError::TaskEnded);
        }
        if state.turn.is_none() && !can_run {
            return Err(EngineError::BUSY);
        }
        let event = LogEvent::Message(request.message.clone());
        let seq = state
            .push_under(idempotency, event)
            .map_err(EngineError::Agent)?;
        state.message_seq = seq;
        let start = match &mut state.turn {
            Some(turn) => {
                turn.inbox.push_back((seq, request));
                None
            }
            None => {
                let number = state.begin_turn(seq);
                Some((number, request))
            }
        };
        self.kick(&mut state);
        self.nudged.notify_waiters();
        Ok((seq, start))
    }

    /// Begins the first turn of an unborn or orphaned task.
    pub(crate) fn begin_turn(&self) -> u64 {
        let mut state = self.state.lock();
        let seq = state.message_seq;
        // What a turn that was lost had answered does not count: it is answered again.
        state.settled = state.settled.min(seq.saturating_sub(1));
        state.begin_turn(seq)
    }

    /// Reports something in a turn.
    pub(crate) async fn emit(
        self: &Arc<Self>,
        number: u64,
        event: LogEvent,
    ) -> Result<(), AgentError> {
        loop {
            let room = self.nudged.notified();
            let mut room = pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.lost.is_some() {
                    return Err(AgentError::TurnOver);
                }
                let Some(turn) = state.turn.as_ref().filter(|t| t.number == number) else {
                    return Err(AgentError::TurnOver);
                };
                if let Some(fault) = &turn.fault {
                    return Err(fault.clone().into());
                }
                if state.pending.len() < self.shared.limits.uncommitted_updates {
                    return self.report(&mut state, event);
                }
                // The queue is full although the agent has not yielded: it must be flushed for
                // room to come.
                self.kick(&mut state);
            }
            room.await;
        }
    }

    fn report(self: &Arc<Self>, state: &mut State, event: LogEvent) -> Result<(), AgentError> {
        self.birth(state);
        let outcome = state.push(event);
        let limits = &self.shared.limits;
        let bytes = state
            .pending
            .back()
            .map_or(0, |pending| pending.logged.body.len() as u64);
        let Some(turn) = &mut state.turn else {
            return Err(AgentError::TurnOver);
        };
        if let Err(fault) = outcome {
            // A late update leaves an ended task alone; any other fault fails the turn.
            if !matches!(fault, Fault::AfterEnd(_)) {
                turn.fault = Some(fault.clone());
            }
            return Err(fault.into());
        }
        turn.reported = true;
        turn.updates += 1;
        turn.bytes += bytes;
        if turn.updates > limits.turn_updates {
            turn.fault = Some(Fault::Flood {
                limit: limits.turn_updates,
                what: "updates",
            });
        } else if turn.bytes > limits.turn_bytes {
            turn.fault = Some(Fault::Flood {
                limit: limits.turn_bytes,
                what: "bytes",
            });
        }
        let fault = turn.fault.clone();
        if !turn.polling {
            self.kick(state);
        }
        fault.map_or(Ok(()), |fault| Err(fault.into()))
    }

    /// The agent's future is about to be polled: hold flushes back until it yields.
    pub(crate) fn enter_poll(&self, number: u64) {
        if let Some(turn) = self.state.lock().turn_mut(number) {
            turn.polling = true;
        }
    }

    /// The agent's future yielded (or, with `done`, returned: what is left is flushed together
    /// with the end of the turn).
    pub(crate) fn leave_poll(self: &Arc<Self>, number: u64, done: bool) {
        let mut state = self.state.lock();
        if let Some(turn) = state.turn_mut(number) {
            turn.polling = false;
        }
        if !done {
            self.kick(&mut state);
        }
    }

    /// Says how to stop a turn; `false` where it is over already.
    pub(crate) fn set_abort(&self, number: u64, abort: AbortHandle) -> bool {
        match self.state.lock().turn_mut(number) {
            Some(turn) => {
                turn.abort = Some(abort);
                true
            }
            None => false,
        }
    }

    /// Whether a turn is to end.
    pub(crate) fn is_cancel_requested(&self, number: u64) -> bool {
        self.state.lock().is_cancel_requested(number)
    }

    /// Waits until a turn is to end.
    pub(crate) async fn cancel_requested(&self, number: u64) {
        self.nudge_until(|state| state.is_cancel_requested(number).then_some(()))
            .await;
    }

    /// The next message for a turn; `None` when it is to end.
    pub(crate) async fn take_message(self: &Arc<Self>, number: u64) -> Option<TurnRequest> {
        self.nudge_until(|state| {
            if state.is_cancel_requested(number) {
                return Some(None);
            }
            let (seq, request) = state.turn_mut(number)?.inbox.pop_front()?;
            state.taken = seq;
            Some(Some(request))
        })
        .await
    }

    async fn nudge_until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut nudge = pin!(self.nudged.notified());
            nudge.as_mut().enable();
            if let Some(found) = look(&mut self.state.lock()) {
                return found;
            }
            nudge.await;
        }
    }
}
