//! What holds for every model: nothing is lost on the way out and back, between the versions or
//! in a store; nothing secret or reserved gets out; no decoder panics.

use crate::golden::{operation_of, parsed};
use crate::{exercise, strategies};
use nuncio_core::wire::{self, card::CardForm};
use nuncio_core::{AgentCard, Event, Operation, ProtocolVersion, Response, SecurityScheme};
use proptest::prelude::*;
use serde_json::Value;

/// As much of a card as a version says.
fn said(mut card: AgentCard, version: ProtocolVersion) -> AgentCard {
    match version {
        ProtocolVersion::V0_3 => card
            .interfaces
            .retain(|interface| interface.version == "0.3"),
        ProtocolVersion::V1_0 => card.capabilities.state_transition_history = None,
    }
    for scheme in card.security_schemes.values_mut() {
        if let SecurityScheme::OAuth2 { flows, .. } = scheme {
            match version {
                ProtocolVersion::V0_3 => {
                    flows.authorization_code.as_mut().unwrap().pkce_required = false;
                }
                ProtocolVersion::V1_0 => {
                    flows.client_credentials = None;
                    flows.implicit = None;
                    flows.password = None;
                }
            }
        }
    }
    card
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was(request in strategies::request()) {
        for version in ProtocolVersion::ALL {
            let params = parsed(&wire::encode_request(version, &request));
            let decoded = wire::decode_request(version, request.operation(), Some(params));
            prop_assert_eq!(decoded.as_ref(), Ok(&request));
        }
    }

    #[test]
    fn a_response_comes_back_as_it_was(response in strategies::response()) {
        for version in ProtocolVersion::ALL {
            let result = parsed(&wire::encode_response(version, &response));
            let decoded = wire::decode_response(version, operation_of(&response), result);
            let expected = match response.clone() {
                Response::Card(card) => Response::Card(Box::new(said(*card, version))),
                other => other,
            };
            prop_assert_eq!(decoded, Ok(expected));
        }
    }

    #[test]
    fn a_stored_push_config_comes_back_with_its_secrets(config in strategies::push_config(true)) {
        for version in ProtocolVersion::ALL {
            let stored = wire::stored::encode_push_config(version, &config);
            let read = wire::stored::decode_push_config(&stored);
            prop_assert_eq!(read, Ok((version, config.clone())));
        }
    }

    #[test]
    fn an_event_comes_back_as_it_was(event in strategies::event()) {
        for version in ProtocolVersion::ALL {
            let result = parsed(&wire::encode_event(version, &event));
            let decoded = wire::decode_event(version, result);
 prop_assert_eq!(decoded.as_ref(), Ok(&event));
        }
    }

    #[test]
    fn a_card_for_both_comes_back_as_it_was(card in strategies::card()) {
        let both = parsed(&wire::card::encode(&card, CardForm::Both));
        let decoded = wire::card::decode(both);
 prop_assert_eq!(decoded.as_ref(), Ok(&card));
    }

    #[test]
    fn a_log_entry_comes_back_as_it_was_and_is_a_line(entry in strategies::log_event()) {
        let stored = wire::stored::encode_event(&entry);
        prop_assert!(!stored.contains(&b'\n'));
        let decoded = wire::stored::decode_event(&stored);
 prop_assert_eq!(decoded.as_ref(), Ok(&entry));
    }

    #[test]
    fn a_stored_task_comes_back_as_it_was(task in strategies::task()) {
        let stored = wire::stored::encode_task(&task);
        let decoded = wire::stored::decode_task(&stored);
 prop_assert_eq!(decoded.as_ref(), Ok(&task));
    }

    #[test]
    fn what_0_3_says_survives_the_way_through_1_0(
        event in strategies::event(),
        request in strategies::request(),
    ) {
        let (old, new) = (ProtocolVersion::V0_3, ProtocolVersion::V1_0);

        let before = wire::encode_event(old, &event);
        let model = wire::decode_event(old, parsed(&before)).unwrap();
        let through = wire::decode_event(new, parsed(&wire::encode_event(new, &model))).unwrap();
        prop_assert_eq!(wire::encode_event(old, &through), before);

        let operation = request.operation();
        let before = wire::encode_request(old, &request);
        let model = wire::decode_request(old, operation, Some(parsed(&before))).unwrap();
        let through = parsed(&wire::encode_request(new, &model));
        let through = wire::decode_request(new, operation, Some(through)).unwrap();
        prop_assert_eq!(wire::encode_request(old, &through), before);
    }

    #[test]
    fn either_version_reads_the_other_s_content(event in strategies::event()) {
        // The one thing that can't be told apart without `kind`: see the module `content`.
        let confusable = |value: &Value| value.to_string().contains(r#""data":{"data":{"#);
        for (from, to) in [
            (ProtocolVersion::V0_3, ProtocolVersion::V1_0),
            (ProtocolVersion::V1_0, ProtocolVersion::V0_3),
        ] {
            let result = parsed(&wire::encode_event(from, &event));
            if !confusable(&result) {
                let decoded = wire::decode_event(to, result);
 prop_assert_eq!(decoded.as_ref(), Ok(&event));
            }
        }
    }

    #[test]
    fn secrets_are_only_in_requests(mut response in strategies::response()) {
        use nuncio_core::{PushAuthentication, Secret, SetPushConfig};
        let spill = |set: &mut SetPushConfig| {
            set.config.token = Some(Secret::new("SPILLED"));
            set.config.authentication = Some(PushAuthentication {
                schemes: vec!["Bearer".to_owned()],
                credentials: Some(Secret::new("SPILLED")),
            });
        };
        match &mut response {
            Response::PushConfig(set) => spill(set),
            Response::PushConfigs { configs, .. } => configs.iter_mut().for_each(spill),
            _ => {}
        }
        for version in ProtocolVersion::ALL {
            let text = String::from_utf8(wire::encode_response(version, &response)).unwrap();
            prop_assert!(!text.contains("SPILLED"));
        }
    }

    #[test]
    fn no_decoder_panics_on_json(value in strategies::json()) {
        exercise::all(&serde_json::to_vec(&value).unwrap());
    }

    #[test]
    fn no_decoder_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise::all(&bytes);
    }

    #[test]
    fn no_word_parser_panics(text in any::<String>()) {
        exercise::words(text.as_bytes());
    }
}

