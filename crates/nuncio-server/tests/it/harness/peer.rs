//! A client: one caller, one way of speaking.

use super::{
    http::{Answer, Connection, request},
    sse::Sse,
};
use nuncio_server::core::{
    CancelTask, ContextId, GetTask, ListTasks, Message, MessageId, Metadata, Operation, Part,
    ProtocolVersion, Request, Response, Role, SendConfiguration, SendMessage, SubscribeToTask,
    Task, TaskId, TaskPage, wire,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

/// How a client speaks: the version, and the spelling of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) version: ProtocolVersion,
    pascal: bool,
}

impl Dialect {
    pub(crate) const V0_3: Self = Self {
        version: ProtocolVersion::V0_3,
        pascal: false,
    };
    pub(crate) const V1_0: Self = Self {
        version: ProtocolVersion::V1_0,
        pascal: true,
    };
    pub(crate) const V0_3_PASCAL: Self = Self {
        version: ProtocolVersion::V0_3,
        pascal: true,
    };
    pub(crate) const V1_0_SLASH: Self = Self {
        version: ProtocolVersion::V1_0,
        pascal: false,
    };

    pub(crate) fn method(self, operation: Operation) -> &'static str {
        if self.pascal {
            operation.pascal_name()
        } else {
            operation.slash_name()
        }
    }

    pub(crate) fn is_v1(self) -> bool {
        self.version == ProtocolVersion::V1_0
    }
}

