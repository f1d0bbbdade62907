//! What the encoders write, against the protocol's own JSON Schemas.
//!
//! The schemas are not in this repository: `A2A_SCHEMA_DIR` or `../shared/spec` beside it holds
//! `v0.3/a2a.json` and `v1.0/a2a.json`. Without them these tests say so and pass, except in CI.

use crate::golden::{golden, parsed};
use crate::{samples, strategies};
use jsonschema::Validator;
use nuncio_core::wire::{self, card::CardForm, jsonrpc};
use nuncio_core::{ErrorKind, ProtocolError, ProtocolVersion, Request, Response};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};

struct Schemas {
    bundles: [Value; 2],
    compiled: Mutex<HashMap<(ProtocolVersion, &'static str), &'static Validator>>,
}

static SCHEMAS: LazyLock<Option<Schemas>> = LazyLock::new(|| {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = std::env::var_os("A2A_SCHEMA_DIR")
        .map_or_else(|| root.join("../shared/spec"), |dir| root.join(dir));
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).ok();
    let (Some(v03), Some(v1)) = (read("v0.3/a2a.json"), read("v1.0/a2a.json")) else {
        let message = format!("no A2A schemas in {}: set A2A_SCHEMA_DIR", dir.display());
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{message}");
        eprintln!("\n### SKIPPED: {message}\n");
        return None;
    };
    let v1 = with_local_references(serde_json::from_str(&v1).unwrap());
    let bundles = [serde_json::from_str(&v03).unwrap(), v1];
    Some(Schemas {
        bundles,
        compiled: Mutex::default(),
    })
});

/// The 1.0 bundle calls its definitions `Agent Card` and refers to them as
/// `lf.a2a.v1.AgentCard.jsonschema.json`, which nothing resolves. Makes both `AgentCard`.
fn with_local_references(bundle: Value) -> Value {
    fn localize(value: &mut Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(target)) = map.get_mut("$ref")
                    && let Some(name) = target.strip_suffix(".jsonschema.json")
                {
                    let name = name.rsplit('.').next().unwrap();
                    *target = format!("#/definitions/{name}");
                }
                map.values_mut().for_each(localize);
            }
            Value::Array(items) => items.iter_mut().for_each(localize),
            _ => {}
        }
    }
    let definitions = bundle["definitions"].as_object().unwrap();
    let mut renamed = serde_json::Map::new();
    for (title, definition) in definitions {
        let mut definition = definition.clone();
        localize(&mut definition);
        renamed.insert(title.replace(' ', ""), definition);
    }
    json!({"$schema": bundle["$schema"], "definitions": renamed})
}

impl Schemas {
    fn validator(&self, version: ProtocolVersion, name: &'static str) -> &'static Validator {
        let mut compiled = self.compiled.lock().unwrap();
        compiled.entry((version, name)).or_insert_with(|| {
            let mut bundle = self.bundles[version as usize].clone();
            assert!(
                bundle["definitions"][name].is_object(),
                "{version} has no {name}"
            );
            bundle["$ref"] = format!("#/definitions/{name}").into();
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&bundle);
            Box::leak(Box::new(validator.unwrap()))
        })
    }
}

/// Fails where `instance` is no `name` of the version's schema.
fn assert_valid(version: ProtocolVersion, name: &'static str, instance: &Value) {
    let Some(schemas) = &*SCHEMAS else { return };
    let errors: Vec<String> = schemas
        .validator(version, name)
        .iter_errors(instance)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        errors.is_empty(),
        "not a {version} {name}: {errors:#?}\n{instance:#}"
    );
}

