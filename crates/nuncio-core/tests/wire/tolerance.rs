//! What is read though it is not spelled as the version spells it.

use nuncio_core::wire::{self, card::CardForm};
use nuncio_core::{
    Event, Operation, Part, PartContent, ProtocolVersion, Request, Response, Role, SendMessage,
    TaskState,
};
use serde_json::{Value, json};

const OLD: ProtocolVersion = ProtocolVersion::V0_3;
const NEW: ProtocolVersion = ProtocolVersion::V1_0;

fn request(version: ProtocolVersion, operation: Operation, params: Value) -> Request {
    wire::decode_request(version, operation, Some(params)).unwrap()
}

fn send(version: ProtocolVersion, params: Value) -> SendMessage {
    match request(version, Operation::SendMessage, params) {
        Request::SendMessage(send) => send,
        other => panic!("{other:?}"),
    }
}

fn part(version: ProtocolVersion, part: Value) -> Part {
    let message = json!({"messageId": "m", "role": "user", "parts": [part]});
    send(version, json!({"message": message}))
        .message
        .parts
        .remove(0)
}

#[test]
fn enumerations_are_read_in_every_spelling() {
    for version in ProtocolVersion::ALL {
        for role in [json!("agent"), json!("ROLE_AGENT"), json!(2)] {
            let message = json!({"messageId": "m", "role": role, "parts": [{"text": ""}]});
            assert_eq!(
                send(version, json!({"message": message})).message.role,
                Role::Agent
            );
        }
        for state in [
            json!("canceled"),
            json!("TASK_STATE_CANCELED"),
            json!("TASK_STATE_CANCELLED"),
            json!(5),
        ] {
            let list = request(version, Operation::ListTasks, json!({"status": state}));
            let Request::ListTasks(list) = list else {
                panic!("{list:?}")
            };
            assert_eq!(list.state, Some(TaskState::Canceled));
        }
        for none in [
            json!("TASK_STATE_UNSPECIFIED"),
            json!(0),
            json!(null),
            json!("unknown"),
        ] {
            let list = request(version, Operation::ListTasks, json!({"status": none}));
            assert_eq!(list, Request::ListTasks(Default::default()));
        }
    }
}

#[test]
fn parts_are_read_in_either_shape_under_either_version() {
    let file = Part {
        media_type: Some("text/plain".to_owned()),
        ..Part::raw(*b"hi?>", "").named("f.txt")
    };
    let link = Part::url("https://example.com/f");
    for version in ProtocolVersion::ALL {
        assert_eq!(part(version, json!({"text": "hi"})), Part::text("hi"));
        assert_eq!(
            part(version, json!({"kind": "text", "text": "hi"})),
            Part::text("hi")
        );
        for bytes in ["aGk/Pg==", "aGk_Pg==", "aGk/Pg", "aGk_Pg"] {
            for shape in [
                json!({"raw": bytes, "filename": "f.txt", "mediaType": "text/plain"}),
                json!({"raw": bytes, "filename": "f.txt", "media_type": "text/plain"}),
                json!({"kind": "file", "file": {"bytes": bytes, "name": "f.txt", "mimeType": "text/plain"}}),
                json!({"file": {"fileWithBytes": bytes, "name": "f.txt", "mime_type": "text/plain"}}),
                json!({"file": {"file_with_bytes": bytes, "file_with_uri": "", "name": "f.txt", "mime_type": "text/plain"}}),
            ] {
                assert_eq!(part(version, shape), file, "{version} {bytes}");
            }
        }
        for shape in [
            json!({"url": "https://example.com/f"}),
            json!({"kind": "file", "url": "https://example.com/f"}),
            json!({"kind": "file", "file": {"uri": "https://example.com/f", "mimeType": ""}}),
            json!({"file": {"file_with_uri": "https://example.com/f"}}),
        ] {
            assert_eq!(part(version, shape), link, "{version}");
        }
        for value in [json!(null), json!([1]), json!("x"), json!({"a": 1})] {
            assert_eq!(
                part(version, json!({"data": value})),
                Part::data(value.clone())
            );
            let kind = json!({"kind": "data", "data": value});
            assert_eq!(part(version, kind), Part::data(value.clone()));
        }
        assert_eq!(
            part(version, json!({"text": "hi", "data": null, "file": null})),
            Part::text("hi")
        );
    }
}

