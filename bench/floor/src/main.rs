//! The limit: a bare axum server with the shape of an A2A 1.0 JSON-RPC server and nothing behind
//! it. It reads a request into types, makes ids and times, writes the answer, and keeps nothing;
//! whatever a real server takes beyond this is what it does for its keep.
//!
//! Streams go through `axum::response::sse`. A fan-out is one broadcast channel for each running
//! task, whose events are encoded once.

mod model;

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::header,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::post,
};
use contract::Ask;
use futures_util::{Stream, StreamExt};
use model::{IdParams, Message, Payload, RpcError, RpcRequest, SendParams, Status, Task, artifact};
use serde_json::value::RawValue;
use tokio::sync::broadcast;

/// Events that a subscriber may be behind.
const BACKLOG: usize = 1024;

type Frame = Arc<str>;

/// The fan-outs under way, by task.
#[derive(Debug, Clone, Default)]
struct Fans(Arc<Mutex<HashMap<String, broadcast::Sender<Frame>>>>);

impl Fans {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Frame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let app = Router::new()
        .route("/", post(rpc))
        .with_state(Fans::default());
    contract::serve(contract::listen().await?, app).await
}

async fn rpc(State(fans): State<Fans>, body: Bytes) -> Response {
    let request: RpcRequest<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(_) => return json(RpcError::PARSE.answer(None)),
    };
    answer(&fans, &request).unwrap_or_else(|error| json(error.answer(request.id)))
}

fn answer(fans: &Fans, request: &RpcRequest<'_>) -> Result<Response, RpcError> {
    match &*request.method {
        "SendMessage" => {
            let SendParams { message } = request.params()?;
            let echo = artifact(format!("echo: {}", message.text()));
            let task = Task::new(Status::completed()).with(echo).asked(message);
            result(request.id, &Payload::Task(task))
        }
        "GetTask" => {
            let IdParams { id } = request.params()?;
            let task = Task::new(Status::completed()).with(artifact("echo: hello".into()));
            result(request.id, &task.asked(Message::user("hello")).named(id))
        }
        "SendStreamingMessage" => {
            let SendParams { message } = request.params()?;
            stream(fans.clone(), request.id, message)
        }
        "SubscribeToTask" => {
            let IdParams { id } = request.params()?;
            subscribe(fans, request.id, id)
        }
        _ => Err(RpcError::METHOD),
    }
}

fn stream(fans: Fans, id: Option<&RawValue>, message: Message) -> Result<Response, RpcError> {
    let text = message.text().to_owned();
    let (chunks, start, gap, followed) = match Ask::of(&text) {
        Ask::Echo(_) => (1, Duration::ZERO, Duration::ZERO, false),
        Ask::Stream { chunks } => (chunks, Duration::ZERO, Duration::ZERO, false),
        Ask::Fanout { chunks, start, gap } => (chunks, start, gap, true),
    };
    let id = id.map(ToOwned::to_owned);
    let task = Task::new(Status::working()).asked(message);
    let (task_id, context_id) = (task.id.clone(), task.context_id.clone());
    let first = frame(id.as_deref(), &Payload::Task(task))?;
    let (fan, _) = broadcast::channel::<Frame>(if followed { BACKLOG } else { 1 });
    if followed {
        fans.lock().insert(task_id.clone(), fan.clone());
    }
    let events = async_stream::stream! {
        yield first;
        if !start.is_zero() {
            tokio::time::sleep(start).await;
        }
        for i in 0..chunks {
            if i > 0 && !gap.is_zero() {
                tokio::time::sleep(gap).await;
            }
            let chunk = artifact(format!("chunk {i}"));
            let update = Payload::chunk(&task_id, &context_id, chunk, i > 0, i + 1 == chunks);
            let Ok(frame) = frame(id.as_deref(), &update) else { return };
            if followed {
                // To have no follower is fine.
                let _ = fan.send(frame.clone());
            }
            yield frame;
        }
        let update = Payload::status(&task_id, &context_id, Status::completed());
        let Ok(frame) = frame(id.as_deref(), &update) else { return };
        if followed {
            let _ = fan.send(frame.clone());
            fans.lock().remove(&task_id);
        }
        yield frame;
    };
    Ok(sse(events))
}

fn subscribe(fans: &Fans, id: Option<&RawValue>, task_id: String) -> Result<Response, RpcError> {
    let fan = fans.lock().get(&task_id).map(broadcast::Sender::subscribe);
    let mut fan = fan.ok_or(RpcError::NO_TASK)?;
    let task = Task::new(Status::working()).named(task_id);
    let first = frame(id, &Payload::Task(task))?;
    Ok(sse(async_stream::stream! {
        yield first;
        while let Ok(frame) = fan.recv().await {
            yield frame;
        }
    }))
}

fn sse(frames: impl Stream<Item = Frame> + Send + 'static) -> Response {
    let events = frames.map(|frame| Ok::<_, Infallible>(Event::default().data(&*frame)));
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn frame(id: Option<&RawValue>, update: &Payload<'_>) -> Result<Frame, RpcError> {
    let text = serde_json::to_string(&model::Reply::new(id, update));
    text.map(Into::into).map_err(|_| RpcError::INTERNAL)
}

fn result(id: Option<&RawValue>, result: &impl serde::Serialize) -> Result<Response, RpcError> {
    let body = serde_json::to_vec(&model::Reply::new(id, result));
    body.map(json).map_err(|_| RpcError::INTERNAL)
}

fn json(body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}