fn assert_request(version: ProtocolVersion, request: &Request, params: &Value) {
    use Request as R;
    let name = match (version, request) {
        (ProtocolVersion::V0_3, R::SendMessage(_) | R::SendStreamingMessage(_)) => {
            "MessageSendParams"
        }
        (ProtocolVersion::V0_3, R::GetTask(_)) => "TaskQueryParams",
        (ProtocolVersion::V0_3, R::CancelTask(_) | R::SubscribeToTask(_)) => "TaskIdParams",
        (ProtocolVersion::V0_3, R::CreatePushConfig(_)) => "TaskPushNotificationConfig",
        (ProtocolVersion::V0_3, R::GetPushConfig(_)) => "GetTaskPushNotificationConfigParams",
        (ProtocolVersion::V0_3, R::ListPushConfigs(_)) => "ListTaskPushNotificationConfigParams",
        (ProtocolVersion::V0_3, R::DeletePushConfig(_)) => "DeleteTaskPushNotificationConfigParams",
        // Not in the schema: the method is only known to 0.3's other bindings, and the card's
        // has no parameters.
        (ProtocolVersion::V0_3, R::ListTasks(_) | R::GetExtendedAgentCard) => return,
        (ProtocolVersion::V1_0, R::SendMessage(_) | R::SendStreamingMessage(_)) => {
            "SendMessageRequest"
        }
        (ProtocolVersion::V1_0, R::GetTask(_)) => "GetTaskRequest",
        (ProtocolVersion::V1_0, R::ListTasks(_)) => "ListTasksRequest",
        (ProtocolVersion::V1_0, R::CancelTask(_)) => "CancelTaskRequest",
        (ProtocolVersion::V1_0, R::SubscribeToTask(_)) => "SubscribeToTaskRequest",
        (ProtocolVersion::V1_0, R::CreatePushConfig(_)) => "TaskPushNotificationConfig",
        (ProtocolVersion::V1_0, R::GetPushConfig(_)) => "GetTaskPushNotificationConfigRequest",
        (ProtocolVersion::V1_0, R::ListPushConfigs(_)) => "ListTaskPushNotificationConfigsRequest",
        (ProtocolVersion::V1_0, R::DeletePushConfig(_)) => {
            "DeleteTaskPushNotificationConfigRequest"
        }
        (ProtocolVersion::V1_0, R::GetExtendedAgentCard) => "GetExtendedAgentCardRequest",
    };
    assert_valid(version, name, params);
}

/// 0.3's schema describes replies whole.
fn reply(result: &Value) -> Value {
    let result = serde_json::to_vec(result).unwrap();
    parsed(&jsonrpc::success(&1_i64.into(), &result))
}

fn assert_event(version: ProtocolVersion, result: &Value) {
    match version {
        ProtocolVersion::V0_3 => {
            assert_valid(
                version,
                "SendStreamingMessageSuccessResponse",
                &reply(result),
            );
        }
        ProtocolVersion::V1_0 => assert_valid(version, "StreamResponse", result),
    }
}

fn assert_response(version: ProtocolVersion, response: &Response, result: &Value) {
    use Response as R;
    let name = match (version, response) {
        (ProtocolVersion::V0_3, R::SentTask(_) | R::SentMessage(_)) => "SendMessageSuccessResponse",
        (ProtocolVersion::V0_3, R::Task(_)) => "GetTaskSuccessResponse",
        (ProtocolVersion::V0_3, R::PushConfig(_)) => "GetTaskPushNotificationConfigSuccessResponse",
        (ProtocolVersion::V0_3, R::PushConfigs { .. }) => {
            "ListTaskPushNotificationConfigSuccessResponse"
        }
        (ProtocolVersion::V0_3, R::PushConfigDeleted) => {
            "DeleteTaskPushNotificationConfigSuccessResponse"
        }
        (ProtocolVersion::V0_3, R::Card(_)) => "GetAuthenticatedExtendedCardSuccessResponse",
        (ProtocolVersion::V0_3, R::TaskPage(_)) => {
            for task in result["tasks"].as_array().unwrap() {
                assert_valid(version, "Task", task);
            }
            return;
        }
        (ProtocolVersion::V1_0, R::SentTask(_) | R::SentMessage(_)) => "SendMessageResponse",
        (ProtocolVersion::V1_0, R::Task(_)) => "Task",
        (ProtocolVersion::V1_0, R::TaskPage(_)) => "ListTasksResponse",
        (ProtocolVersion::V1_0, R::PushConfig(_)) => "TaskPushNotificationConfig",
        (ProtocolVersion::V1_0, R::PushConfigs { .. }) => "ListTaskPushNotificationConfigsResponse",
        (ProtocolVersion::V1_0, R::PushConfigDeleted) => {
            assert_eq!(*result, json!({}));
            return;
        }
        (ProtocolVersion::V1_0, R::Card(_)) => "AgentCard",
    };
    match version {
        ProtocolVersion::V0_3 => assert_valid(version, name, &reply(result)),
        ProtocolVersion::V1_0 => assert_valid(version, name, result),
    }
}