#[test]
fn the_discriminator_from_before_0_3_is_heard_where_there_is_no_other() {
    let text = json!({"type": "text", "text": "hi"});
    for version in ProtocolVersion::ALL {
        assert_eq!(part(version, text.clone()), Part::text("hi"));
    }
    let both = json!({"kind": "text", "type": "data", "text": "hi"});
    assert_eq!(part(OLD, both), Part::text("hi"));
    let wrong = json!({"messageId": "m", "role": "user", "parts": [{"type": "odd", "text": "x"}]});
    let params = Some(json!({"message": wrong}));
    let refused = wire::decode_request(OLD, Operation::SendMessage, params).unwrap_err();
    assert_eq!(refused.violations[0].field, "message.parts[0].type");
}

#[test]
fn a_data_part_of_0_3_s_protobuf_is_unwrapped_only_there() {
    let wrapped = json!({"data": {"data": {"a": 1}}});
    assert_eq!(part(OLD, wrapped.clone()), Part::data(json!({"a": 1})));
    assert_eq!(part(NEW, wrapped), Part::data(json!({"data": {"a": 1}})));
    let kind = json!({"kind": "data", "data": {"data": {"a": 1}}});
    assert_eq!(part(OLD, kind), Part::data(json!({"data": {"a": 1}})));
}

#[test]
fn a_marked_data_part_is_unwrapped_and_an_unmarked_is_not() {
    let marked =
        json!({"kind": "data", "data": {"value": 7}, "metadata": {"data_part_compat": true}});
    for version in ProtocolVersion::ALL {
        assert_eq!(part(version, marked.clone()), Part::data(7));
    }
    let unmarked = json!({"kind": "data", "data": {"value": 7}});
    assert_eq!(part(OLD, unmarked), Part::data(json!({"value": 7})));
    let more = json!({"kind": "data", "data": {"value": 7, "b": 1}, "metadata": {"data_part_compat": true}});
    assert_eq!(
        part(OLD, more).content,
        PartContent::Data(json!({"value": 7, "b": 1}))
    );
    // 1.0 has no such convention.
    let plain = json!({"data": {"value": 7}, "metadata": {"data_part_compat": true}});
    assert_eq!(
        part(NEW, plain).content,
        PartContent::Data(json!({"value": 7}))
    );
}

#[test]
fn protobuf_names_stand_beside_json_names() {
    let canonical = json!({
        "message": {
            "messageId": "m", "contextId": "c", "taskId": "t", "role": "ROLE_USER",
            "parts": [{"text": "hi"}], "referenceTaskIds": ["r"]
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": true,
            "taskPushNotificationConfig": {"url": "u"}
        }
    });
    let snake = json!({
        "request": {
            "message_id": "m", "context_id": "c", "task_id": "t", "role": 1,
            "content": [{"text": "hi"}], "reference_task_ids": ["r"]
        },
        "configuration": {
            "accepted_output_modes": ["text/plain"], "history_length": "3",
            "return_immediately": true, "task_push_notification_config": {"url": "u"}
        }
    });
    let old = json!({
        "message": {
            "messageId": "m", "contextId": "c", "taskId": "t", "role": "user", "kind": "message",
            "parts": [{"text": "hi"}], "referenceTaskIds": ["r"]
        },
        "configuration": {
            "acceptedOutputModes": ["text/plain"], "historyLength": 3.0, "blocking": false,
            "push_notification": {"url": "u"}
        }
    });
    for version in ProtocolVersion::ALL {
        let expected = send(version, canonical.clone());
        assert_eq!(send(version, snake.clone()), expected);
        assert_eq!(send(version, old.clone()), expected);
    }
    // The JSON name wins, and a null stands for nothing.
    let both = json!({"page_size": 7, "pageSize": 9, "contextId": null, "context_id": "c"});
    let Request::ListTasks(list) = request(NEW, Operation::ListTasks, both) else {
        panic!()
    };
    assert_eq!(list.page_size, Some(9));
    assert_eq!(list.context_id.unwrap().as_str(), "c");
}

