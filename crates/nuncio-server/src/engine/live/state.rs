//! What the lock of a task guards.

use super::{Logged, Standing};
use crate::{Limits, turn::TurnRequest};
use futures_util::stream::AbortHandle;
use nuncio_core::{Fault, LogEvent, Message, Task, TaskOutline};
use nuncio_store::{Fence, IdempotencyKey, IdempotencyRecord, StoreError};
use std::{collections::VecDeque, sync::Arc};

/// A batch to the store holds at most so many entries, …
const BATCH_ENTRIES: usize = 512;
/// … and, but for its last entry, so many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// So many ends of turns are remembered for followers that read them back from the store.
const ENDS: usize = 64;

#[derive(Debug)]
pub(super) struct State {
    // Committed.
    pub(super) task: Task,
    pub(super) seq: u64,
    pub(super) status_seq: u64,
    /// The newest message that had been handed to a turn when that status was reported.
    pub(super) status_taken: u64,
    pub(super) stored: bool,
    pub(super) recent: VecDeque<Arc<Logged>>,
    pub(super) recent_bytes: usize,
    /// The entries that ended the latest turns, each with the newest message that had been handed
    /// to a turn by then: entries in the store do not tell.
    ends: VecDeque<(u64, u64)>,
    /// Messages up to this entry were answered by a turn that has ended.
    pub(super) settled: u64,
    pub(super) reply: Option<Arc<Message>>,
    pub(super) fault: Option<Fault>,
    pub(super) duplicate: Option<IdempotencyRecord>,
    pub(super) lost: Option<StoreError>,

    // On the way to the store.
    pub(super) outline: TaskOutline,
    pub(super) born: bool,
    pub(super) next_seq: u64,
    pub(super) message_seq: u64,
    pub(super) pending: VecDeque<Pending>,
    pub(super) settling: Option<u64>,
    /// The key of the first message, until the task is born.
    pub(super) idempotency: Option<IdempotencyKey>,
    pub(super) flushing: bool,
    pub(super) fence: Option<Fence>,

    // The turn at work.
    pub(super) turns: u64,
    pub(super) turn: Option<RunningTurn>,
    /// Messages up to this entry were handed to a turn.
    pub(super) taken: u64,
}

/// An entry on its way to the store.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) event: LogEvent,
    pub(super) logged: Arc<Logged>,
    /// The key under which it was sent, where it is a message.
    pub(super) key: Option<IdempotencyKey>,
}

#[derive(Debug)]
pub(super) struct RunningTurn {
    pub(super) number: u64,
    pub(super) inbox: VecDeque<(u64, TurnRequest)>,
    pub(super) abort: Option<AbortHandle>,
    pub(super) cancel: bool,
    /// The agent has looked for a cancel, so it is given time to end by itself.
    pub(super) watches: bool,
    /// The agent is being polled: what it reports is flushed when it yields, in one batch.
    pub(super) polling: bool,
    pub(super) reported: bool,
    pub(super) updates: u64,
    pub(super) bytes: u64,
    pub(super) fault: Option<Fault>,
}

impl RunningTurn {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            inbox: VecDeque::new(),
            abort: None,
            cancel: false,
            watches: false,
            polling: false,
            reported: false,
            updates: 0,
            bytes: 0,
            fault: None,
        }
    }
}

impl State {
    pub(super) fn new(task: &Task, seq: u64, message_seq: u64) -> Self {
        Self {
            outline: TaskOutline::from(task),
            task: task.clone(),
            seq,
            status_seq: seq,
            status_taken: seq,
            stored: true,
            recent: VecDeque::new(),
            recent_bytes: 0,
            ends: VecDeque::new(),
            settled: 0,
            reply: None,
            fault: None,
            duplicate: None,
            lost: None,
            born: true,
            next_seq: seq + 1,
            message_seq,
            pending: VecDeque::new(),
            settling: None,
            idempotency: None,
            flushing: false,
            fence: None,
            turns: 0,
            turn: None,
            taken: 0,
        }
    }

