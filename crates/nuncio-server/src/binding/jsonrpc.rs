//! The JSON-RPC binding: both versions, both spellings of every method, on one endpoint.
//!
//! An error of the call is HTTP 200; other statuses are for the transport: 401, 408, 413, and 503
//! where the server has no room.

use super::{
    dispatch::{self, Answer, Call, Refusal},
    sse,
};
use crate::server::Inner;
use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use nuncio_core::{
    ErrorKind, Operation, ProtocolError, ProtocolVersion,
    wire::{
        self,
        jsonrpc::{self, RequestId, RpcRequest},
    },
};
use std::sync::Arc;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The longest `Idempotency-Key` taken.
const MAX_KEY_BYTES: usize = 256;

/// `POST /`
pub(crate) async fn handle(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let principal = match inner.auth.admit(&parts.headers).await {
        Ok(principal) => principal,
        Err(denied) => {
            if !is_waiting(&parts.headers) {
                hear_out(&inner, body);
            }
            return unauthorized(&denied.challenges);
        }
    };
    let body = match read_body(&inner, &parts.headers, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    if !is_json(&parts.headers) {
        // The id comes back where there is one to be found.
        let id = jsonrpc::parse_request(&body, inner.engine.limits().depth)
            .map_or_else(|failure| failure.id, |request| request.id);
        let error = ProtocolError::with_message(
            ErrorKind::ContentTypeNotSupported,
            "Incompatible content types: the body is not supported unless Content-Type is \
             application/json",
        );
        return failure(&id, &error.into());
    }
    let rpc = match jsonrpc::parse_request(&body, inner.engine.limits().depth) {
        Ok(rpc) => rpc,
        Err(refused) => return failure(&refused.id, &refused.error.into()),
    };
    drop(body);
    let id = rpc.id.clone();
    let version = match requested_version(&parts.headers, &parts.uri) {
        Ok(version) => version,
        Err(error) => return failure(&id, &error.into()),
    };
    let streaming = Operation::from_rpc_name(&rpc.method).is_some_and(Operation::is_streaming);
    let answer = async {
        let request = decode(&inner, version, rpc)?;
        let call = Call {
            principal,
            version,
            idempotency_key: idempotency_key(&parts.headers)?,
            last_event: last_event(&parts.headers)?,
        };
        dispatch::dispatch(&inner, call, request).await
    };
    match answer.await {
        Ok(Answer::Whole(response)) => {
            let result = wire::encode_response(version, &response);
            json(StatusCode::OK, jsonrpc::success(&id, &result))
        }
        Ok(Answer::Stream {
            follower,
            view,
            room,
        }) => sse::respond(&inner, id, version, *follower, view, room).await,
        Err(refusal) if streaming && wants_frames(version, &parts.headers) => {
            sse::refuse(&id, &refusal.error)
        }
        Err(refusal) => failure(&id, &refusal),
    }
}

fn decode(
    inner: &Inner,
    version: ProtocolVersion,
    rpc: RpcRequest,
) -> Result<nuncio_core::Request, Refusal> {
    let operation = Operation::from_rpc_name(&rpc.method).ok_or(ErrorKind::MethodNotFound)?;
    dispatch::check_enabled(inner, version, operation)?;
    let request = wire::decode_request(version, operation, rpc.params)?;
    // Looked at last: clients that leave the id out want to hear what else is wrong first.
    if !rpc.has_id {
        let text = "Request payload validation error: id is missing; A2A has no notifications";
        return Err(ProtocolError::with_message(ErrorKind::InvalidRequest, text).into());
    }
    Ok(request)
}

/// The version a request speaks: from the header, or else from the query parameter of that name.
fn requested_version(headers: &HeaderMap, uri: &Uri) -> Result<ProtocolVersion, ProtocolError> {
    let header = headers.get(ProtocolVersion::HEADER);
    let unreadable = || ProtocolError::new(ErrorKind::VersionNotSupported);
    let asked = match header {
        Some(value) => Some(value.to_str().map_err(|_| unreadable())?),
        None => uri.query().and_then(|query| {
            query.split('&').find_map(|pair| {
                let (name, value) = pair.split_once('=')?;
                name.eq_ignore_ascii_case(ProtocolVersion::HEADER)
                    .then_some(value)
            })
        }),
    };
    Ok(ProtocolVersion::negotiate(asked)?)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ProtocolError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(key.to_owned())),
        _ => Err(ProtocolError::invalid_field(
            "Idempotency-Key",
            format!("must be 1 to {MAX_KEY_BYTES} visible ASCII characters"),
        )),
    }
}

