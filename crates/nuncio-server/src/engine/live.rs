//! A task in use: what is committed, what is on its way to the store, and the turn at work.
//!
//! There is at most one [`Live`] per task in a process, while somebody runs, follows or changes
//! it; an idle task has none and costs no memory. All changes go through its lock, in order; one
//! flush at a time carries them to the store, in batches that grow while a commit is under way.
//!
//! Invariants:
//! - readers see [`State::task`] and [`State::recent`], which hold committed entries only;
//! - writers are checked against [`State::outline`], which runs ahead by what is uncommitted;
//! - after a terminal entry the outline refuses all others, so the first terminal state wins.
//!
//! The rejected alternative, a channel to a writer task for each task, costs two more wake-ups
//! per update and has to answer the same questions about order.

use super::shared::Shared;
use crate::{
    agent::AgentError,
    turn::{self, End, TurnRequest, TurnResult},
};
use bytes::Bytes;
use nuncio_core::{
    ContextId, Event, Fault, LogEvent, Message, Owner, Part, ProtocolVersion, Task, TaskId,
    TaskOutline, TaskState, wire,
};
use nuncio_store::{
    Append, Appended, Entry, Fence, IdempotencyKey, IdempotencyRecord, LeaseChange, NewTask,
    StatusRow, StoreError, StoredTask,
};
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, OnceLock},
};
use tokio::{sync::Notify, task::AbortHandle};

/// A batch to the store holds at most so many entries, …
const BATCH_ENTRIES: usize = 512;
/// … and, but for its last entry, so many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// A committed entry, as followers read it: encoded once for each version.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) seq: u64,
    /// The newest message that had been handed to a turn when this was reported.
    taken: u64,
    body: Bytes,
    shown: Shown,
    v03: OnceLock<Option<Bytes>>,
}

/// What an entry is to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Not shown: a user's message, which streams do not carry.
    No,
    /// The task as created.
    Created,
    /// An update.
    Update,
    /// The status that ends a turn.
    Final,
}

impl Logged {
    fn of(seq: u64, taken: u64, event: &LogEvent) -> Self {
        let shown = match event {
            LogEvent::Created(_) => Shown::Created,
            LogEvent::Message(_) => Shown::No,
            LogEvent::Status(update) if update.status.state.is_final() => Shown::Final,
            LogEvent::Status(_) | LogEvent::Artifact(_) => Shown::Update,
        };
        let body = Bytes::from(wire::stored::encode_event(event));
        Self {
            seq,
            taken,
            body,
            shown,
            v03: OnceLock::new(),
        }
    }

    /// An entry read back from the store.
    pub(crate) fn from_entry(entry: Entry) -> Result<Self, StoreError> {
        let event = decode(&entry.body)?;
        Ok(Self {
            body: entry.body,
            ..Self::of(entry.seq, u64::MAX, &event)
        })
    }

    pub(crate) fn shown(&self) -> Shown {
        self.shown
    }

    /// Whether this ends the turn that answers the message in entry `message`.
    pub(crate) fn concludes(&self, message: u64) -> bool {
        self.shown == Shown::Final && self.seq > message && self.taken >= message
    }

    /// The task as created, where this is that entry.
    pub(crate) fn created(&self) -> Option<Task> {
        match decode(&self.body) {
            Ok(LogEvent::Created(task)) => Some(task),
            _ => None,
        }
    }

    /// The event as a stream of this version carries it; `None` where streams don't.
    pub(crate) fn event(&self, version: ProtocolVersion) -> Option<Bytes> {
        match (self.shown, version) {
            (Shown::No, _) => None,
            (_, ProtocolVersion::V1_0) => Some(self.body.clone()),
            (_, ProtocolVersion::V0_3) => self
                .v03
                .get_or_init(|| {
                    let event = match decode(&self.body).ok()? {
                        LogEvent::Created(task) => Event::Task(task),
                        LogEvent::Status(update) => Event::Status(update),
                        LogEvent::Artifact(update) => Event::Artifact(update),
                        LogEvent::Message(_) => return None,
                    };
                    Some(wire::encode_event(version, &event).into())
                })
                .clone(),
        }
    }
}

fn decode(body: &[u8]) -> Result<LogEvent, StoreError> {
    wire::stored::decode_event(body)
        .map_err(|e| StoreError::Unavailable(format!("an entry of the log can't be read: {e}")))
}