    pub(super) fn turn_mut(&mut self, number: u64) -> Option<&mut RunningTurn> {
        self.turn.as_mut().filter(|turn| turn.number == number)
    }

    /// Whether a turn is to end, or has; the agent that asks is from now on one that watches.
    pub(super) fn is_cancel_requested(&mut self, number: u64) -> bool {
        if self.lost.is_some() {
            return true;
        }
        match self.turn_mut(number) {
            Some(turn) => {
                turn.watches = true;
                turn.cancel
            }
            None => true,
        }
    }

    pub(super) fn begin_turn(&mut self, message: u64) -> u64 {
        self.turns += 1;
        self.turn = Some(RunningTurn::new(self.turns));
        self.taken = message;
        self.fault = None;
        self.turns
    }

    pub(super) fn push(&mut self, event: LogEvent) -> Result<u64, Fault> {
        self.push_under(None, event)
    }

    /// The same for a message that was sent under an idempotency key.
    pub(super) fn push_under(
        &mut self,
        key: Option<IdempotencyKey>,
        event: LogEvent,
    ) -> Result<u64, Fault> {
        self.outline.apply(&event)?;
        Ok(self.queue(key, event))
    }

    pub(super) fn queue(&mut self, key: Option<IdempotencyKey>, event: LogEvent) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let logged = Arc::new(Logged::of(seq, self.taken, &event));
        self.pending.push_back(Pending { event, logged, key });
        seq
    }

    /// Takes what goes to the store next. No message comes after one with an idempotency key: an
    /// append has room for one key, which stands for its last message.
    pub(super) fn next_batch(&mut self) -> Vec<Pending> {
        let (mut bytes, mut count, mut keyed) = (0, 0, false);
        for Pending { event, logged, key } in self.pending.iter().take(BATCH_ENTRIES) {
            if bytes > BATCH_BYTES || (keyed && matches!(event, LogEvent::Message(_))) {
                break;
            }
            bytes += logged.body.len();
            count += 1;
            keyed |= key.is_some();
        }
        self.pending.drain(..count).collect()
    }

    pub(super) fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.settling.is_some()
    }

    pub(super) fn remember(&mut self, logged: Arc<Logged>, limits: &Limits) {
        self.recent_bytes += logged.body.len();
        self.recent.push_back(logged);
        while self.recent.len() > limits.recent_updates || self.recent_bytes > limits.recent_bytes {
            match self.recent.pop_front() {
                Some(old) => self.recent_bytes -= old.body.len(),
                None => break,
            }
        }
    }

    pub(super) fn remember_end(&mut self, seq: u64, taken: u64) {
        if self.ends.len() == ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back((seq, taken));
    }

    /// The newest message that had been handed to a turn when entry `seq` ended one. Of the turns
    /// of an earlier time nobody waits for a message that they did not have.
    pub(super) fn taken_by(&self, seq: u64) -> u64 {
        let mut ends = self.ends.iter().rev();
        ends.find(|end| end.0 == seq).map_or(u64::MAX, |end| end.1)
    }

    /// How things stand for the message in entry `message`, once its answer is committed.
    pub(super) fn standing(&self, message: u64) -> Option<Standing> {
        if let Some(error) = &self.lost {
            return Some(Standing::Lost(error.clone()));
        }
        if let Some(reply) = &self.reply {
            return Some(Standing::Reply(Arc::clone(reply)));
        }
        let now = self.task.status.state;
        let settled = self.settled >= message && self.stored;
        if settled
            && self.settling.is_none()
            && let Some(fault) = &self.fault
        {
            return Some(Standing::Fault(fault.clone()));
        }
        let interrupted =
            now.is_interrupted() && self.status_taken >= message && self.status_seq > message;
        (settled || (now.is_terminal() && self.stored) || interrupted).then_some(Standing::Task)
    }
}
