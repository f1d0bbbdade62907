//! The engine: the operations on tasks, free of any binding and any version.
//!
//! It takes who is calling as a verified [`Principal`] and never as part of a request. What it
//! answers is a model value, a follower of a log, or an [`EngineError`].

mod follow;
mod live;
mod run;
mod shared;

pub(crate) use follow::{Follower, Step};
pub(crate) use live::{Live, Logged, Shown};

use crate::{
    agent::Agent,
    limits::Limits,
    modes,
    turn::{TurnRequest, new_uuid},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use follow::Until;
use live::{Birth, Standing};
use nuncio_core::{
    AgentCard, CancelTask, ContextId, Event, Fault, GetTask, ListTasks, Message, MessageId,
    Metadata, Owner, Principal, ProtocolError, ProtocolVersion, Response, Role, SendMessage, Task,
    TaskId, TaskPage, TaskState, TaskView, Timestamp, wire,
};
use nuncio_store::{
    IdempotencyKey, IdempotencyRecord, ListCursor, ListQuery, Retention, Store, StoreError,
    StoredTask,
};
use sha2::{Digest, Sha256};
use shared::Shared;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

/// Tasks on a page where the request does not say.
const DEFAULT_PAGE_SIZE: u32 = 50;

/// What goes wrong in an operation, before any version spells it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("no such task")]
    NotFound,
    #[error("the task has ended")]
    NotCancelable,
    #[error("the task has ended and takes no more messages")]
    TaskEnded,
    #[error("a media type that is not supported")]
    ContentType(String),
    #[error(transparent)]
    Agent(Fault),
    #[error(transparent)]
    Request(ProtocolError),
    #[error("too many turns are running")]
    Busy,
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound,
            other => Self::Store(other),
        }
    }
}

impl From<ProtocolError> for EngineError {
    fn from(error: ProtocolError) -> Self {
        Self::Request(error)
    }
}

/// Under which name a send can be repeated without running anything twice.
#[derive(Debug, Clone)]
pub(crate) struct Idempotency {
    pub(crate) key: String,
    /// Whether the client named the key for this purpose, so that another message under it is
    /// its mistake; otherwise another message is just another send.
    pub(crate) explicit: bool,
}

/// A message on its way: where to wait for its answer.
#[derive(Debug)]
pub(crate) struct Sent {
    live: Arc<Live>,
    /// The entry in which the message stands.
    message: u64,
    new: bool,
}

/// A task that somebody asks to follow.
#[derive(Debug)]
pub(crate) struct Subscription {
    live: Arc<Live>,
    stored: Option<(StoredTask, u64)>,
    ended: bool,
}

/// The operations on tasks.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    card: Arc<AgentCard>,
}