/// How things stand for whoever waits for the answer to a message.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// The task rests or has ended.
    Task,
    /// The answer was a bare message.
    Reply(Arc<Message>),
    /// The agent broke the protocol.
    Fault(Fault),
    /// The store failed.
    Lost(StoreError),
}

/// How the first commit of a task went.
#[derive(Debug, Clone)]
pub(crate) enum Birth {
    /// It exists.
    Stored,
    /// It is not to exist: the idempotency key stands for another one.
    Duplicate(IdempotencyRecord),
    /// The turn ended without a task.
    Reply,
    /// The store failed.
    Lost(StoreError),
}

/// How a run of the agent came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    Returned(TurnResult),
    Panicked,
    TimedOut,
}

#[derive(Debug)]
pub(crate) struct Live {
    shared: Arc<Shared>,
    owner: Owner,
    id: TaskId,
    context_id: ContextId,
    state: Mutex<State>,
    /// Something was committed, or a turn ended.
    changed: Notify,
    /// Something happened that the turn may wait for: a message, a cancel, room in the queue.
    nudged: Notify,
}

#[derive(Debug)]
struct State {
    // Committed.
    task: Task,
    seq: u64,
    status_seq: u64,
    /// The newest message that had been handed to a turn when that status was reported.
    status_taken: u64,
    stored: bool,
    recent: VecDeque<Arc<Logged>>,
    recent_bytes: usize,
    /// Messages up to this entry were answered by a turn that has ended.
    settled: u64,
    reply: Option<Arc<Message>>,
    fault: Option<Fault>,
    duplicate: Option<IdempotencyRecord>,
    lost: Option<StoreError>,

    // On the way to the store.
    outline: TaskOutline,
    born: bool,
    next_seq: u64,
    message_seq: u64,
    pending: VecDeque<(LogEvent, Arc<Logged>)>,
    settling: Option<u64>,
    idempotency: Option<IdempotencyKey>,
    flushing: bool,
    fence: Option<Fence>,

    // The turn at work.
    turns: u64,
    turn: Option<RunningTurn>,
    /// Messages up to this entry were handed to a turn.
    taken: u64,
}

#[derive(Debug)]
struct RunningTurn {
    number: u64,
    inbox: VecDeque<(u64, TurnRequest)>,
    abort: Option<AbortHandle>,
    cancel: bool,
    /// The agent is being polled: what it reports is flushed when it yields, in one batch.
    polling: bool,
    reported: bool,
    updates: u64,
    bytes: u64,
    fault: Option<Fault>,
}

impl RunningTurn {
    fn new(number: u64) -> Self {
        Self {
            number,
            inbox: VecDeque::new(),
            abort: None,
            cancel: false,
            polling: false,
            reported: false,
            updates: 0,
            bytes: 0,
            fault: None,
        }
    }
}

struct Batch {
    append: Append,
    meaning: Meaning,
}

/// What a batch means for the task once it is committed.
struct Meaning {
    events: Vec<(LogEvent, Arc<Logged>)>,
    settling: Option<u64>,
    create: bool,
    release: bool,
}

impl Live {
    /// A task that is not stored yet. It becomes known with the agent's first report, or when
    /// [`give_birth`](Self::give_birth) is called; an agent that answers with a bare message
    /// leaves no task behind.
    pub(crate) fn unborn(
        shared: Arc<Shared>,
        owner: Owner,
        task: Task,
        idempotency: Option<IdempotencyKey>,
    ) -> Arc<Self> {
        let mut state = State::new(&task, 0, 0);
        state.born = false;
        state.stored = false;
        state.message_seq = 1;
        state.idempotency = idempotency;
        Arc::new(Self::with(shared, owner, task, state))
    }

    /// A stored task, folded from its checkpoint and the entries after it.
    pub(crate) async fn load(
        shared: Arc<Shared>,
        owner: Owner,
        stored: StoredTask,
        fence: Option<Fence>,
    ) -> Result<Self, StoreError> {
        let (task, seq) = fold(&shared, &owner, &stored, u64::MAX).await?;
        let mut state = State::new(&task, seq, stored.last_message_seq);
        state.settled = seq;
        state.taken = seq;
        state.fence = fence;
        Ok(Self::with(shared, owner, task, state))
    }

