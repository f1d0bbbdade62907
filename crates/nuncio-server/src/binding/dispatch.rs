//! From a request in some version to the engine and back: the one place where what the engine
//! answers gets the error that a version has for it, and where what is off is refused.

use crate::{
    engine::{EngineError, Follower, Idempotency},
    server::Inner,
    transport::Transport,
};
use nuncio_core::{
    ErrorKind, Operation, Principal, ProtocolError, ProtocolVersion, Request, Response,
    SendMessage, TaskView,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::OwnedSemaphorePermit;

/// What a call is made under, besides its parameters.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) principal: Principal,
    pub(crate) version: ProtocolVersion,
    /// The client's own name for a send.
    pub(crate) idempotency_key: Option<String>,
    /// The last event that a reconnecting client has.
    pub(crate) last_event: Option<u64>,
}

/// An answer: whole, or a stream.
pub(crate) enum Answer {
    Whole(Box<Response>),
    Stream {
        follower: Box<Follower>,
        view: TaskView,
        /// Its place among the streams that may be open.
        room: OwnedSemaphorePermit,
    },
}

/// An error, and when to come back where it is one of overload.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) error: ProtocolError,
    pub(crate) retry_after: Option<Duration>,
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self {
            error,
            retry_after: None,
        }
    }
}

impl From<ErrorKind> for Refusal {
    fn from(kind: ErrorKind) -> Self {
        ProtocolError::new(kind).into()
    }
}

/// Refuses what is off, before its parameters are looked at: with the same error whatever they
/// are.
pub(crate) fn check_enabled(
    inner: &Inner,
    version: ProtocolVersion,
    operation: Operation,
) -> Result<(), Refusal> {
    let evented = inner.transport() == Transport::Evented;
    let kind = match operation {
        Operation::SendStreamingMessage | Operation::SubscribeToTask if !inner.streaming => {
            ErrorKind::UnsupportedOperation
        }
        Operation::SubscribeToTask if !evented => ErrorKind::UnsupportedOperation,
        Operation::CreatePushConfig
        | Operation::GetPushConfig
        | Operation::ListPushConfigs
        | Operation::DeletePushConfig => ErrorKind::PushNotificationNotSupported,
        // 1.0 tells a card that is not declared (§3.1.11) from one that is missing; 0.3 does not.
        Operation::GetExtendedAgentCard => match version {
            ProtocolVersion::V0_3 if evented => ErrorKind::ExtendedAgentCardNotConfigured,
            _ => ErrorKind::UnsupportedOperation,
        },
        _ => return Ok(()),
    };
    Err(kind.into())
}

/// Carries a request out.
pub(crate) async fn dispatch(
    inner: &Inner,
    call: Call,
    request: Request,
) -> Result<Answer, Refusal> {
    let version = call.version;
    run(inner, call, request)
        .await
        .map_err(|error| refusal(error, version))
}

