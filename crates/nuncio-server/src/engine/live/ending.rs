//! How turns and tasks end.

use super::{
    Live,
    state::{RunningTurn, State},
};
use crate::{
    agent::AgentError,
    turn::{End, TurnRequest, TurnResult},
};
use nuncio_core::{Fault, LogEvent, TaskState};
use std::sync::Arc;

/// How a run of the agent came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    Returned(TurnResult),
    Panicked,
    TimedOut,
}

impl Live {
    /// Ends a turn with what the agent returned. Gives the next turn, where a message waits.
    pub(crate) fn end_turn(
        self: &Arc<Self>,
        number: u64,
        ended: Ended,
    ) -> Option<(u64, TurnRequest)> {
        let mut state = self.state.lock();
        let turn = state.turn.take_if(|t| t.number == number)?;
        let fault = self.conclude(&mut state, &turn, ended);
        if let Some(fault) = &fault {
            tracing::warn!(task = %self.id, %fault, "the agent broke the protocol");
        }
        state.fault = fault;
        state.settling = Some(state.taken);
        let next = self.next_turn(&mut state, turn);
        self.kick(&mut state);
        self.nudged.notify_waiters();
        next
    }

    fn next_turn(&self, state: &mut State, mut ended: RunningTurn) -> Option<(u64, TurnRequest)> {
        if state.lost.is_some() || state.outline.state().is_terminal() {
            // What waited is in the history, and whoever sent it sees the task end.
            return None;
        }
        let (seq, request) = ended.inbox.pop_front()?;
        let number = state.begin_turn(seq);
        if let Some(turn) = &mut state.turn {
            turn.inbox = ended.inbox;
            turn.abort = ended.abort;
        }
        Some((number, request))
    }

    /// Queues the last entry of a turn; gives the fault that the turn was, if it was one.
    fn conclude(
        self: &Arc<Self>,
        state: &mut State,
        turn: &RunningTurn,
        ended: Ended,
    ) -> Option<Fault> {
        if state.lost.is_some() {
            return None;
        }
        let canceled = turn
            .cancel
            .then(|| self.status_event(TaskState::Canceled, None));
        let (event, fault) = match (ended, turn.fault.clone()) {
            (_, Some(fault)) => (Some(self.fault_status(&fault)), Some(fault)),
            (Ended::Returned(Ok(outcome)), None) => match outcome.0 {
                End::Status { state: to, message } if to.is_terminal() || canceled.is_none() => {
                    (Some(self.status_event(to, message)), None)
                }
                End::Message(_) if turn.reported => (
                    Some(self.fault_status(&Fault::MessageAndTask)),
                    Some(Fault::MessageAndTask),
                ),
                End::Message(message) if !state.born => {
                    state.reply = Some(Arc::new(message));
                    (None, None)
                }
                End::Message(mut message) => {
                    message.task_id = Some(self.id.clone());
                    (
                        Some(self.status_event(TaskState::Completed, Some(message))),
                        None,
                    )
                }
                End::AsItStands if canceled.is_none() && turn.reported => (None, None),
                End::AsItStands if canceled.is_none() => (
                    Some(self.fault_status(&Fault::NoAnswer)),
                    Some(Fault::NoAnswer),
                ),
                End::Status { .. } | End::AsItStands => (canceled, None),
            },
            (Ended::Returned(Err(AgentError::Fault(fault))), None) => {
                (Some(self.fault_status(&fault)), Some(fault))
            }
            (_, None) if canceled.is_some() => (canceled, None),
            (Ended::Returned(Err(AgentError::Failed(reason))), None) => {
                (Some(self.status_with(TaskState::Failed, reason)), None)
            }
            // Nobody has ended the turn but the agent itself.
            (Ended::Returned(Err(AgentError::TurnOver)), None) => (
                Some(self.fault_status(&Fault::NoAnswer)),
                Some(Fault::NoAnswer),
            ),
            (Ended::Panicked, None) => (
                Some(self.status_with(TaskState::Failed, "The agent crashed.")),
                None,
            ),
            (Ended::TimedOut, None) => {
                let reason = format!(
                    "The agent did not finish within {} s.",
                    self.shared.limits.turn.as_secs_f64()
                );
                (Some(self.status_with(TaskState::Failed, reason)), None)
            }
        };
        let Some(event) = event else { return fault };
        if state.outline.state().is_terminal() {
            // The agent reported the end itself; what it did after that changes nothing.
            return None;
        }
        self.birth(state);
        match state.push(event) {
            Ok(_) => fault,
            Err(illegal) => {
                let failed = self.fault_status(&illegal);
                // A task that has not ended may always fail.
                let _ = state.push(failed);
                Some(illegal)
            }
        }
    }

    fn fault_status(&self, fault: &Fault) -> LogEvent {
        let mut text = fault.to_string();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        self.status_with(TaskState::Failed, text + ".")
    }

    /// Asks the turn at work to end. Says whether its agent watches for that: others can't be
    /// told, and waiting for them would be in vain.
    pub(crate) fn request_cancel(&self) -> bool {
        let mut state = self.state.lock();
        let watches = state.turn.as_mut().is_some_and(|turn| {
            turn.cancel = true;
            turn.watches
        });
        drop(state);
        self.nudged.notify_waiters();
        watches
    }

    /// Ends the task in this state, whatever its turn does. Nothing happens to an ended task.
    pub(crate) fn force(self: &Arc<Self>, to: TaskState, why: Option<&str>) {
        let mut state = self.state.lock();
        if state.lost.is_some() || state.outline.state().is_terminal() {
            return;
        }
        self.birth(&mut state);
        let event = match why {
            Some(why) => self.status_with(to, why),
            None => self.status_event(to, None),
        };
        if state.push(event).is_ok() {
            state.settling = Some(state.message_seq);
            state.taken = state.message_seq;
            if let Some(abort) = state.turn.take().and_then(|turn| turn.abort) {
                abort.abort();
            }
            self.kick(&mut state);
        }
        drop(state);
        self.nudged.notify_waiters();
    }
}