#[test]
fn unknown_members_null_members_and_empty_ids_are_nothing() {
    let bare = json!({"message": {"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}});
    let noisy = json!({
        "tenant": "acme", "unknown": {"deep": []}, "metadata": null, "configuration": null,
        "message": {
            "messageId": "m", "role": "user", "taskId": "", "contextId": "", "extensions": null,
            "x": 1, "parts": [{"text": "hi", "metadata": null, "raw": null, "y": 2}]
        }
    });
    for version in ProtocolVersion::ALL {
        assert_eq!(send(version, noisy.clone()), send(version, bare.clone()));
    }
}

#[test]
fn waiting_is_the_default_and_either_version_s_word_is_heard() {
    let message = json!({"messageId": "m", "role": "user", "parts": [{"text": "hi"}]});
    for version in ProtocolVersion::ALL {
        for (configuration, at_once) in [
            (json!({}), false),
            (json!({"blocking": true}), false),
            (json!({"blocking": false}), true),
            (json!({"returnImmediately": true}), true),
            (json!({"returnImmediately": false}), false),
        ] {
            let params = json!({"message": message, "configuration": configuration});
            let sent = send(version, params);
            assert_eq!(
                sent.configuration.return_immediately, at_once,
                "{configuration}"
            );
        }
    }
}

#[test]
fn timestamps_have_any_offset() {
    for text in [
        "2026-01-31T13:30:00.123456+01:30",
        "2026-01-31t12:00:00.123z",
    ] {
        let params = json!({"statusTimestampAfter": text});
        let Request::ListTasks(list) = request(NEW, Operation::ListTasks, params) else {
            panic!()
        };
        assert_eq!(
            list.status_after.unwrap().to_string(),
            "2026-01-31T12:00:00.123Z"
        );
    }
    // Another server's forgotten offset is taken for UTC; a client's is not.
    let status = json!({"state": "working", "timestamp": "2026-01-31T12:00:00.123456"});
    let event = json!({"kind": "status-update", "taskId": "t", "contextId": "c", "status": status});
    let Ok(Event::Status(update)) = wire::decode_event(OLD, event) else {
        panic!()
    };
    assert_eq!(
        update.status.timestamp.unwrap().to_string(),
        "2026-01-31T12:00:00.123Z"
    );
}

#[test]
fn push_config_parameters_are_read_in_either_shape() {
    let (get, set) = (Operation::GetPushConfig, Operation::CreatePushConfig);
    for version in ProtocolVersion::ALL {
        let expected = request(version, get, json!({"taskId": "t", "id": "p"}));
        for shape in [
            json!({"id": "t", "pushNotificationConfigId": "p"}),
            json!({"taskId": "t", "pushNotificationConfigId": "p"}),
            json!({"task_id": "t", "push_notification_config_id": "p"}),
        ] {
            assert_eq!(request(version, get, shape), expected);
        }
        let config = json!({"id": "p", "url": "u", "token": "s"});
        let flat = json!({"taskId": "t", "id": "p", "url": "u", "token": "s"});
        let expected = request(version, set, flat);
        for shape in [
            json!({"taskId": "t", "pushNotificationConfig": config}),
            json!({"parent": "tasks/t", "pushNotificationConfig": config}),
            json!({
                "parent": "tasks/t", "config_id": "p",
                "config": {
                    "name": "tasks/t/pushNotificationConfigs/p",
                    "push_notification_config":
                        {"id": "p", "url": "u", "token": "s", "authentication": {}}
                }
            }),
            json!({"config": {
                "name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": config
            }}),
        ] {
            assert_eq!(request(version, set, shape), expected);
        }
    }
    for shape in [
        json!({"id": "t"}),
        json!({"taskId": "t"}),
        json!({"id": "t", "taskId": "t"}),
    ] {
        let Request::GetPushConfig(get) = request(OLD, get, shape) else {
            panic!()
        };
        assert_eq!((get.task_id.as_str(), get.config_id), ("t", None));
    }
    let schemes =
        json!({"taskId": "t", "url": "u", "authentication": {"scheme": "Bearer,  Basic"}});
    let Request::CreatePushConfig(set) = request(NEW, set, schemes) else {
        panic!()
    };
    assert_eq!(
        set.config.authentication.unwrap().schemes,
        ["Bearer", "Basic"]
    );
}

#[test]
fn a_0_3_client_s_schemes_are_one_for_1_0() {
    let auth = json!({"schemes": ["Bearer", "Basic"]});
    let config = json!({"url": "u", "authentication": auth});
    let params = json!({"taskId": "t", "pushNotificationConfig": config});
    let Request::CreatePushConfig(set) = request(OLD, Operation::CreatePushConfig, params) else {
        panic!()
    };
    let shown = wire::encode_response(NEW, &Response::PushConfig(set));
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["authentication"], json!({"scheme": "Bearer, Basic"}));
}

#[test]
fn numbers_of_every_size_are_unchanged() {
    let data = json!({
        "u64": u64::MAX, "i64": i64::MIN, "beyond 2^53": 9_007_199_254_740_993_u64,
        "tenth": 0.1, "small": 5e-324, "large": 1.797_693_134_862_315_7e308, "minus zero": -0.0
    });
    for version in ProtocolVersion::ALL {
        let message = json!({
            "messageId": "m", "role": "user", "parts": [{"data": data}], "metadata": data
        });
        let sent = request(version, Operation::SendMessage, json!({"message": message}));
        let bytes = wire::encode_request(version, &sent);
        let back: Value = serde_json::from_slice(&bytes).unwrap();
        let texts = [
            &back["message"]["parts"][0]["data"],
            &back["message"]["metadata"],
        ];
        assert_eq!(
            texts.map(Value::to_string),
            [data.to_string(), data.to_string()]
        );
    }
}

#[test]
fn events_are_read_in_either_shape_and_without_what_protobuf_leaves_out() {
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "working"}});
    let expected = wire::decode_event(NEW, json!({"task": task})).unwrap();
    let mut kind = task.clone();
    kind["kind"] = json!("task");
    for version in ProtocolVersion::ALL {
        for shape in [&task, &kind, &json!({"task": kind})] {
            assert_eq!(
                wire::decode_event(version, shape.clone()).as_ref(),
                Ok(&expected)
            );
        }
        let message = json!({"message_id": "m", "role": "ROLE_AGENT", "content": [{"text": "hi"}]});
        for shape in [json!({"msg": message}), json!({"message": message})] {
            let event = wire::decode_event(version, shape).unwrap();
            assert!(matches!(event, Event::Message(m) if m.text() == "hi"));
        }
        let bare = json!({"statusUpdate": {"taskId": "t", "status": {}}});
        let Ok(Event::Status(update)) = wire::decode_event(version, bare) else {
            panic!()
        };
        assert_eq!(update.status.state, TaskState::Unspecified);
        assert_eq!(update.context_id.as_str(), "t", "a context of its own");
        let closing = json!({"artifactUpdate": {
            "taskId": "t", "artifact": {"artifactId": "a"}, "lastChunk": true
        }});
        let Ok(Event::Artifact(update)) = wire::decode_event(version, closing) else {
            panic!()
        };
        assert!(update.last_chunk && update.artifact.parts.is_empty());
    }
}