    fn with(shared: Arc<Shared>, owner: Owner, task: Task, mut state: State) -> Self {
        let (id, context_id) = (task.id.clone(), task.context_id.clone());
        state.task = task;
        Self {
            shared,
            owner,
            id,
            context_id,
            state: Mutex::new(state),
            changed: Notify::new(),
            nudged: Notify::new(),
        }
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.id
    }

    pub(crate) fn context_id(&self) -> &ContextId {
        &self.context_id
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The task as committed.
    pub(crate) fn task(&self) -> Task {
        self.state.lock().task.clone()
    }

    /// The task as committed, and the number of its newest entry.
    pub(crate) fn snapshot(&self) -> (Task, u64) {
        let state = self.state.lock();
        (state.task.clone(), state.seq)
    }

    /// Whether the task has ended, as committed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().task.status.state.is_terminal()
    }

    pub(crate) fn status_event(&self, state: TaskState, message: Option<Message>) -> LogEvent {
        turn::status_event(&self.id, &self.context_id, state, message)
    }

    pub(crate) fn agent_message(&self, parts: Vec<Part>) -> Message {
        turn::agent_message(&self.id, &self.context_id, parts)
    }

    fn status_with(&self, state: TaskState, text: impl Into<String>) -> LogEvent {
        self.status_event(state, Some(self.agent_message(vec![Part::text(text)])))
    }

    // ------------------------------------------------------------------ writing

    /// Makes the task known, whatever the agent will say.
    pub(crate) fn give_birth(self: &Arc<Self>) {
        let mut state = self.state.lock();
        self.birth(&mut state);
        self.kick(&mut state);
    }

    fn birth(self: &Arc<Self>, state: &mut State) {
        if !state.born {
            state.born = true;
            self.shared.register(self);
            let event = LogEvent::Created(state.task.clone());
            state.queue(event);
        }
    }

