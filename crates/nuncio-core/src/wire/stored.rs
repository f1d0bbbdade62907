//! The store's form of a task's log.
//!
//! It is 1.0's stream event, byte for byte, so that a 1.0 stream is served from the store without
//! being decoded; a user's message is `{"message": …}`. 1.0 writes down all of the model, and
//! what has its default value and is left out comes back as that value. A line, then: JSON has no
//! newline in it, as the store wants it.
//!
//! A form of our own was rejected: it would cost a decode and an encode for every event of every
//! stream, and a second set of codecs to keep right.

use super::read::{At, Mode, Reader};
use super::v1::V1;
use super::{DecodeError, content, jsonrpc, write};
use crate::{Event, LogEvent, ProtocolVersion, Task};
use serde_json::Value;

/// A task nests what a request brought a few levels deeper than the request did, and an agent's
/// JSON was bounded by another parser. Whatever was written must be read again.
const MAX_DEPTH: usize = 512;

/// Writes an entry of a log.
#[must_use]
pub fn encode_event(event: &LogEvent) -> Vec<u8> {
    write::to_bytes(&V1(event))
}

/// Reads an entry of a log.
///
/// # Errors
/// [`DecodeError`] where the bytes are none that [`encode_event`] wrote.
pub fn decode_event(bytes: &[u8]) -> Result<LogEvent, DecodeError> {
    let value = parse(bytes)?;
    let mut reader = Reader::new(ProtocolVersion::V1_0, Mode::Answer);
    let event = content::event(&mut reader, &At::Root("event"), value);
    Ok(match reader.finish_first(event)? {
        Event::Task(task) => LogEvent::Created(task),
        Event::Message(message) => LogEvent::Message(message),
        Event::Status(update) => LogEvent::Status(update),
        Event::Artifact(update) => LogEvent::Artifact(update),
    })
}

/// Writes a task, for a checkpoint.
#[must_use]
pub fn encode_task(task: &Task) -> Vec<u8> {
    write::to_bytes(&V1(task))
}

/// Reads a task.
///
/// # Errors
/// [`DecodeError`] where the bytes are none that [`encode_task`] wrote.
pub fn decode_task(bytes: &[u8]) -> Result<Task, DecodeError> {
    let value = parse(bytes)?;
    let mut reader = Reader::new(ProtocolVersion::V1_0, Mode::Answer);
    let task = content::task(&mut reader, &At::Root("task"), value);
    Ok(reader.finish_first(task)?)
}

fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    jsonrpc::parse_json(bytes, MAX_DEPTH).map_err(|error| DecodeError {
        path: "entry".to_owned(),
        description: error.to_string(),
    })
}