async fn run(inner: &Inner, call: Call, request: Request) -> Result<Answer, EngineError> {
    let engine = &inner.engine;
    let Call {
        principal,
        version,
        idempotency_key,
        last_event,
    } = call;
    let whole = |response| Ok(Answer::Whole(Box::new(response)));
    match request {
        Request::SendMessage(send) => {
            let (at_once, view) = (send.configuration.return_immediately, view_of(&send));
            check_push(&send)?;
            let key = idempotency(inner, idempotency_key, &send);
            let sent = engine.send(&principal, send, key, false).await?;
            whole(engine.answer(sent, at_once, view).await?)
        }
        Request::SendStreamingMessage(send) => {
            let view = view_of(&send);
            check_push(&send)?;
            let key = idempotency(inner, idempotency_key, &send);
            // Before the message is taken in: who is told to come back later does so.
            let room = room_for_stream(inner)?;
            let sent = engine.send(&principal, send, key, true).await?;
            Ok(Answer::Stream {
                follower: Box::new(engine.stream(sent)),
                view,
                room,
            })
        }
        Request::SubscribeToTask(subscribe) => {
            let subscription = engine
                .subscribe(&principal, &subscribe.id, last_event)
                .await?;
            if subscription.ended() && last_event.is_none() && version == ProtocolVersion::V1_0 {
                let text = "This operation is not supported: the task has ended; get it instead, \
                            or send Last-Event-ID for the events that were missed";
                return Err(
                    ProtocolError::with_message(ErrorKind::UnsupportedOperation, text).into(),
                );
            }
            let room = room_for_stream(inner)?;
            let follower = Box::new(subscription.follow().await?);
            Ok(Answer::Stream {
                follower,
                view: TaskView::WHOLE,
                room,
            })
        }
        Request::GetTask(get) => whole(engine.get(&principal, get).await?),
        Request::ListTasks(list) => whole(engine.list(&principal, list).await?),
        Request::CancelTask(cancel) => whole(engine.cancel(&principal, &cancel).await?),
        // Off, and refused by `check_enabled` before it comes here.
        Request::CreatePushConfig(_)
        | Request::GetPushConfig(_)
        | Request::ListPushConfigs(_)
        | Request::DeletePushConfig(_) => {
            Err(ProtocolError::new(ErrorKind::PushNotificationNotSupported).into())
        }
        Request::GetExtendedAgentCard => {
            Err(ProtocolError::new(ErrorKind::UnsupportedOperation).into())
        }
    }
}

fn room_for_stream(inner: &Inner) -> Result<OwnedSemaphorePermit, EngineError> {
    let room = Arc::clone(&inner.streams).try_acquire_owned();
    room.map_err(|_| EngineError::Busy("The server has as many streams open as it may"))
}

fn view_of(send: &SendMessage) -> TaskView {
    TaskView {
        history: send.configuration.history_length,
        artifacts: true,
    }
}

/// A push config that comes with a message is refused before anything runs.
fn check_push(send: &SendMessage) -> Result<(), EngineError> {
    match send.configuration.push_config {
        Some(_) => Err(ProtocolError::new(ErrorKind::PushNotificationNotSupported).into()),
        None => Ok(()),
    }
}

fn idempotency(inner: &Inner, key: Option<String>, send: &SendMessage) -> Option<Idempotency> {
    match key {
        Some(key) => Some(Idempotency {
            key: format!("key:{key}"),
            explicit: true,
        }),
        None if inner.idempotent_message_ids => {
            let key = format!("message:{}", send.message.id);
            Some(Idempotency {
                key,
                explicit: false,
            })
        }
        None => None,
    }
}

/// What a version answers for an error of the engine's.
pub(crate) fn refusal(error: EngineError, version: ProtocolVersion) -> Refusal {
    const OVERLOAD_PAUSE: Duration = Duration::from_secs(1);
    match error {
        EngineError::NotFound => ProtocolError::task_not_found().into(),
        EngineError::NotCancelable => ErrorKind::TaskNotCancelable.into(),
        EngineError::TaskEnded => match version {
            ProtocolVersion::V0_3 => ProtocolError::invalid_field(
                "message.taskId",
                "the task has ended and takes no more messages: leave it out to begin a new task",
            ),
            ProtocolVersion::V1_0 => ProtocolError::with_message(
                ErrorKind::UnsupportedOperation,
                "This operation is not supported: the task has ended and takes no more messages; \
                 leave taskId out to begin a new task",
            ),
        }
        .into(),
        EngineError::ContentType(text) => {
            ProtocolError::with_message(ErrorKind::ContentTypeNotSupported, text).into()
        }
        EngineError::Agent(fault) => ProtocolError::with_message(
            ErrorKind::InvalidAgentResponse,
            format!("Invalid agent response: {fault}"),
        )
        .into(),
        EngineError::Request(error) => error.into(),
        EngineError::Busy(text) => Refusal {
            error: ProtocolError::with_message(
                ErrorKind::Internal,
                format!("{text}: try again later"),
            ),
            retry_after: Some(OVERLOAD_PAUSE),
        },
        EngineError::Store(error) => {
            tracing::error!(%error, "the store failed");
            ErrorKind::Internal.into()
        }
    }
}