impl Engine {
    /// An engine for an agent that takes and makes what `card` says.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        agent: Arc<dyn Agent>,
        card: Arc<AgentCard>,
        limits: Limits,
    ) -> Self {
        Self {
            shared: Shared::new(store, agent, limits),
            card,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    // ------------------------------------------------------------------ send

    /// Takes a message in: the turn that answers it runs, or the running turn has it.
    pub(crate) async fn send(
        &self,
        principal: &Principal,
        send: SendMessage,
        idempotency: Option<Idempotency>,
    ) -> Result<Sent, EngineError> {
        self.check_message(&send)?;
        let owner = principal.owner();
        let mut key = None;
        let mut _alone = None;
        if let Some(Idempotency {
            key: name,
            explicit,
        }) = idempotency
        {
            // A retry that comes while the first send is being stored must find it.
            _alone = Some(self.shared.alone((&owner, &name)).await);
            let asked = self.idempotency_key(name, &send);
            match self
                .shared
                .store
                .idempotent(&owner, &asked.key, asked.not_before)
                .await?
            {
                None => key = Some(asked),
                Some(record) => {
                    if let Some(sent) = self.repeat(&owner, &record, &asked, explicit).await? {
                        return Ok(sent);
                    }
                }
            }
        }
        let request = TurnRequest {
            message: send.message,
            metadata: send.metadata,
            accepted_output_modes: send.configuration.accepted_output_modes,
            principal: principal.clone(),
            resumed: false,
        };
        let permit = self.turn_permit()?;
        match request.message.task_id.clone() {
            Some(id) => self.continue_task(owner, &id, request, key, permit).await,
            None => {
                let at_once = send.configuration.return_immediately;
                self.new_task(owner, request, key, at_once, permit).await
            }
        }
    }

    fn check_message(&self, send: &SendMessage) -> Result<(), EngineError> {
        let limit = self.limits().parts;
        if send.message.parts.len() > limit {
            let error = ProtocolError::invalid_field(
                "message.parts",
                format!("must have at most {limit} parts"),
            );
            return Err(error.into());
        }
        modes::check_input(&self.card, &send.message)?;
        modes::check_output(&self.card, &send.configuration.accepted_output_modes)
    }

    fn turn_permit(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        match Arc::clone(&self.shared.turns).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => Err(EngineError::Busy),
        }
    }

    async fn new_task(
        &self,
        owner: Owner,
        mut request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
        at_once: bool,
        permit: OwnedSemaphorePermit,
    ) -> Result<Sent, EngineError> {
        let id = TaskId::new(new_uuid()).expect("a UUID is a valid id");
        let context_id = match request.message.context_id.take() {
            Some(context_id) => context_id,
            None => ContextId::new(new_uuid()).expect("a UUID is a valid id"),
        };
        request.message.task_id = Some(id.clone());
        request.message.context_id = Some(context_id.clone());
        let task = Task::submitted(id, context_id, request.message.clone(), Timestamp::now());
        let must_exist = at_once || idempotency.is_some();
        let live = Live::unborn(Arc::clone(&self.shared), owner.clone(), task, idempotency);
        let number = live.begin_turn();
        if must_exist {
            // The caller is about to be told of the task, or a retry is to find it: it must be
            // durable before the agent does anything.
            live.give_birth();
            match live.born().await {
                Birth::Stored | Birth::Reply => {}
                Birth::Duplicate(record) => {
                    let live = self.shared.open(&owner, &record.task).await?;
                    return Ok(Sent {
                        live,
                        message: record.seq,
                        new: false,
                    });
                }
                Birth::Lost(error) => return Err(error.into()),
            }
        }
        run::spawn(Arc::clone(&live), number, request, permit);
        Ok(Sent {
            live,
            message: 1,
            new: true,
        })
    }

    async fn continue_task(
        &self,
        owner: Owner,
        id: &TaskId,
        request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Sent, EngineError> {
        let live = self.shared.open(&owner, id).await?;
        if request
            .message
            .context_id
            .as_ref()
            .is_some_and(|c| c != live.context_id())
        {
            let error = ProtocolError::invalid_field(
                "message.contextId",
                "must be the context of the task, or left out",
            );
            return Err(error.into());
        }
        let (message, start) = match live.add_message(request, idempotency) {
            Ok(added) => added,
            Err(Fault::AfterEnd(_)) => return Err(EngineError::TaskEnded),
            Err(fault) => return Err(EngineError::Agent(fault)),
        };
        live.committed(message).await?;
        if let Some((number, request)) = start {
            run::spawn(Arc::clone(&live), number, request, permit);
        }
        Ok(Sent {
            live,
            message,
            new: false,
        })
    }

    /// Waits for a message's answer, as long as the limits allow; then answers with the task as
    /// it stands.
    pub(crate) async fn answer(
        &self,
        sent: Sent,
        at_once: bool,
        view: TaskView,
    ) -> Result<Response, EngineError> {
        let Sent { live, message, .. } = sent;
        if !at_once {
            let answer = live.answered(message);
            match tokio::time::timeout(self.limits().send_wait, answer).await {
                Ok(Standing::Task) | Err(_) => {}
                Ok(Standing::Reply(reply)) => return Ok(Response::SentMessage((*reply).clone())),
                Ok(Standing::Fault(fault)) => return Err(EngineError::Agent(fault)),
                Ok(Standing::Lost(error)) => return Err(error.into()),
            }
        }
        live.give_birth();
        match live.born().await {
            Birth::Stored | Birth::Duplicate(_) | Birth::Reply => {}
            Birth::Lost(error) => return Err(error.into()),
        }
        Ok(Response::SentTask(live.task().view(view)))
    }

    /// Follows a message's answer.
    pub(crate) fn stream(&self, sent: Sent) -> Follower {
        let Sent { live, message, new } = sent;
        let until = Until::Answered(message);
        if new {
            Follower::from_start(live, until)
        } else {
            let (task, seq) = live.snapshot();
            Follower::from_snapshot(live, (task, seq), seq, until)
        }
    }

    // ------------------------------------------------------------------ idempotency

    fn idempotency_key(&self, key: String, send: &SendMessage) -> IdempotencyKey {
        let window = i64::try_from(self.limits().idempotency_window.as_millis());
        let not_before = Timestamp::now().plus_millis(-window.unwrap_or(i64::MAX));
        IdempotencyKey {
            key,
            digest: digest(&send.message),
            not_before,
        }
    }

    /// The send that a key stands for, where this is a retry of it.
    async fn repeat(
        &self,
        owner: &Owner,
        record: &IdempotencyRecord,
        key: &IdempotencyKey,
        explicit: bool,
    ) -> Result<Option<Sent>, EngineError> {
        if record.digest != key.digest {
            if explicit {
                let error = ProtocolError::invalid_field(
                    "message",
                    "differs from what was sent under this Idempotency-Key before: use a new key",
                );
                return Err(error.into());
            }
            return Ok(None);
        }
        let stored = match self.shared.store.load(owner, &record.task).await {
            Ok(stored) => stored,
            Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if stored.last_message_seq > record.seq {
            // The conversation has moved on: the same words again are a new message.
            return Ok(None);
        }
        let live = self.shared.open(owner, &record.task).await?;
        Ok(Some(Sent {
            live,
            message: record.seq,
            new: false,
        }))
    }

    // ------------------------------------------------------------------ look, list, cancel

    /// A task, as committed.
    pub(crate) async fn get(
        &self,
        principal: &Principal,
        get: GetTask,
    ) -> Result<Response, EngineError> {
        let view = TaskView {
            history: get.history_length,
            artifacts: true,
        };
        let task = self.committed_task(&principal.owner(), &get.id).await?;
        Ok(Response::Task(task.view(view)))
    }

    async fn committed_task(&self, owner: &Owner, id: &TaskId) -> Result<Task, EngineError> {
        if let Some(live) = self.shared.in_use(owner, id) {
            return Ok(live.task());
        }
        let stored = self.shared.store.load(owner, id).await?;
        Ok(live::fold(&self.shared, owner, &stored, u64::MAX).await?.0)
    }

    /// A page of the caller's tasks.
    pub(crate) async fn list(
        &self,
        principal: &Principal,
        list: ListTasks,
    ) -> Result<Response, EngineError> {
        let owner = principal.owner();
        let page_size = list.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
        let query = ListQuery {
            context_id: list.context_id,
            state: list.state,
            status_after: list.status_after,
            after: list.page_token.as_deref().map(read_token).transpose()?,
            limit: page_size,
        };
        let page = self.shared.store.list(&owner, &query).await?;
        let view = TaskView {
            history: list.history_length,
            artifacts: list.include_artifacts,
        };
        let mut tasks = Vec::with_capacity(page.tasks.len());
        for stored in page.tasks {
            let task = match self.shared.in_use(&owner, &stored.id) {
                Some(live) => live.task(),
                None => match live::fold(&self.shared, &owner, &stored, u64::MAX).await {
                    Ok((task, _)) => task,
                    // Pruned since the page was read.
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            tasks.push(task.view(view));
        }
        Ok(Response::TaskPage(TaskPage {
            tasks,
            next_page_token: page.next.as_ref().map(write_token).unwrap_or_default(),
            page_size,
            total_size: page.total,
        }))
    }

    /// Cancels a task: the agent is told, and after a grace time the task is canceled whatever
    /// the agent does.
    pub(crate) async fn cancel(
        &self,
        principal: &Principal,
        cancel: &CancelTask,
    ) -> Result<Response, EngineError> {
        let live = self.shared.open(&principal.owner(), &cancel.id).await?;
        if live.has_ended() {
            return Err(EngineError::NotCancelable);
        }
        if live.request_cancel() {
            let grace = self.limits().cancel_grace;
            if tokio::time::timeout(grace, live.ended()).await.is_err() {
                live.force(TaskState::Canceled, None);
            }
        } else {
            live.force(TaskState::Canceled, None);
        }
        match live.ended().await? {
            TaskState::Canceled => Ok(Response::Task(live.task())),
            _ => Err(EngineError::NotCancelable),
        }
    }

    // ------------------------------------------------------------------ subscribe

    /// Finds a task to follow.
    pub(crate) async fn subscribe(
        &self,
        principal: &Principal,
        id: &TaskId,
        last_event: Option<u64>,
    ) -> Result<Subscription, EngineError> {
        let owner = principal.owner();
        let live = self.shared.open(&owner, id).await?;
        let stored = match last_event {
            Some(seq) => Some((self.shared.store.load(&owner, id).await?, seq)),
            None => None,
        };
        Ok(Subscription {
            ended: live.has_ended(),
            live,
            stored,
        })
    }

    // ------------------------------------------------------------------ maintenance

    /// Renews the leases of running turns.
    pub(crate) async fn heartbeat(&self) -> Result<(), StoreError> {
        self.shared
            .store
            .renew_leases(&self.shared.node, self.shared.lease_end())
            .await
    }

    /// Takes over turns that were lost with their node, a few at a time; says how many. Agents
    /// that can are made to run them again; the other tasks fail, saying why.
    pub(crate) async fn recover(&self) -> Result<usize, StoreError> {
        const STEP: usize = 64;
        let shared = &self.shared;
        for (owner, task, fence) in shared.take_left_behind() {
            if let Err(error) = self.recover_one(&owner, &task, fence).await {
                shared.leave_behind(owner, task, fence);
                return Err(error);
            }
        }
        let (now, until) = (Timestamp::now(), shared.lease_end());
        let orphans = shared
            .store
            .claim_orphans(&shared.node, now, until, STEP)
            .await?;
        let found = orphans.len();
        for orphan in orphans {
            self.recover_one(&orphan.owner, &orphan.task, orphan.fence)
                .await?;
        }
        Ok(found)
    }

    async fn recover_one(
        &self,
        owner: &Owner,
        task: &TaskId,
        fence: nuncio_store::Fence,
    ) -> Result<(), StoreError> {
        let live = match self.shared.open_with(owner, task, Some(fence)).await {
            Ok(live) => live,
            Err(StoreError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let last = live
            .task()
            .history
            .into_iter()
            .rev()
            .find(|m| m.role == Role::User);
        match (self.shared.agent.resumes(), last, self.turn_permit()) {
            (true, Some(message), Ok(permit)) => {
                tracing::info!(task = %task, "running a turn again that was lost");
                let request = TurnRequest {
                    message,
                    metadata: Metadata::new(),
                    accepted_output_modes: Vec::new(),
                    principal: Principal::of_owner(owner),
                    resumed: true,
                };
                let number = live.begin_turn();
                run::spawn(Arc::clone(&live), number, request, permit);
            }
            _ => {
                tracing::info!(task = %task, "failing a task whose turn was lost");
                live.force(
                    TaskState::Failed,
                    Some("The server stopped while this task was running. Send the message again."),
                );
                live.ended().await?;
            }
        }
        Ok(())
    }

    /// One small step of pruning; says whether there was anything to do.
    pub(crate) async fn prune(&self, policy: &Retention) -> Result<bool, StoreError> {
        const STEP: usize = 200;
        let pruned = self.shared.store.prune(policy, STEP).await?;
        Ok(pruned.tasks + pruned.logs > 0)
    }

    /// Waits until no turn is running.
    pub(crate) async fn drained(&self) {
        let all = u32::try_from(self.limits().turns).unwrap_or(u32::MAX);
        // Fails only when the semaphore is closed, which nobody does.
        let _ = self.shared.turns.acquire_many(all).await;
    }
}

impl Subscription {
    /// Whether the task had ended when it was found.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Follows the task: the snapshot first, then what was logged after the last event that the
    /// caller has, then what comes.
    ///
    /// With a last event the snapshot is the task as of that event, so that nothing is told
    /// twice. Without one it is the task as it stands; of an ended task the final status then
    /// comes once more, since a stream's readers wait for it.
    pub(crate) async fn follow(self) -> Result<Follower, EngineError> {
        let Self {
            live,
            stored,
            ended,
        } = self;
        let resumed = stored.is_some();
        let (task, seq) = match stored {
            Some((stored, seq)) if seq < stored.last_seq => {
                live::fold(live.shared(), live.owner(), &stored, seq).await?
            }
            _ => live.snapshot(),
        };
        // The status that ended a task is its newest entry, for nothing comes after it.
        let after = if ended && !resumed {
            seq.saturating_sub(1)
        } else {
            seq
        };
        Ok(Follower::from_snapshot(
            live,
            (task, seq),
            after,
            Until::Terminal,
        ))
    }
}

/// What makes two sends the same for idempotency: the parts, byte for byte as this server writes
/// them, and the task they are for.
fn digest(message: &Message) -> [u8; 32] {
    let id = MessageId::new("digest").expect("a valid id");
    let mut bare = Message::new(id, Role::User, message.parts.clone());
    bare.task_id.clone_from(&message.task_id);
    Sha256::digest(wire::encode_event(
        ProtocolVersion::V1_0,
        &Event::Message(bare),
    ))
    .into()
}

fn write_token(cursor: &ListCursor) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{}", cursor.since.as_millis(), cursor.id))
}

fn read_token(token: &str) -> Result<ListCursor, ProtocolError> {
    let read = || {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (since, id) = text.split_once(':')?;
        let since = Timestamp::from_millis(since.parse().ok()?);
        Some(ListCursor {
            since,
            id: TaskId::new(id).ok()?,
        })
    };
    read().ok_or_else(|| {
        ProtocolError::invalid_field("pageToken", "must be a nextPageToken of an earlier page")
    })
}