fn assert_card(version: ProtocolVersion, card: &Value) {
    assert_valid(version, "AgentCard", card);
}

#[test]
fn the_golden_files_fit_the_schemas() {
    for version in ProtocolVersion::ALL {
        for (name, request) in samples::requests() {
            assert_request(
                version,
                &request,
                &golden(version, &format!("request-{name}")),
            );
        }
        for (name, response) in samples::responses() {
            assert_response(
                version,
                &response,
                &golden(version, &format!("response-{name}")),
            );
        }
        for (name, _) in samples::events() {
            assert_event(version, &golden(version, &format!("event-{name}")));
        }
        assert_card(version, &golden(version, "card"));
    }
    assert_card(
        ProtocolVersion::V1_0,
        &golden(ProtocolVersion::V1_0, "card-device-code"),
    );
}

#[test]
fn the_schemas_can_tell() {
    if SCHEMAS.is_none() {
        return;
    }
    for version in ProtocolVersion::ALL {
        let mut card = golden(version, "card");
        card["name"] = json!(7);
        assert!(std::panic::catch_unwind(|| assert_card(version, &card)).is_err());
        let other = ProtocolVersion::ALL
            .into_iter()
            .find(|other| *other != version)
            .unwrap();
        let event = golden(other, "event-status-update");
        assert!(std::panic::catch_unwind(|| assert_event(version, &event)).is_err());
    }
}

#[test]
fn error_replies_fit_the_0_3_schema() {
    for kind in ErrorKind::ALL {
        let mut error = ProtocolError::new(kind);
        if kind == ErrorKind::InvalidParams {
            error = ProtocolError::invalid_field("message.parts", "is required");
        }
        let reply = parsed(&jsonrpc::failure(&"r-1".into(), &error));
        assert_valid(ProtocolVersion::V0_3, "JSONRPCErrorResponse", &reply);
    }
}

proptest! {
    #[test]
    fn whatever_requests_are_written_fit_the_schemas(request in strategies::request()) {
        for version in ProtocolVersion::ALL {
            assert_request(version, &request, &parsed(&wire::encode_request(version, &request)));
        }
    }

    #[test]
    fn whatever_responses_are_written_fit_the_schemas(response in strategies::response()) {
        for version in ProtocolVersion::ALL {
            assert_response(version, &response, &parsed(&wire::encode_response(version, &response)));
        }
    }

    #[test]
    fn whatever_events_are_written_fit_the_schemas(event in strategies::event()) {
        for version in ProtocolVersion::ALL {
            assert_event(version, &parsed(&wire::encode_event(version, &event)));
        }
    }

    #[test]
    fn whatever_cards_are_written_fit_the_schemas(card in strategies::card()) {
        assert_card(ProtocolVersion::V0_3, &parsed(&wire::card::encode(&card, CardForm::V0_3)));
        assert_card(ProtocolVersion::V1_0, &parsed(&wire::card::encode(&card, CardForm::V1_0)));
        // 1.0's schema knows no other members; 0.3's does not mind them.
        assert_card(ProtocolVersion::V0_3, &parsed(&wire::card::encode(&card, CardForm::Both)));
    }
}
