//! The golden files are written by hand from the specification. Each is what the encoder makes of
//! its model, and the decoder reads the model out of it.

use crate::samples;
use nuncio_core::wire::{self, card::CardForm};
use nuncio_core::{Event, LogEvent, Operation, ProtocolVersion, Response};
use serde_json::Value;
use std::path::PathBuf;

pub(crate) fn folder(version: ProtocolVersion) -> PathBuf {
    let name = match version {
        ProtocolVersion::V0_3 => "v03",
        ProtocolVersion::V1_0 => "v1",
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

pub(crate) fn golden(version: ProtocolVersion, name: &str) -> Value {
    let path = folder(version).join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The operation whose result a golden response is.
pub(crate) fn operation_of(response: &Response) -> Operation {
    match response {
        Response::SentTask(_) | Response::SentMessage(_) => Operation::SendMessage,
        Response::Task(_) => Operation::GetTask,
        Response::TaskPage(_) => Operation::ListTasks,
        Response::PushConfig(_) => Operation::GetPushConfig,
        Response::PushConfigs { .. } => Operation::ListPushConfigs,
        Response::PushConfigDeleted => Operation::DeletePushConfig,
        Response::Card(_) => Operation::GetExtendedAgentCard,
    }
}

#[test]
fn requests_match_their_golden_files_both_ways() {
    for version in ProtocolVersion::ALL {
        for (name, request) in samples::requests() {
            let golden = golden(version, &format!("request-{name}"));
            let encoded = parsed(&wire::encode_request(version, &request));
            assert_eq!(encoded, golden, "{version} {name}");
            let decoded = wire::decode_request(version, request.operation(), Some(golden));
            assert_eq!(decoded, Ok(request), "{version} {name}");
        }
    }
}

#[test]
fn responses_match_their_golden_files_both_ways() {
    for version in ProtocolVersion::ALL {
        for (name, response) in samples::responses() {
            let golden = golden(version, &format!("response-{name}"));
            let encoded = parsed(&wire::encode_response(version, &response));
            assert_eq!(encoded, golden, "{version} {name}");
            let decoded = wire::decode_response(version, operation_of(&response), golden);
            assert_eq!(decoded, Ok(response), "{version} {name}");
        }
    }
}

#[test]
fn events_match_their_golden_files_both_ways() {
    for version in ProtocolVersion::ALL {
        for (name, event) in samples::events() {
            let golden = golden(version, &format!("event-{name}"));
            let encoded = parsed(&wire::encode_event(version, &event));
            assert_eq!(encoded, golden, "{version} {name}");
            assert_eq!(
                wire::decode_event(version, golden),
                Ok(event),
                "{version} {name}"
            );
        }
    }
}

#[test]
fn stored_entries_are_the_bytes_of_1_0_events() {
    for (name, event) in samples::events() {
        let entry = match event.clone() {
            Event::Task(task) => LogEvent::Created(task),
            Event::Message(message) => LogEvent::Message(message),
            Event::Status(update) => LogEvent::Status(update),
            Event::Artifact(update) => LogEvent::Artifact(update),
        };
        let stored = wire::stored::encode_event(&entry);
        assert_eq!(
            stored,
            wire::encode_event(ProtocolVersion::V1_0, &event),
            "{name}"
        );
        assert!(!stored.contains(&b'\n'), "{name}");
        assert_eq!(wire::stored::decode_event(&stored), Ok(entry), "{name}");
    }
}

#[test]
fn a_card_matches_its_golden_file_in_each_version() {
    for (form, version, said) in [
        (CardForm::V0_3, ProtocolVersion::V0_3, samples::card_v03()),
        (CardForm::V1_0, ProtocolVersion::V1_0, samples::card_v1()),
    ] {
        let golden = golden(version, "card");
        assert_eq!(parsed(&wire::card::encode(&samples::card(), form)), golden);
        assert_eq!(wire::card::decode(golden.clone()), Ok(said.clone()));
        let answer = Response::Card(Box::new(said));
        assert_eq!(parsed(&wire::encode_response(version, &answer)), golden);
        let decoded = wire::decode_response(version, Operation::GetExtendedAgentCard, golden);
        assert_eq!(decoded, Ok(answer));
    }
    let golden = golden(ProtocolVersion::V1_0, "card-device-code");
    let card = samples::card_device_code();
    assert_eq!(parsed(&wire::card::encode(&card, CardForm::V1_0)), golden);
    assert_eq!(wire::card::decode(golden), Ok(card));
}

#[test]
fn a_card_for_both_has_the_members_of_both_and_loses_nothing() {
    let both = parsed(&wire::card::encode(&samples::card(), CardForm::Both));
    let union = merged(
        golden(ProtocolVersion::V0_3, "card"),
        golden(ProtocolVersion::V1_0, "card"),
    );
    assert_eq!(both, union);
    assert_eq!(wire::card::decode(both), Ok(samples::card()));
}

fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (key, value) in other {
                let merged = match one.remove(&key) {
                    Some(mine) => merged(mine, value),
                    None => value,
                };
                one.insert(key, merged);
            }
            Value::Object(one)
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len());
            Value::Array(
                one.into_iter()
                    .zip(other)
                    .map(|(a, b)| merged(a, b))
                    .collect(),
            )
        }
        (one, other) => {
            assert_eq!(one, other, "the versions disagree");
            one
        }
    }
}