fn last_event(headers: &HeaderMap) -> Result<Option<u64>, ProtocolError> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    match value.to_str().map(str::trim) {
        // A client that has had no event yet.
        Ok("") => Ok(None),
        Ok(text) => text.parse().map(Some).map_err(|_| ()),
        Err(_) => Err(()),
    }
    .map_err(|()| {
        ProtocolError::invalid_field("Last-Event-ID", "must be the id of an event of this task")
    })
}

/// Whether the body claims to be JSON. A client that says nothing is believed to.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let Ok(text) = value.to_str() else {
        return false;
    };
    let essence = text.split(';').next().unwrap_or("").trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/a2a+json")
}

/// Whether an error that comes before a stream's first event goes out as a frame. Plain JSON is
/// the rule. Clients of 0.3 that name `text/event-stream` and not JSON lose the error's code
/// unless it comes as what they asked for.
fn wants_frames(version: ProtocolVersion, headers: &HeaderMap) -> bool {
    let names = |media_type: &str| {
        headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|range| {
                range
                    .split(';')
                    .next()
                    .is_some_and(|r| r.trim().eq_ignore_ascii_case(media_type))
            })
    };
    version == ProtocolVersion::V0_3 && names("text/event-stream") && !names("application/json")
}

async fn read_body(inner: &Inner, headers: &HeaderMap, mut body: Body) -> Result<Bytes, Response> {
    let limits = inner.engine.limits();
    // Where the length is said, nobody has to send what is too much to learn that it is.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        if !is_waiting(headers) {
            hear_out(inner, body);
        }
        return Err(too_large(limits.body_bytes));
    }
    let collected = Limited::new(&mut body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_read, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            hear_out(inner, body);
            Err(too_large(limits.body_bytes))
        }
        Ok(Err(_)) => Err(transport_failure(
            StatusCode::BAD_REQUEST,
            "Request payload validation error: the body ended early".into(),
        )),
        Err(_elapsed) => Err(transport_failure(
            StatusCode::REQUEST_TIMEOUT,
            "Request payload validation error: the body took too long to arrive".into(),
        )),
    }
}

/// Whether a client asks before it sends its body.
fn is_waiting(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

/// Reads on, within the limits, what nobody is going to look at. A client may send all of a body
/// before it listens; closed over what it sends, the connection would break before it has heard
/// that it is refused.
fn hear_out(inner: &Inner, body: Body) {
    if body.is_end_stream() {
        return;
    }
    let limits = inner.engine.limits();
    // Twice what a body may have, so that one which has a little more comes to its end.
    let mut rest = Limited::new(body, limits.body_bytes.saturating_mul(2));
    let time = limits.body_read;
    tokio::spawn(async move {
        let all = async { while let Some(Ok(_)) = rest.frame().await {} };
        // Late or not, the answer is on its way.
        let _ = tokio::time::timeout(time, all).await;
    });
}

fn too_large(limit: usize) -> Response {
    let text = format!("Request payload validation error: the body is larger than {limit} bytes");
    transport_failure(StatusCode::PAYLOAD_TOO_LARGE, text)
}

/// An error of the transport, with a JSON-RPC error as its body. The connection is closed, for
/// what is left of the body would be read as the next request.
fn transport_failure(status: StatusCode, text: String) -> Response {
    let error = ProtocolError::with_message(ErrorKind::InvalidRequest, text);
    let mut response = json(status, jsonrpc::failure(&RequestId::Null, &error));
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn unauthorized(challenges: &[String]) -> Response {
    let error = ProtocolError::with_message(
        ErrorKind::InvalidRequest,
        "Request payload validation error: valid credentials are required",
    );
    let mut response = json(
        StatusCode::UNAUTHORIZED,
        jsonrpc::failure(&RequestId::Null, &error),
    );
    for challenge in challenges {
        match HeaderValue::from_str(challenge) {
            Ok(value) => {
                response
                    .headers_mut()
                    .append(header::WWW_AUTHENTICATE, value);
            }
            Err(error) => tracing::error!(%error, "a challenge is no valid header"),
        }
    }
    response
}

/// The answer for a refused call.
pub(super) fn failure(id: &RequestId, refusal: &Refusal) -> Response {
    let body = jsonrpc::failure(id, &refusal.error);
    match refusal.retry_after {
        None => json(StatusCode::OK, body),
        Some(after) => {
            let mut response = json(StatusCode::SERVICE_UNAVAILABLE, body);
            let seconds = HeaderValue::from(after.as_secs().max(1));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            response
        }
    }
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let json = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )];
    (status, json, body).into_response()
}
