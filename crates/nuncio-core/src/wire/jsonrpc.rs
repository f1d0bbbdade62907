//! The JSON-RPC 2.0 envelope: reading requests and replies, writing replies and errors.
//!
//! A request is told apart from nonsense in a fixed order, so that every fault has one code: what
//! is no JSON (or nested too deep) is -32700 with a null id; what is no request is -32600, with
//! the id where it had a good one; `params` that are no object are -32602. Replies are put
//! together from bytes: the result of an event is encoded once, and every reader of the event
//! gets it in an envelope with its own id.
//!
//! A2A has no batches, and no notifications: a request without an id is to be refused, since
//! whoever sent it would wait for an answer that can't name it. That is left to the caller, who
//! alone can tell whether something more useful is wrong with it.

use super::DecodeError;
use super::read::{At, Mode, Reader, string, whole};
use super::write::{append, object};
use crate::{ErrorKind, FieldViolation, ProtocolError, ProtocolVersion};
use serde::de::Deserialize;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::Value;
use std::fmt;

/// The deepest nesting that is taken from a client, whatever the configuration says: reading is
/// recursive, and what is stored is nested a little deeper still.
const DEEPEST: usize = 256;

/// The domain of A2A's `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

/// The id of a request, which comes back in its reply with the type it had.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// `null`, and what a reply has where the request's id is not known.
    Null,
    /// An integer, from the least `i64` to the greatest `u64`.
    Integer(i128),
    /// A string.
    String(String),
}

impl RequestId {
    /// The id a JSON value is, if it is one.
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::String(text) => Some(Self::String(text)),
            Value::Number(number) if !number.is_f64() => {
                let signed = number.as_i64().map(i128::from);
                signed
                    .or_else(|| number.as_u64().map(i128::from))
                    .map(Self::Integer)
            }
            _ => None,
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Integer(number) => serializer.serialize_i128(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::String(text) => f.write_str(text),
        }
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

/// A request, its parameters not yet read.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// To go back in the reply; null where the request has none.
    pub id: RequestId,
    /// Whether the request has an id. One without is invalid, but that is the last thing to say
    /// of it: a client that forgets the id is told first of an unknown method or bad parameters.
    pub has_id: bool,
    /// The method, in any spelling.
    pub method: String,
    /// The parameters: an object, where there are any.
    pub params: Option<Value>,
}

/// A body that is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcFailure {
    /// To go back in the reply; null where the body had no good one.
    pub id: RequestId,
    /// What is wrong.
    pub error: ProtocolError,
}

/// Reads a request body. Nesting deeper than `max_depth` (at most 256) is refused before
/// anything recursive sees it.
///
/// ```
/// use nuncio_core::wire::jsonrpc::{RequestId, parse_request};
///
/// let body = br#"{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"t1"}}"#;
/// let request = parse_request(body, 64).unwrap();
/// assert_eq!((request.id, request.method.as_str()), (RequestId::Integer(7), "tasks/get"));
/// ```
///
/// # Errors
/// [`RpcFailure`] with the error and the id to answer with.
pub fn parse_request(body: &[u8], max_depth: usize) -> Result<RpcRequest, RpcFailure> {
    let fail = |id: RequestId, kind, message: &str| RpcFailure {
        id,
        error: ProtocolError::with_message(kind, message),
    };
    let value = parse_json(body, max_depth.min(DEEPEST))
        .map_err(|error| fail(RequestId::Null, ErrorKind::ParseError, &error.to_string()))?;
    let invalid = |id, message: &str| fail(id, ErrorKind::InvalidRequest, message);
    let mut request = match value {
        Value::Object(request) => request,
        Value::Array(_) => {
            return Err(invalid(
                RequestId::Null,
                "A2A has no batches: send one request a time",
            ));
        }
        _ => return Err(invalid(RequestId::Null, "A request must be a JSON object")),
    };
    let id = request.remove("id");
    let has_id = id.is_some();
    let Some(id) = RequestId::from_value(id.unwrap_or(Value::Null)) else {
        return Err(invalid(
            RequestId::Null,
            "id must be a string, an integer or null",
        ));
    };
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, r#"jsonrpc must be "2.0""#));
    }
    let method = match request.remove("method") {
        Some(Value::String(method)) if !method.is_empty() => method,
        Some(_) => return Err(invalid(id, "method must be a string that is not empty")),
        None => return Err(invalid(id, "method is missing")),
    };
    let params = match request.remove("params") {
        None | Some(Value::Null) => None,
        Some(params @ Value::Object(_)) => Some(params),
        Some(_) => {
            return Err(RpcFailure {
                id,
                error: ProtocolError::invalid_field("params", "must be an object"),
            });
        }
    };
    Ok(RpcRequest {
        id,
        has_id,
        method,
        params,
    })
}

/// Why bytes are no JSON that is read here.
#[derive(Debug, thiserror::Error)]
pub(super) enum JsonError {
    #[error("Invalid JSON payload: nested deeper than {0} levels")]
    TooDeep(usize),
    #[error("Invalid JSON payload: {0}")]
    Syntax(serde_json::Error),
}

