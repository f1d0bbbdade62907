//! How each version of the protocol writes the model down, and how it is read back.
//!
//! ```text
//! bytes ─ jsonrpc ─► params ─ decode_request ─► Request     Response ─ encode_response ─► bytes
//!                                               LogEvent ─ stored ─► bytes ─ stored ─► LogEvent
//! ```
//!
//! Two rules hold everywhere. *Writing is exact*: what a version's schema calls for and nothing
//! else, straight from the model to bytes, one encoder a version ([`v03`], [`v1`]). *Reading is
//! tolerant*: one decoder takes the spellings of both versions, of JSON and of protobuf, wherever
//! they can't be confused, ignores what it does not know, and names the path of what it can't
//! take.
//!
//! A derive of `serde` on the model was rejected: it would spell one version only, its errors do
//! not name a path, and the model would have to look like the wire. So was one decoder a version:
//! real clients mix the spellings, and two readers drift apart.

pub mod card;
mod content;
pub mod jsonrpc;
mod params;
mod read;
mod results;
pub mod stored;
pub mod v03;
pub mod v1;
mod write;

use crate::{Event, FieldViolation, Operation, ProtocolError, ProtocolVersion, Request, Response};
use read::{At, Mode, Reader};
use serde_json::{Map, Value};

/// What another server or a store said can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {description}")]
pub struct DecodeError {
    /// Where, such as `task.status.state`; `result` for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub description: String,
}

impl From<FieldViolation> for DecodeError {
    fn from(violation: FieldViolation) -> Self {
        Self {
            path: violation.field,
            description: violation.description,
        }
    }
}

/// Reads an operation's parameters, as a client sent them. Metadata loses its
/// [reserved keys](crate::Metadata::is_reserved).
///
/// ```
/// use nuncio_core::{Operation, ProtocolVersion, wire};
///
/// let params = serde_json::json!({"message": {"messageId": "m1", "role": "user", "parts": []}});
/// let refused =
///     wire::decode_request(ProtocolVersion::V0_3, Operation::SendMessage, Some(params)).unwrap_err();
/// assert_eq!(refused.violations[0].field, "message.parts");
/// ```
///
/// # Errors
/// `InvalidParams` that names the fields at fault, as many as were found.
pub fn decode_request(
    version: ProtocolVersion,
    operation: Operation,
    params: Option<Value>,
) -> Result<Request, ProtocolError> {
    let params = params.filter(|params| !params.is_null());
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    let mut reader = Reader::new(version, Mode::Request);
    let request = params::request(&mut reader, &At::Root("params"), operation, params);
    reader.finish(request).map_err(invalid_params)
}

/// Writes a request's parameters, as a client sends them: with push secrets.
#[must_use]
pub fn encode_request(version: ProtocolVersion, request: &Request) -> Vec<u8> {
    match version {
        ProtocolVersion::V0_3 => write::to_bytes(&v03::V03(request)),
        ProtocolVersion::V1_0 => write::to_bytes(&v1::V1(request)),
    }
}

/// Writes the `result` of a unary operation. Push secrets and reserved metadata stay out.
#[must_use]
pub fn encode_response(version: ProtocolVersion, response: &Response) -> Vec<u8> {
    match version {
        ProtocolVersion::V0_3 => write::to_bytes(&v03::V03(response)),
        ProtocolVersion::V1_0 => write::to_bytes(&v1::V1(response)),
    }
}

/// Reads the `result` of a unary operation, as a server answered it.
///
/// # Errors
/// [`DecodeError`] for the first thing that can't be read.
pub fn decode_response(
    version: ProtocolVersion,
    operation: Operation,
    result: Value,
) -> Result<Response, DecodeError> {
    let mut reader = Reader::new(version, Mode::Answer);
    let response = results::response(&mut reader, &At::Root("result"), operation, result);
    Ok(reader.finish_first(response)?)
}

/// Writes the `result` of one frame of a stream.
#[must_use]
pub fn encode_event(version: ProtocolVersion, event: &Event) -> Vec<u8> {
    match version {
        ProtocolVersion::V0_3 => write::to_bytes(&v03::V03(event)),
        ProtocolVersion::V1_0 => write::to_bytes(&v1::V1(event)),
    }
}

/// Reads the `result` of one frame of a stream, as a server sent it.
///
/// # Errors
/// [`DecodeError`] for the first thing that can't be read.
pub fn decode_event(version: ProtocolVersion, result: Value) -> Result<Event, DecodeError> {
    let mut reader = Reader::new(version, Mode::Answer);
    let event = content::event(&mut reader, &At::Root("result"), result);
    Ok(reader.finish_first(event)?)
}

/// `InvalidParams` with all that was found; its sentence is about the first.
fn invalid_params(violations: Vec<FieldViolation>) -> ProtocolError {
    let mut all = violations.into_iter();
    let Some(first) = all.next() else {
        return ProtocolError::new(crate::ErrorKind::InvalidParams);
    };
    let mut error = ProtocolError::invalid_field(first.field, first.description);
    error.violations.extend(all);
    error
}
