//! The limit: a bare axum server with the shape of an A2A 1.0 JSON-RPC server and nothing behind
//! it. It reads a request into types, makes ids and times, writes the answer, and keeps nothing;
//! whatever a real server takes beyond this is what it does for its keep.
//!
//! Streams go through `axum::response::sse`. A fan-out is one broadcast channel for each running
//! task, whose results are encoded once; each follower's request id is put around them.

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

/// Events that a subscriber may be behind: more than any fan-out that is asked for, since whoever is
/// further behind gets no more.
const BACKLOG: usize = 16 << 10;
/// What a read is answered with: the text that `a2aload get` has sent.
const TEXT: &str = "The quick brown fox jumps over the lazy dog, sixty-four bytes ok.";

/// The result that an event carries, encoded, whoever follows.
type Encoded = Arc<RawValue>;

/// The fan-outs under way, by task.
#[derive(Debug, Clone, Default)]
struct Fans(Arc<Mutex<HashMap<String, broadcast::Sender<Encoded>>>>);

impl Fans {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Encoded>>> {
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
            let task = Task::new(Status::completed()).with(artifact(format!("echo: {TEXT}")));
            result(request.id, &task.asked(Message::user(TEXT)).named(id))
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
    let first = encoded(&Payload::Task(task))?;
    let (fan, _) = broadcast::channel::<Encoded>(if followed { BACKLOG } else { 1 });
    if followed {
        fans.lock().insert(task_id.clone(), fan.clone());
    }
    let results = async_stream::stream! {
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
            let Ok(result) = encoded(&update) else { return };
            if followed {
                // To have no follower is fine.
                let _ = fan.send(result.clone());
            }
            yield result;
        }
        let update = Payload::status(&task_id, &context_id, Status::completed());
        let Ok(result) = encoded(&update) else { return };
        if followed {
            let _ = fan.send(result.clone());
            fans.lock().remove(&task_id);
        }
        yield result;
    };
    Ok(sse(id, results))
}

fn subscribe(fans: &Fans, id: Option<&RawValue>, task_id: String) -> Result<Response, RpcError> {
    let fan = fans.lock().get(&task_id).map(broadcast::Sender::subscribe);
    let mut fan = fan.ok_or(RpcError::NO_TASK)?;
    let task = Task::new(Status::working()).named(task_id);
    let first = encoded(&Payload::Task(task))?;
    let results = async_stream::stream! {
        yield first;
        while let Ok(result) = fan.recv().await {
            yield result;
        }
    };
    Ok(sse(id.map(ToOwned::to_owned), results))
}

fn sse(
    id: Option<Box<RawValue>>,
    results: impl Stream<Item = Encoded> + Send + 'static,
) -> Response {
    let id = id.map_or_else(|| "null".to_owned(), |id| id.get().to_owned());
    let events = results.map(move |result| {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.get());
        Ok::<_, Infallible>(Event::default().data(frame))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn encoded(update: &Payload<'_>) -> Result<Encoded, RpcError> {
    let value = serde_json::value::to_raw_value(update);
    value.map(Into::into).map_err(|_| RpcError::INTERNAL)
}

fn result(id: Option<&RawValue>, result: &impl serde::Serialize) -> Result<Response, RpcError> {
    let body = serde_json::to_vec(&model::Reply::new(id, result));
    body.map(json).map_err(|_| RpcError::INTERNAL)
}

fn json(body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}