/// An error as the client got it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl RpcError {
    /// The first field that `data` names.
    pub(crate) fn field(&self) -> Option<&str> {
        self.data.as_array()?.iter().find_map(|detail| {
            detail
                .get("fieldViolations")?
                .get(0)?
                .get("field")?
                .as_str()
        })
    }
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) dialect: Dialect,
    headers: Vec<(String, String)>,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, dialect: Dialect) -> Self {
        let headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            (
                "A2A-Version".to_owned(),
                dialect.version.as_str().to_owned(),
            ),
        ];
        Self {
            address,
            dialect,
            headers,
        }
    }

    /// The same client with one more header.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut peer = self.clone();
        peer.headers.push((name.to_owned(), value.to_owned()));
        peer
    }

    /// The bytes of a JSON-RPC request.
    pub(crate) fn bytes(&self, body: &[u8]) -> Vec<u8> {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        request("POST", "/", &headers, body)
    }

    /// The body of a request, with an id of its own.
    pub(crate) fn body(&self, operation: Operation, params: &Value) -> Vec<u8> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let method = self.dialect.method(operation);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        body.to_string().into_bytes()
    }

    pub(crate) fn params(&self, request: &Request) -> Value {
        let params = wire::encode_request(self.dialect.version, request);
        serde_json::from_slice(&params).expect("parameters are JSON")
    }

    /// The whole bytes of a request.
    pub(crate) fn request_bytes(&self, request: &Request) -> Vec<u8> {
        self.bytes(&self.body(request.operation(), &self.params(request)))
    }

    /// Posts a body on a connection of its own.
    pub(crate) async fn post(&self, body: &[u8]) -> Answer {
        let mut connection = Connection::open(self.address).await;
        connection.write(&self.bytes(body)).await;
        connection.answer().await
    }

    /// Calls with parameters as they are.
    pub(crate) async fn call(&self, operation: Operation, params: &Value) -> Answer {
        self.post(&self.body(operation, params)).await
    }

    /// Asks, and reads the answer in this client's version.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Response, RpcError> {
        let answer = self.call(request.operation(), &self.params(request)).await;
        assert_eq!(answer.head.status, 200, "{}", answer.text());
        let reply = answer.json();
        if let Some(error) = error_of(&reply) {
            return Err(error);
        }
        let result = reply
            .get("result")
            .unwrap_or_else(|| panic!("no result: {reply}"))
            .clone();
        let response = wire::decode_response(self.dialect.version, request.operation(), result);
        Ok(response.expect("the answer can be read"))
    }

    /// Sends and gets a task.
    pub(crate) async fn send(&self, send: SendMessage) -> Result<Task, RpcError> {
        match self.ask(&Request::SendMessage(send)).await? {
            Response::SentTask(task) => Ok(task),
            other => panic!("not a task: {other:?}"),
        }
    }

    /// Sends a text and gets a task.
    pub(crate) async fn say(&self, text: &str) -> Task {
        self.send(send(text)).await.expect("the message is taken")
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Result<Task, RpcError> {
        let get = Request::GetTask(GetTask {
            id: id.clone(),
            history_length: None,
        });
        match self.ask(&get).await? {
            Response::Task(task) => Ok(task),
            other => panic!("not a task: {other:?}"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task, RpcError> {
        let cancel = CancelTask {
            id: id.clone(),
            metadata: Metadata::new(),
        };
        match self.ask(&Request::CancelTask(cancel)).await? {
            Response::Task(task) => Ok(task),
            other => panic!("not a task: {other:?}"),
        }
    }

    pub(crate) async fn list(&self, list: ListTasks) -> Result<TaskPage, RpcError> {
        match self.ask(&Request::ListTasks(list)).await? {
            Response::TaskPage(page) => Ok(page),
            other => panic!("not a page: {other:?}"),
        }
    }

    /// Opens a stream, or gets the answer that came instead of one.
    pub(crate) async fn try_stream(&self, request: &Request) -> Result<Sse, Answer> {
        let connection = Connection::open(self.address).await;
        self.stream_on(connection, request).await
    }

    pub(crate) async fn stream_on(
        &self,
        mut connection: Connection,
        request: &Request,
    ) -> Result<Sse, Answer> {
        connection.write(&self.request_bytes(request)).await;
        let head = connection
            .read_head("POST")
            .await
            .expect("the server answers");
        if head.get("content-type") == Some("text/event-stream") {
            assert_eq!(head.status, 200);
            return Ok(Sse::new(head, connection, self.dialect.version));
        }
        let mut body = Vec::new();
        while let Some(piece) = connection.read_piece().await {
            body.extend(piece);
        }
        Err(Answer { head, body })
    }

    /// Opens a stream.
    pub(crate) async fn stream(&self, request: &Request) -> Sse {
        match self.try_stream(request).await {
            Ok(stream) => stream,
            Err(answer) => panic!("no stream: {answer:?} {}", answer.text()),
        }
    }

    /// Sends a message and follows its answer.
    pub(crate) async fn stream_send(&self, send: SendMessage) -> Sse {
        self.stream(&Request::SendStreamingMessage(send)).await
    }

    /// Follows a task.
    pub(crate) async fn subscribe(&self, id: &TaskId) -> Sse {
        self.stream(&subscribe(id)).await
    }

    /// Follows a task after an event.
    pub(crate) async fn resubscribe(&self, id: &TaskId, last: u64) -> Sse {
        self.with("Last-Event-ID", &last.to_string())
            .subscribe(id)
            .await
    }

    /// Tries to follow a task and gets the error.
    pub(crate) async fn refused_stream(&self, request: &Request) -> RpcError {
        match self.try_stream(request).await {
            Ok(mut stream) => panic!("a stream came: {:?}", stream.frame().await),
            Err(answer) => {
                error_of(&answer.json()).unwrap_or_else(|| panic!("no error: {}", answer.text()))
            }
        }
    }

    /// `GET`s a path.
    pub(crate) async fn fetch(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.http("GET", path, headers).await
    }

    /// Any request without a body.
    pub(crate) async fn http(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut connection = Connection::open(self.address).await;
        connection.write(&request(method, path, headers, b"")).await;
        connection
            .try_answer(method)
            .await
            .expect("the server answers")
    }
}

pub(crate) fn error_of(reply: &Value) -> Option<RpcError> {
    let error = reply.get("error")?;
    Some(RpcError {
        code: error["code"].as_i64().expect("a code is a number"),
        message: error["message"]
            .as_str()
            .expect("a message is text")
            .to_owned(),
        data: error.get("data").cloned().unwrap_or_default(),
    })
}

/// A message of text.
pub(crate) fn text_message(text: &str) -> Message {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = format!("m-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Message::new(
        MessageId::new(id).expect("an id"),
        Role::User,
        vec![Part::text(text)],
    )
}

/// A message of text, to be sent.
pub(crate) fn send(text: &str) -> SendMessage {
    SendMessage {
        message: text_message(text),
        configuration: SendConfiguration::default(),
        metadata: Metadata::new(),
    }
}

/// Asks to follow a task.
fn subscribe(id: &TaskId) -> Request {
    Request::SubscribeToTask(SubscribeToTask { id: id.clone() })
}

/// What may be asked of a task, or about it.
pub(crate) mod asking {
    use super::*;

    pub(crate) fn to_follow(id: &TaskId) -> Request {
        subscribe(id)
    }

    /// The same message for an existing task.
    pub(crate) fn to_task(mut send: SendMessage, id: &TaskId) -> SendMessage {
        send.message.task_id = Some(id.clone());
        send
    }

    pub(crate) fn in_context(mut send: SendMessage, id: &ContextId) -> SendMessage {
        send.message.context_id = Some(id.clone());
        send
    }

    /// The same message, not to be waited for.
    pub(crate) fn at_once(mut send: SendMessage) -> SendMessage {
        send.configuration.return_immediately = true;
        send
    }
}
