//! Every decoder on arbitrary bytes. The fuzz targets and the smoke test run the same functions.
//!
//! Nothing may panic; and what was read must come back the same when it is written and read
//! again, or the two sides of the codec disagree about what it was.

use nuncio_core::wire::{self, card::CardForm, jsonrpc};
use nuncio_core::{Operation, ProtocolVersion, Request, Response, TaskId, Timestamp};
use serde_json::Value;

/// Everything at once.
pub fn all(bytes: &[u8]) {
    envelope(bytes);
    requests(bytes);
    answers(bytes);
    stored(bytes);
    card(bytes);
    words(bytes);
}

fn parse(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// The JSON-RPC envelope, as request and as reply.
pub fn envelope(bytes: &[u8]) {
    match jsonrpc::parse_request(bytes, 64) {
        Ok(request) => {
            let reply = jsonrpc::success(&request.id, b"null");
            let reply = parse(&reply).expect("a reply is JSON");
            let sent = parse(bytes).expect("what was read is JSON");
            assert_eq!(reply["id"], sent["id"]);
            assert_eq!(jsonrpc::decode_reply(reply), Ok(Ok(Value::Null)));
            if let Some(operation) = Operation::from_rpc_name(&request.method) {
                for version in ProtocolVersion::ALL {
                    let _ = wire::decode_request(version, operation, request.params.clone());
                }
            }
        }
        Err(failure) => {
            let reply = jsonrpc::failure(&failure.id, &failure.error);
            let reply = parse(&reply).expect("an error reply is JSON");
            let error = jsonrpc::decode_reply(reply).expect("an error reply is one");
            let error = error.expect_err("an error reply is an error");
            assert_eq!(error.kind(), Some(failure.error.kind));
        }
    }
    if let Some(reply) = parse(bytes) {
        let _ = jsonrpc::decode_reply(reply);
    }
}

/// The parameters of every operation in both versions.
pub fn requests(bytes: &[u8]) {
    let Some(params) = parse(bytes) else { return };
    for version in ProtocolVersion::ALL {
        for operation in Operation::ALL {
            match wire::decode_request(version, operation, Some(params.clone())) {
                Ok(request) => {
                    assert_eq!(request.operation(), operation);
                    // 0.3 may ask for the first config; 1.0 has no words for that.
                    let first =
                        matches!(&request, Request::GetPushConfig(g) if g.config_id.is_none());
                    let version = if first {
                        ProtocolVersion::V0_3
                    } else {
                        ProtocolVersion::V1_0
                    };
                    let again = parse(&wire::encode_request(version, &request));
                    assert_eq!(wire::decode_request(version, operation, again), Ok(request));
                }
                Err(error) => {
                    assert!(!error.violations.is_empty());
                    let _ = jsonrpc::error_object(&error);
                }
            }
        }
    }
}

/// Results and stream events in both versions.
pub fn answers(bytes: &[u8]) {
    let Some(result) = parse(bytes) else { return };
    for version in ProtocolVersion::ALL {
        if let Ok(event) = wire::decode_event(version, result.clone()) {
            let _ = wire::encode_event(ProtocolVersion::V0_3, &event);
            let again = wire::encode_event(ProtocolVersion::V1_0, &event);
            let again = parse(&again).expect("an event is JSON");
            assert_eq!(wire::decode_event(ProtocolVersion::V1_0, again), Ok(event));
        }
        for operation in Operation::ALL {
            let Ok(response) = wire::decode_response(version, operation, result.clone()) else {
                continue;
            };
            let _ = wire::encode_response(ProtocolVersion::V0_3, &response);
            // Answers carry no secrets, and a card is put in order by a form that has all of it.
            if matches!(
                response,
                Response::PushConfig(_) | Response::PushConfigs { .. } | Response::Card(_)
            ) {
                continue;
            }
            let again = wire::encode_response(ProtocolVersion::V1_0, &response);
            let again = parse(&again).expect("a response is JSON");
            let again = wire::decode_response(ProtocolVersion::V1_0, operation, again);
            assert_eq!(again, Ok(response));
        }
    }
}

/// Entries and checkpoints of a store.
pub fn stored(bytes: &[u8]) {
    if let Ok(entry) = wire::stored::decode_event(bytes) {
        let again = wire::stored::encode_event(&entry);
        assert_eq!(wire::stored::decode_event(&again), Ok(entry));
    }
    if let Ok(task) = wire::stored::decode_task(bytes) {
        let again = wire::stored::encode_task(&task);
        assert_eq!(wire::stored::decode_task(&again), Ok(task));
    }
    if let Ok((version, config)) = wire::stored::decode_push_config(bytes) {
        let again = wire::stored::encode_push_config(version, &config);
        assert_eq!(
            wire::stored::decode_push_config(&again),
            Ok((version, config))
        );
    }
}

/// Cards. The first reading puts in order what a stranger's card repeats or contradicts; from
/// then on nothing changes.
pub fn card(bytes: &[u8]) {
    let Some(card) = parse(bytes) else { return };
    let Ok(card) = wire::card::decode(card) else {
        return;
    };
    let again = |card| {
        let bytes = wire::card::encode(card, CardForm::Both);
        wire::card::decode(parse(&bytes).expect("a card is JSON"))
    };
    let once = again(&card).expect("a card that was read can be read again");
    assert_eq!(again(&once).as_ref(), Ok(&once));
    let _ = wire::card::encode(&card, CardForm::V0_3);
    let _ = wire::card::encode(&card, CardForm::V1_0);
}

/// What headers and single members carry: versions, timestamps, identifiers.
pub fn words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(version) = ProtocolVersion::negotiate(Some(text)) {
        assert!(text.trim().is_empty() || text.trim().starts_with(version.as_str()));
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        assert_eq!(time.to_string().parse(), Ok(time));
    }
    if let Ok(id) = text.parse::<TaskId>() {
        assert_eq!(id.as_str(), text);
    }
}