/// Parses JSON no deeper than `max_depth`, which must be so small that the stack holds it. The parser's own limit is lifted: it is a fixed 128,
/// while what a store holds is nested deeper than the request that brought it.
pub(super) fn parse_json(bytes: &[u8], max_depth: usize) -> Result<Value, JsonError> {
    if is_deeper(bytes, max_depth) {
        return Err(JsonError::TooDeep(max_depth));
    }
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    parser.disable_recursion_limit();
    let value = Value::deserialize(&mut parser).map_err(JsonError::Syntax)?;
    parser.end().map_err(JsonError::Syntax)?;
    Ok(value)
}

/// Whether brackets outside strings nest deeper than `max_depth`. For bytes that are no JSON the
/// answer means little, but then the parser stops at the first that is wrong, which is no deeper.
fn is_deeper(bytes: &[u8], max_depth: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => {
                    depth += 1;
                    if depth > max_depth {
                        return true;
                    }
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    false
}

/// Writes a reply up to its result: the caller appends the result's JSON and a `}`.
pub fn write_success_prefix(id: &RequestId, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    append(out, id);
    out.extend_from_slice(br#","result":"#);
}

/// A reply with a result.
#[must_use]
pub fn success(id: &RequestId, result: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len() + 64);
    write_success_prefix(id, &mut out);
    out.extend_from_slice(result);
    out.push(b'}');
    out
}

/// A reply with an error.
#[must_use]
pub fn failure(id: &RequestId, error: &ProtocolError) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    append(&mut out, id);
    out.extend_from_slice(br#","error":"#);
    append(&mut out, &ErrorObject(error));
    out.push(b'}');
    out
}

/// The JSON of a reply's `error`.
#[must_use]
pub fn error_object(error: &ProtocolError) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    append(&mut out, &ErrorObject(error));
    out
}

/// A reply's `error`: code, message and, where there is more to say, data.
#[derive(Debug, Clone, Copy)]
pub struct ErrorObject<'a>(pub &'a ProtocolError);

impl Serialize for ErrorObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("code", &self.0.kind.code())?;
        o.field("message", &self.0.message)?;
        let details = ErrorDetails(self.0);
        o.optional("data", Some(details).filter(|details| !details.is_empty()))?;
        o.end()
    }
}

/// What there is to say of an error beyond its code and message, as an array of objects with
/// `@type`: the `data` of JSON-RPC and the `details` of HTTP+JSON.
#[derive(Debug, Clone, Copy)]
pub struct ErrorDetails<'a>(pub &'a ProtocolError);

impl ErrorDetails<'_> {
    /// Whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let error = self.0;
        error.kind.reason().is_none() && error.refusal.is_none() && error.violations.is_empty()
    }
}

impl Serialize for ErrorDetails<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.0;
        let mut array = serializer.serialize_seq(None)?;
        for reason in error.kind.reason().into_iter().chain(error.refusal) {
            array.serialize_element(&ErrorInfo(reason))?;
        }
        if !error.violations.is_empty() {
            array.serialize_element(&BadRequest(&error.violations))?;
        }
        array.end()
    }
}

struct ErrorInfo<'a>(&'a str);

impl Serialize for ErrorInfo<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("@type", "type.googleapis.com/google.rpc.ErrorInfo")?;
        o.field("reason", self.0)?;
        o.field("domain", ERROR_DOMAIN)?;
        o.field("metadata", &serde_json::Map::new())?;
        o.end()
    }
}

struct BadRequest<'a>(&'a [FieldViolation]);

impl Serialize for BadRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("@type", "type.googleapis.com/google.rpc.BadRequest")?;
        o.list("fieldViolations", self.0, Violation)?;
        o.end()
    }
}

struct Violation<'a>(&'a FieldViolation);

impl Serialize for Violation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("field", &self.0.field)?;
        o.field("description", &self.0.description)?;
        o.end()
    }
}

/// An error that another server answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RemoteError {
    /// Its code.
    pub code: i64,
    /// Its sentence.
    pub message: String,
    /// Whatever it says more.
    pub data: Option<Value>,
}

impl RemoteError {
    /// Which of the protocol's errors it is, if it is one.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        ErrorKind::from_code(i32::try_from(self.code).ok()?)
    }
}

/// Reads another server's reply: its result, or the error it answered.
///
/// # Errors
/// [`DecodeError`] where it is neither.
pub fn decode_reply(reply: Value) -> Result<Result<Value, RemoteError>, DecodeError> {
    let mut reader = Reader::new(ProtocolVersion::V1_0, Mode::Answer);
    let decoded = read_reply(&mut reader, reply);
    Ok(reader.finish_first(decoded)?)
}

fn read_reply(reader: &mut Reader, reply: Value) -> Option<Result<Value, RemoteError>> {
    let at = At::Root("reply");
    let mut fields = reader.open(&at, reply)?;
    if fields.has("error") {
        return fields.required(reader, "error", remote_error).map(Err);
    }
    match fields.take_raw("result") {
        Some(result) => Some(Ok(result)),
        None => reader.fault(&at, "must hold a result or an error"),
    }
}

fn remote_error(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<RemoteError> {
    let mut fields = reader.open(at, value)?;
    let code = fields.required(reader, "code", |reader, at, value| {
        match whole(&value).and_then(|code| i64::try_from(code).ok()) {
            Some(code) => Some(code),
            None => reader.fault(at, "must be an integer"),
        }
    });
    let message = fields
        .optional(reader, "message", string)
        .unwrap_or_default();
    Some(RemoteError {
        code: code?,
        message,
        data: fields.take("data"),
    })
}
