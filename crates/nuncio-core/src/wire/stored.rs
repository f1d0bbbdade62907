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
use super::{DecodeError, content, jsonrpc, params, v03, write};
use crate::{Event, LogEvent, ProtocolVersion, PushConfig, Task};
use serde::ser::{Serialize, Serializer};
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

/// Writes a push config with its secrets and the version it was registered under. In 0.3's form,
/// which has all of the model.
#[must_use]
pub fn encode_push_config(version: ProtocolVersion, config: &PushConfig) -> Vec<u8> {
    write::to_bytes(&Registered(version, config))
}

struct Registered<'a>(ProtocolVersion, &'a PushConfig);

impl Serialize for Registered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = write::object(serializer)?;
        o.field("version", self.0.as_str())?;
        o.field("config", &v03::with_secrets(self.1))?;
        o.end()
    }
}

/// Reads a push config and the version it was registered under.
///
/// # Errors
/// [`DecodeError`] where the bytes are none that [`encode_push_config`] wrote.
pub fn decode_push_config(bytes: &[u8]) -> Result<(ProtocolVersion, PushConfig), DecodeError> {
    let value = parse(bytes)?;
    let mut reader = Reader::new(ProtocolVersion::V0_3, Mode::Answer);
    let read = registered(&mut reader, value);
    Ok(reader.finish_first(read)?)
}

fn registered(reader: &mut Reader, value: Value) -> Option<(ProtocolVersion, PushConfig)> {
    let mut fields = reader.open(&At::Root("config"), value)?;
    let version = fields.text(reader, "version");
    let version = ProtocolVersion::ALL
        .into_iter()
        .find(|known| version.as_deref() == Some(known.as_str()))
        .or_else(|| fields.missing(reader, "version"));
    let config = fields.required(reader, "config", params::push_config);
    Some((version?, config?))
}

fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    jsonrpc::parse_json(bytes, MAX_DEPTH).map_err(|error| DecodeError {
        path: "entry".to_owned(),
        description: error.to_string(),
    })
}