#[test]
fn reserved_metadata_neither_enters_nor_leaves() {
    fn poison(metadata: &mut nuncio_core::Metadata) {
        metadata.insert("nuncio.note", 1);
        metadata.insert("a2a.auth", "root");
        metadata.insert(
            "kept",
            serde_json::json!([{"ash_a2a.owner": "root", "kept": 1}]),
        );
    }
    let clean = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        for key in ["nuncio.", "a2a.auth", "ash_a2a.owner"] {
            assert!(!text.contains(key), "{text}");
        }
        assert!(text.contains(r#""kept":[{"kept":1}]"#), "{text}");
    };
    for (_, mut event) in crate::samples::events() {
        match &mut event {
            Event::Task(task) => {
                poison(&mut task.metadata);
                poison(&mut task.history[0].metadata);
                poison(&mut task.artifacts[0].metadata);
                poison(&mut task.artifacts[0].parts[0].metadata);
            }
            Event::Message(message) => poison(&mut message.metadata),
            Event::Status(update) => poison(&mut update.metadata),
            Event::Artifact(update) => {
                poison(&mut update.metadata);
                poison(&mut update.artifact.parts[0].metadata);
            }
        }
        for version in ProtocolVersion::ALL {
            clean(wire::encode_event(version, &event));
        }
        if let Event::Task(task) = &event {
            clean(wire::stored::encode_task(task));
        }
    }
    let claims = serde_json::json!({
        "nuncio.note": 1, "a2a.auth": {"sub": "root"}, "kept": [{"ash_a2a.owner": "x", "kept": 1}]
    });
    let params = serde_json::json!({
        "message": {
            "messageId": "m", "role": "user", "metadata": claims,
            "parts": [{"text": "hi", "metadata": claims}]
        },
        "metadata": claims
    });
    for version in ProtocolVersion::ALL {
        let request =
            wire::decode_request(version, Operation::SendMessage, Some(params.clone())).unwrap();
        let text = format!("{request:?}");
        assert!(
            !text.contains("root") && !text.contains("ash_a2a"),
            "{text}"
        );
        clean(wire::encode_request(version, &request));
    }
}
