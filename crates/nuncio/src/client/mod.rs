//! A client of A2A servers over JSON-RPC, in versions 0.3 and 1.0.
//!
//! ```text
//! what the user typed ─ discover ─► card ─ choose ─► Target ─► Client ─┬─ call ─► an answer
//!                        (or --endpoint URL)                           └─ open ─► EventStream
//! ```
//!
//! What holds here: every answer and every event is read up to a limit; nothing follows a
//! redirect; credentials go to the server that the user named and nowhere else (see
//! [`credentials`]); every answer is kept as it came beside what was read out of it, so that
//! `--json` shows the server's words and not this program's.

mod connect;
mod credentials;
pub(crate) mod discover;
mod error;
mod http;
mod sse;
mod stream;
pub(crate) mod text;

pub(crate) use connect::{ConnectArgs, Protocol};
pub(crate) use discover::Target;
pub(crate) use error::ClientError;
pub(crate) use http::{media_type, read as read_body};
pub(crate) use stream::{EventStream, Streamed, first_event};

use ::http::{HeaderValue, Request as HttpRequest, Response as HttpResponse, header};
use credentials::{Credentials, KeyPlace};
use http::Http;
use http_body_util::Full;
use hyper::body::Incoming;
use nuncio_core::{
    GetTask, ProtocolVersion, Request, Response, TaskId,
    wire::{self, jsonrpc},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// The largest answer, and the largest event, that is read.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// A client of one interface, in one version.
#[derive(Debug)]
pub(crate) struct Client {
    http: Arc<Http>,
    target: Target,
    credentials: Credentials,
    place: KeyPlace,
    streams: Option<bool>,
    next_id: AtomicI64,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What it says.
    pub(crate) response: Response,
    /// The result as it came, in one line.
    pub(crate) raw: String,
}

impl Client {
    /// The version it speaks.
    pub(crate) fn version(&self) -> ProtocolVersion {
        self.target.version
    }

    /// What the card says about streams.
    pub(crate) fn streams(&self) -> Option<bool> {
        self.streams
    }

    /// Calls a unary operation.
    ///
    /// # Errors
    /// Also where the server answered an error: [`ClientError::Remote`].
    pub(crate) async fn call(&self, request: &Request) -> Result<Answer, ClientError> {
        let operation = request.operation();
        let name = operation.rpc_name(self.version());
        let (id, response) = self.post(name, request, None).await?;
        let (result, raw) = self.read(id, response).await?;
        let response = wire::decode_response(self.version(), operation, result)
            .map_err(|error| self.unreadable(&error))?;
        Ok(Answer { response, raw })
    }

    /// Opens a stream. With the id of an event, a server that can goes on after it.
    ///
    /// # Errors
    /// Also where the server answered an error before any event.
    pub(crate) async fn open(
        &self,
        request: &Request,
        last_event: Option<&str>,
    ) -> Result<EventStream, ClientError> {
        let name = request.operation().rpc_name(self.version());
        let (id, response) = self.post(name, request, last_event).await?;
        let address = self.target.url.to_string();
        if response.status().is_success() && media_type(&response) == "text/event-stream" {
            return Ok(EventStream::new(
                response.into_body(),
                self.version(),
                id,
                address,
            ));
        }
        // No stream: an error, or all there is to say in one answer.
        let (result, raw) = self.read(id, response).await?;
        let event =
            wire::decode_event(self.version(), result).map_err(|error| self.unreadable(&error))?;
        Ok(EventStream::of(
            Streamed {
                event,
                raw,
                id: None,
            },
            self.version(),
            id,
            address,
        ))
    }

    /// A task as it stands.
    ///
    /// # Errors
    /// See [`call`](Self::call).
    pub(crate) async fn task(
        &self,
        id: &TaskId,
        history_length: Option<u32>,
    ) -> Result<(nuncio_core::Task, String), ClientError> {
        let request = Request::GetTask(GetTask {
            id: id.clone(),
            history_length,
        });
        let answer = self.call(&request).await?;
        match answer.response {
            Response::Task(task) => Ok((task, answer.raw)),
            _ => Err(self.not_a2a("it did not answer with a task")),
        }
    }

    /// Posts a request under a name of one's choice and gives the answer as it comes, whatever
    /// its status, with the id that the reply should carry.
    ///
    /// # Errors
    /// Where there is no answer.
    pub(crate) async fn post(
        &self,
        method: &str,
        request: &Request,
        last_event: Option<&str>,
    ) -> Result<(i64, HttpResponse<Incoming>), ClientError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#).into_bytes();
        body.extend(self.params(request));
        body.push(b'}');
        let mut post = HttpRequest::post(self.target.url.clone())
            .body(Full::from(body))
            .map_err(|error| ClientError::Usage(error.to_string()))?;
        let version = HeaderValue::from_static(self.version().as_str());
        let headers = post.headers_mut();
        headers.insert(ProtocolVersion::HEADER, version);
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accept);
        if let Some(Ok(last)) = last_event.map(HeaderValue::from_str) {
            headers.insert("last-event-id", last);
        }
        self.credentials.apply(&self.place, headers);
        Ok((id, self.http.send(post).await?))
    }

    /// A request's parameters, with the tenant that the card names.
    fn params(&self, request: &Request) -> Vec<u8> {
        let params = wire::encode_request(self.version(), request);
        let Some(tenant) = &self.target.tenant else {
            return params;
        };
        let mut all = format!(r#"{{"tenant":{}"#, Value::from(tenant.as_str())).into_bytes();
        let members = params.get(1..).unwrap_or(b"}");
        if members != b"}" {
            all.push(b',');
        }
        all.extend_from_slice(members);
        all
    }

    /// Reads a reply to its result.
    async fn read(
        &self,
        id: i64,
        response: HttpResponse<Incoming>,
    ) -> Result<(Value, String), ClientError> {
        let refused = discover::check(&response, &self.target.url, &self.credentials).err();
        if let Some(error @ ClientError::Unauthorized { .. }) = refused {
            return Err(error);
        }
        let body = read_body(response.into_body(), MAX_ANSWER_BYTES).await?;
        match (refused, read_reply(&self.target.url.to_string(), id, &body)) {
            // Some servers give the call's error a status of HTTP's too.
            (_, Err(error @ ClientError::Remote(_))) | (None, Err(error)) => Err(error),
            (Some(refused), _) => Err(refused),
            (None, Ok(reply)) => Ok(reply),
        }
    }

    fn unreadable(&self, error: &wire::DecodeError) -> ClientError {
        ClientError::unreadable(&self.target.url, error)
    }

    fn not_a2a(&self, reason: &str) -> ClientError {
        ClientError::NotA2a {
            address: self.target.url.to_string(),
            reason: reason.to_owned(),
        }
    }
}