    /// Adds a user's message to the task. Where a turn runs, it may take the message; where none
    /// does, the caller is to run the turn that is returned.
    pub(crate) fn add_message(
        self: &Arc<Self>,
        mut request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<(u64, Option<(u64, TurnRequest)>), Fault> {
        request.message.task_id = Some(self.id.clone());
        request.message.context_id = Some(self.context_id.clone());
        let mut state = self.state.lock();
        let seq = state.push(LogEvent::Message(request.message.clone()))?;
        state.message_seq = seq;
        state.idempotency = idempotency;
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
            .map_or(0, |(_, logged)| logged.body.len() as u64);
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

    pub(crate) fn set_abort(&self, number: u64, abort: AbortHandle) {
        if let Some(turn) = self.state.lock().turn_mut(number) {
            turn.abort = Some(abort);
        }
    }

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
        let next = self.next_turn(&mut state, turn.inbox);
        self.kick(&mut state);
        self.nudged.notify_waiters();
        next
    }

    fn next_turn(
        &self,
        state: &mut State,
        mut inbox: VecDeque<(u64, TurnRequest)>,
    ) -> Option<(u64, TurnRequest)> {
        if state.lost.is_some() || state.outline.state().is_terminal() {
            // What waited is in the history, and whoever sent it sees the task end.
            return None;
        }
        let (seq, request) = inbox.pop_front()?;
        let number = state.begin_turn(seq);
        if let Some(turn) = &mut state.turn {
            turn.inbox = inbox;
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
            (Ended::Returned(Err(AgentError::TurnOver)), None) => (None, None),
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
            // The agent reported the end itself; what it returned adds nothing.
            return fault;
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

    /// Asks the turn at work to end. `false` where none is.
    pub(crate) fn request_cancel(&self) -> bool {
        let mut state = self.state.lock();
        let running = match &mut state.turn {
            Some(turn) => {
                turn.cancel = true;
                true
            }
            None => false,
        };
        drop(state);
        self.nudged.notify_waiters();
        running
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

    // ------------------------------------------------------------------ the turn's view

    pub(crate) async fn cancel_requested(&self, number: u64) {
        self.nudge_until(|state| {
            state
                .turn
                .as_ref()
                .is_none_or(|t| t.number != number || t.cancel)
                .then_some(())
        })
        .await;
    }

    /// The next message for a turn; `None` when it is to end.
    pub(crate) async fn take_message(self: &Arc<Self>, number: u64) -> Option<TurnRequest> {
        self.nudge_until(|state| {
            let Some(turn) = state.turn_mut(number).filter(|t| !t.cancel) else {
                return Some(None);
            };
            let (seq, request) = turn.inbox.pop_front()?;
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

    // ------------------------------------------------------------------ waiting and reading

    async fn changed_until<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        loop {
            let mut change = pin!(self.changed.notified());
            change.as_mut().enable();
            if let Some(found) = look(&self.state.lock()) {
                return found;
            }
            change.await;
        }
    }

    /// Waits until the message in entry `message` has its answer.
    pub(crate) async fn answered(&self, message: u64) -> Standing {
        self.changed_until(|state| state.standing(message)).await
    }

    /// Waits until the task is stored, or will never be.
    pub(crate) async fn born(&self) -> Birth {
        self.changed_until(|state| {
            if let Some(record) = &state.duplicate {
                Some(Birth::Duplicate(record.clone()))
            } else if let Some(error) = &state.lost {
                Some(Birth::Lost(error.clone()))
            } else if state.stored {
                Some(Birth::Stored)
            } else {
                state.reply.is_some().then_some(Birth::Reply)
            }
        })
        .await
    }

    /// Waits until entry `seq` is committed.
    pub(crate) async fn committed(&self, seq: u64) -> Result<(), StoreError> {
        self.changed_until(|state| {
            if state.seq >= seq {
                return Some(Ok(()));
            }
            state.lost.clone().map(Err)
        })
        .await
    }

    /// Waits until the task has ended.
    pub(crate) async fn ended(&self) -> Result<TaskState, StoreError> {
        self.changed_until(|state| {
            let now = state.task.status.state;
            if now.is_terminal() {
                return Some(Ok(now));
            }
            state.lost.clone().map(Err)
        })
        .await
    }

    /// Committed entries after `after` that are still in memory; `Err` where the store must be
    /// asked, `None` where there is nothing new.
    pub(crate) fn recent(&self, after: u64, limit: usize) -> Result<Option<Vec<Arc<Logged>>>, ()> {
        let state = self.state.lock();
        if state.seq <= after {
            return Ok(None);
        }
        let first = state.seq + 1 - state.recent.len() as u64;
        if after + 1 < first {
            return Err(());
        }
        let skip = usize::try_from(after + 1 - first).unwrap_or(usize::MAX);
        Ok(Some(
            state
                .recent
                .iter()
                .skip(skip)
                .take(limit)
                .cloned()
                .collect(),
        ))
    }

    /// Waits for what a follower that has read up to `after` should do next.
    pub(crate) async fn follow(&self, after: u64, until: Option<u64>) -> Followed {
        self.changed_until(|state| {
            if state.seq > after {
                return Some(Followed::More);
            }
            if let Some(error) = &state.lost {
                return Some(Followed::Lost(error.clone()));
            }
            if state.task.status.state.is_terminal() && state.stored {
                return Some(Followed::End);
            }
            match state.standing(until?)? {
                Standing::Reply(message) => Some(Followed::Reply(message)),
                Standing::Task | Standing::Fault(_) | Standing::Lost(_) => Some(Followed::End),
            }
        })
        .await
    }

    // ------------------------------------------------------------------ to the store

    fn kick(self: &Arc<Self>, state: &mut State) {
        if state.flushing || !state.has_work() {
            return;
        }
        if !state.born {
            // A bare message: nothing goes to the store.
            if let Some(settled) = state.settling.take() {
                state.settled = settled;
                self.changed.notify_waiters();
            }
            return;
        }
        state.flushing = true;
        tokio::spawn(Arc::clone(self).flush());
    }

    async fn flush(self: Arc<Self>) {
        loop {
            let Some(batch) = self.take_batch() else {
                return;
            };
            let Batch { append, meaning } = batch;
            let store = &self.shared.store;
            let empty = append.entries.is_empty() && append.lease == LeaseChange::Keep;
            let result = if meaning.create {
                let task = NewTask {
                    id: self.id.clone(),
                    context_id: self.context_id.clone(),
                    first: append,
                };
                store.create(&self.owner, task).await
            } else if empty {
                Ok(Appended::Committed { fence: None })
            } else {
                store.append(&self.owner, &self.id, append).await
            };
            self.publish(meaning, result);
        }
    }

    fn take_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        if state.lost.is_some() || !state.has_work() {
            state.flushing = false;
            return None;
        }
        let mut bytes = 0;
        let mut count = 0;
        for (_, logged) in state.pending.iter().take(BATCH_ENTRIES) {
            if bytes > BATCH_BYTES {
                break;
            }
            bytes += logged.body.len();
            count += 1;
        }
        let events: Vec<_> = state.pending.drain(..count).collect();
        let settling = if state.pending.is_empty() {
            state.settling.take()
        } else {
            None
        };
        let mut append = Append {
            fence: state.fence,
            ..Append::default()
        };
        let mut terminal = false;
        for (event, logged) in &events {
            append.entries.push(Entry {
                seq: logged.seq,
                body: logged.body.clone(),
            });
            let status = match event {
                LogEvent::Created(task) => {
                    append.message_seq = Some(logged.seq);
                    append.idempotency = state.idempotency.take();
                    &task.status
                }
                LogEvent::Message(_) => {
                    append.message_seq = Some(logged.seq);
                    append.idempotency = state.idempotency.take();
                    continue;
                }
                LogEvent::Status(update) => &update.status,
                LogEvent::Artifact(_) => continue,
            };
            terminal |= status.state.is_terminal();
            append.status = Some(StatusRow {
                state: status.state,
                since: status.timestamp.unwrap_or_else(nuncio_core::Timestamp::now),
            });
        }
        let resting = terminal || (settling.is_some() && state.turn.is_none());
        append.lease = match (resting, state.fence) {
            (true, Some(_)) => LeaseChange::Release,
            (true, None) => LeaseChange::Keep,
            (false, Some(_)) => LeaseChange::Keep,
            (false, None) => self.shared.take_lease(),
        };
        let create = !state.stored;
        let task = resting.then(|| state.task.clone());
        drop(state);
        // A checkpoint at the end of each turn keeps a task's reads short however long its log;
        // one for each update would make a long stream cost the square of its length.
        append.checkpoint = task.map(|mut task| {
            for (event, _) in &events {
                // Checked when it was queued; `Created` is the task itself.
                let _ = task.apply(event);
            }
            wire::stored::encode_task(&task).into()
        });
        let release = append.lease == LeaseChange::Release;
        Some(Batch {
            append,
            meaning: Meaning {
                events,
                settling,
                create,
                release,
            },
        })
    }

    fn publish(self: &Arc<Self>, meaning: Meaning, result: Result<Appended, StoreError>) {
        let Meaning {
            events,
            settling,
            create,
            release,
        } = meaning;
        let mut state = self.state.lock();
        match result {
            Ok(Appended::Committed { fence }) => {
                state.stored = true;
                for (event, logged) in events {
                    if !matches!(event, LogEvent::Created(_)) {
                        // Checked when it was queued.
                        let _ = state.task.apply(&event);
                    }
                    if matches!(event, LogEvent::Status(_)) {
                        state.status_seq = logged.seq;
                        state.status_taken = logged.taken;
                    }
                    state.seq = logged.seq;
                    state.remember(logged, &self.shared.limits);
                }
                if let Some(settled) = settling {
                    state.settled = settled;
                }
                state.fence = if release { None } else { fence.or(state.fence) };
            }
            Ok(Appended::Duplicate(record)) => {
                state.duplicate = Some(record);
                state.lost = Some(StoreError::Malformed("the send was a duplicate"));
                state.pending.clear();
                self.shared.forget(self);
            }
            Err(error) => {
                tracing::error!(task = %self.id, %error, "the task's log could not be written");
                let fence = state.fence.filter(|_| !create);
                state.lost = Some(error);
                state.pending.clear();
                self.shared.forget(self);
                if let Some(fence) = fence {
                    self.shared
                        .leave_behind(self.owner.clone(), self.id.clone(), fence);
                }
            }
        }
        drop(state);
        self.changed.notify_waiters();
        self.nudged.notify_waiters();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.unregister(&self.id);
    }
}

/// What a follower should do next.
#[derive(Debug)]
pub(crate) enum Followed {
    /// Read on: entries were committed.
    More,
    /// The answer is a bare message.
    Reply(Arc<Message>),
    /// All there will be has been read.
    End,
    /// The store failed.
    Lost(StoreError),
}

impl State {
    fn new(task: &Task, seq: u64, message_seq: u64) -> Self {
        Self {
            outline: TaskOutline::from(task),
            task: task.clone(),
            seq,
            status_seq: seq,
            status_taken: seq,
            stored: true,
            recent: VecDeque::new(),
            recent_bytes: 0,
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

    fn turn_mut(&mut self, number: u64) -> Option<&mut RunningTurn> {
        self.turn.as_mut().filter(|turn| turn.number == number)
    }

    fn begin_turn(&mut self, message: u64) -> u64 {
        self.turns += 1;
        self.turn = Some(RunningTurn::new(self.turns));
        self.taken = message;
        self.fault = None;
        self.turns
    }

    fn push(&mut self, event: LogEvent) -> Result<u64, Fault> {
        self.outline.apply(&event)?;
        Ok(self.queue(event))
    }

    fn queue(&mut self, event: LogEvent) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        let logged = Arc::new(Logged::of(seq, self.taken, &event));
        self.pending.push_back((event, logged));
        seq
    }

    fn has_work(&self) -> bool {
        !self.pending.is_empty() || self.settling.is_some()
    }

    fn remember(&mut self, logged: Arc<Logged>, limits: &crate::Limits) {
        self.recent_bytes += logged.body.len();
        self.recent.push_back(logged);
        while self.recent.len() > limits.recent_updates || self.recent_bytes > limits.recent_bytes {
            match self.recent.pop_front() {
                Some(old) => self.recent_bytes -= old.body.len(),
                None => break,
            }
        }
    }

    /// How things stand for the message in entry `message`, once its answer is committed.
    fn standing(&self, message: u64) -> Option<Standing> {
        if let Some(error) = &self.lost {
            return Some(Standing::Lost(error.clone()));
        }
        if let Some(reply) = &self.reply {
            return Some(Standing::Reply(Arc::clone(reply)));
        }
        let now = self.task.status.state;
        let settled = self.settled >= message && self.stored;
        if settled && self.settling.is_none() {
            if let Some(fault) = &self.fault {
                return Some(Standing::Fault(fault.clone()));
            }
        }
        let interrupted =
            now.is_interrupted() && self.status_taken >= message && self.status_seq > message;
        (settled || (now.is_terminal() && self.stored) || interrupted).then_some(Standing::Task)
    }
}

/// Folds a stored task up to entry `upto`, or to the newest. The number that comes with it is the
/// entry it is as of: greater than `upto` where the log that leads there was pruned.
pub(crate) async fn fold(
    shared: &Shared,
    owner: &Owner,
    stored: &StoredTask,
    upto: u64,
) -> Result<(Task, u64), StoreError> {
    const PAGE: usize = 512;
    let mut task = match &stored.checkpoint {
        Some(checkpoint) if stored.checkpoint_seq <= upto => {
            let task = wire::stored::decode_task(checkpoint).map_err(|e| {
                StoreError::Unavailable(format!("the task's checkpoint can't be read: {e}"))
            })?;
            Some((task, stored.checkpoint_seq))
        }
        _ => None,
    };
    let newest = upto.clamp(1, stored.last_seq.max(1));
    loop {
        let at = task.as_ref().map_or(0, |(_, seq)| *seq);
        if let Some(done) = task.take_if(|_| at >= newest) {
            return Ok(done);
        }
        let entries = shared.store.entries(owner, &stored.id, at, PAGE).await?;
        let contiguous = entries.first().is_some_and(|entry| entry.seq == at + 1);
        if !contiguous {
            // Pruned: the checkpoint is the oldest state there is.
            return match (&stored.checkpoint, upto < stored.checkpoint_seq) {
                (Some(_), true) => Box::pin(fold(shared, owner, stored, u64::MAX)).await,
                _ => Err(StoreError::Unavailable("the task's log has a gap".into())),
            };
        }
        for entry in entries {
            if entry.seq > newest {
                break;
            }
            let event = decode(&entry.body)?;
            task = match (task, event) {
                (None, LogEvent::Created(created)) => Some((created, entry.seq)),
                (Some((mut task, _)), event) => {
                    task.apply(&event).map_err(|fault| {
                        StoreError::Unavailable(format!("the task's log can't be folded: {fault}"))
                    })?;
                    Some((task, entry.seq))
                }
                (None, _) => {
                    return Err(StoreError::Unavailable(
                        "the task's log has no beginning".into(),
                    ));
                }
            };
        }
    }
}
