//! Sending: a message becomes a turn, and the turn's answer goes back.

use super::{
    Engine, EngineError, Follower,
    fold::as_of,
    follow::Until,
    live::{Birth, Live, Standing},
    run,
};
use crate::{
    modes,
    turn::{TurnRequest, new_uuid},
};
use nuncio_core::{
    ContextId, Event, Message, MessageId, Owner, Principal, ProtocolError, ProtocolVersion,
    Response, Role, SendMessage, Task, TaskId, TaskView, Timestamp, wire,
};
use nuncio_store::{IdempotencyKey, IdempotencyRecord, StoreError};
use sha2::{Digest, Sha256};
use std::sync::Arc;

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
    from: From,
}

/// Where a stream of a message's answer begins.
#[derive(Debug)]
enum From {
    /// With the task's first entry, which is the message.
    Start,
    /// With the task as of the message.
    Snapshot(Box<(Task, u64)>),
    /// With the task as it stands: the message was sent earlier.
    Now,
}

impl Engine {
    /// Takes a message in: the turn that answers it runs, or the running turn has it. Whether
    /// its answer is going to be followed is said beforehand, for a stream begins with the task as
    /// of the message.
    pub(crate) async fn send(
        &self,
        principal: &Principal,
        send: SendMessage,
        idempotency: Option<Idempotency>,
        follow: bool,
    ) -> Result<Sent, EngineError> {
        self.check_message(&send)?;
        let is_stored_first = idempotency.is_some()
            || send.configuration.return_immediately
            || send.message.task_id.is_some();
        if !is_stored_first {
            return self.take_in(principal, send, None, follow).await;
        }
        // Apart from the caller: one who goes away between the commit of the message and the
        // start of its turn must not leave a message behind that nobody answers.
        let (engine, principal) = (self.clone(), principal.clone());
        let taken = tokio::spawn(async move {
            let taken = engine.take_in(&principal, send, idempotency, follow);
            taken.await
        });
        taken.await.unwrap_or_else(|error| {
            let text = format!("the message could not be taken in: {error}");
            Err(StoreError::Unavailable(text).into())
        })
    }

    async fn take_in(
        &self,
        principal: &Principal,
        send: SendMessage,
        idempotency: Option<Idempotency>,
        follow: bool,
    ) -> Result<Sent, EngineError> {
        let owner = principal.owner();
        let mut key = None;
        let mut _alone = None;
        if let Some(Idempotency {
            key: name,
            explicit,
        }) = idempotency
        {
            // A retry that comes while the first send is being stored must find it.
            _alone = Some(self.shared.sending(&owner, &name).await);
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
        match request.message.task_id.clone() {
            Some(id) => self.continue_task(owner, &id, request, key, follow).await,
            None => {
                let at_once = send.configuration.return_immediately;
                self.new_task(owner, request, key, at_once).await
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

    async fn new_task(
        &self,
        owner: Owner,
        mut request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
        at_once: bool,
    ) -> Result<Sent, EngineError> {
        let permit = self.turn_permit()?;
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
                Birth::Stored | Birth::Reply(_) => {}
                Birth::Duplicate(record) => {
                    let live = self.shared.open(&owner, &record.task).await?;
                    return Ok(Sent {
                        live,
                        message: record.seq,
                        from: From::Now,
                    });
                }
                Birth::Lost(error) => return Err(error.into()),
            }
        }
        run::spawn(&live, number, request, permit);
        Ok(Sent {
            live,
            message: 1,
            from: From::Start,
        })
    }

    async fn continue_task(
        &self,
        owner: Owner,
        id: &TaskId,
        request: TurnRequest,
        idempotency: Option<IdempotencyKey>,
        follow: bool,
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
        let permit = self.turn_permit().ok();
        let (message, start) = live.add_message(request, idempotency, permit.is_some())?;
        live.committed(message).await?;
        // Before the turn goes on from there.
        let as_of = if follow {
            Some(as_of(&live, message).await)
        } else {
            None
        };
        if let (Some((number, request)), Some(permit)) = (start, permit) {
            run::spawn(&live, number, request, permit);
        }
        let from = match as_of.transpose()? {
            Some(snapshot) => From::Snapshot(Box::new(snapshot)),
            None => From::Now,
        };
        Ok(Sent {
            live,
            message,
            from,
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
            Birth::Stored | Birth::Duplicate(_) => {}
            Birth::Reply(reply) => return Ok(Response::SentMessage((*reply).clone())),
            Birth::Lost(error) => return Err(error.into()),
        }
        Ok(Response::SentTask(live.task().view(view)))
    }

    /// Follows a message's answer.
    pub(crate) fn stream(&self, sent: Sent) -> Follower {
        let Sent {
            live,
            message,
            from,
        } = sent;
        let until = Until::Answered(message);
        match from {
            From::Start => Follower::from_start(live, until),
            From::Snapshot(snapshot) => Follower::from_snapshot(live, *snapshot, until),
            From::Now => Follower::from_now(live, until),
        }
    }

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
            from: From::Now,
        }))
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