/// Reads a reply to its result, as JSON and as it came.
fn read_reply(address: &str, id: i64, body: &[u8]) -> Result<(Value, String), ClientError> {
    #[derive(Deserialize)]
    struct AsItCame<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }

    let not_a2a = |reason: String| ClientError::NotA2a {
        address: address.to_owned(),
        reason,
    };
    let reply: Value = serde_json::from_slice(body)
        .map_err(|error| not_a2a(format!("the answer is no JSON: {error}")))?;
    let named = reply.get("id").cloned();
    let result = jsonrpc::decode_reply(reply)
        .map_err(|error| ClientError::unreadable(&address, &error))??;
    if named != Some(Value::from(id)) {
        let named = named.unwrap_or_default();
        return Err(not_a2a(format!(
            "it answered request {named} where {id} was asked"
        )));
    }
    let raw: Option<AsItCame<'_>> = serde_json::from_slice(body).ok();
    let raw = raw
        .and_then(|reply| reply.result)
        .map_or("null", RawValue::get);
    // Strings in JSON hold no raw line break: what is replaced is layout.
    Ok((result, raw.replace(['\n', '\r'], " ")))
}

/// The operation's answer within a time.
///
/// # Errors
/// [`ClientError::TimedOut`], and what the operation gives.
pub(crate) async fn within<T>(
    time: Duration,
    operation: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    tokio::time::timeout(time, operation)
        .await
        .unwrap_or(Err(ClientError::TimedOut(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(body: &str) -> Result<(Value, String), ClientError> {
        read_reply("http://a", 7, body.as_bytes())
    }

    #[test]
    fn a_result_is_kept_as_it_came() {
        let (value, raw) =
            reply("{\"id\":7,\"jsonrpc\":\"2.0\",\"result\":{\"b\":1,\n \"a\":\"\\n\"}}").unwrap();
        assert_eq!(value, serde_json::json!({"a": "\n", "b": 1}));
        assert_eq!(raw, "{\"b\":1,  \"a\":\"\\n\"}");
        assert_eq!(reply(r#"{"id":7,"result":null}"#).unwrap().1, "null");
    }

    #[test]
    fn errors_and_nonsense_are_told_apart() {
        let error = reply(r#"{"id":null,"error":{"code":-32001,"message":"Task not found"}}"#);
        assert!(matches!(error, Err(ClientError::Remote(e)) if e.code == -32001));
        for nonsense in [
            "<html>",
            "[]",
            "{}",
            r#"{"id":8,"result":1}"#,
            r#"{"result":1}"#,
        ] {
            let error = reply(nonsense).unwrap_err();
            assert!(
                matches!(error, ClientError::NotA2a { .. }),
                "{nonsense}: {error}"
            );
        }
    }
}