#[test]
fn push_config_lists_are_read_bare_or_as_a_page() {
    for version in ProtocolVersion::ALL {
        let read = |result| wire::decode_response(version, Operation::ListPushConfigs, result);
        let one = match version {
            ProtocolVersion::V0_3 => json!({"taskId": "t", "pushNotificationConfig": {"url": "u"}}),
            ProtocolVersion::V1_0 => json!({"taskId": "t", "url": "u"}),
        };
        let bare = read(json!([one]));
        assert!(bare.is_ok(), "{bare:?}");
        assert_eq!(read(json!({"configs": [one], "nextPageToken": ""})), bare);
    }
}

#[test]
fn cards_of_other_servers_are_read() {
    let old = json!({
        "name": "n", "url": "https://a.example.com", "protocolVersion": "0.2.6",
        "capabilities": {"streaming": true}, "skills": [{"id": "s"}],
        "securitySchemes": {"x": {"type": "futuristic"}, "k": {"type": "apiKey", "in": "header", "name": "X"}}
    });
    let card = wire::card::decode(old).unwrap();
    assert_eq!(card.interfaces[0].version, "0.2.6");
    assert_eq!(card.interfaces[0].binding.as_str(), "JSONRPC");
    assert_eq!(card.security_schemes.keys().collect::<Vec<_>>(), ["k"]);

    // A 1.0 card that also says where 0.3 is spoken, without listing it.
    let both = json!({
        "name": "n",
        "supportedInterfaces": [{"url": "u", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "url": "u", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
        "security_requirements": [{"schemes": {"k": {}}}]
    });
    let card = wire::card::decode(both).unwrap();
    let versions: Vec<_> = card.interfaces.iter().map(|i| i.version.as_str()).collect();
    assert_eq!(versions, ["1.0", "0.3"]);
    assert_eq!(card.security, [[("k".to_owned(), Vec::new())].into()]);
}

#[test]
fn a_card_without_0_3_does_not_pretend_to_speak_it() {
    let mut card = crate::samples::card();
    card.interfaces
        .retain(|interface| interface.version == "1.0");
    let both: Value = serde_json::from_slice(&wire::card::encode(&card, CardForm::Both)).unwrap();
    for member in [
        "url",
        "preferredTransport",
        "additionalInterfaces",
        "protocolVersion",
    ] {
        assert!(both.get(member).is_none(), "{member}");
    }
}
