//! What a client sent wrong is refused with the path of the field and what would be right.

use nuncio_core::{ErrorKind, Operation, ProtocolError, ProtocolVersion, wire};
use serde_json::{Value, json};

fn refuse(version: ProtocolVersion, operation: Operation, params: Value) -> ProtocolError {
    let error = wire::decode_request(version, operation, Some(params.clone()));
    let error = error.expect_err(&format!("{version} {operation:?} takes {params}"));
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    error
}

fn fields(version: ProtocolVersion, operation: Operation, params: Value) -> Vec<String> {
    let error = refuse(version, operation, params);
    assert!(
        error.message.starts_with(&error.violations[0].field),
        "{}",
        error.message
    );
    error
        .violations
        .into_iter()
        .map(|violation| violation.field)
        .collect()
}

/// The fields at fault in a message whose members replace a good one's.
fn message_fields(members: Value) -> Vec<String> {
    let mut message = json!({"messageId": "m", "role": "user", "parts": [{"text": "hi"}]});
    for (name, value) in members.as_object().unwrap() {
        message[name] = value.clone();
    }
    let [old, new] = ProtocolVersion::ALL
        .map(|version| fields(version, Operation::SendMessage, json!({"message": message})));
    assert_eq!(old, new);
    old
}

fn part_fields(part: Value) -> Vec<String> {
    message_fields(json!({"parts": [{"text": "good"}, part]}))
}

#[test]
fn params_that_are_no_object_are_named_params() {
    for version in ProtocolVersion::ALL {
        for operation in Operation::ALL {
            for params in [json!([]), json!("x"), json!(1)] {
                assert_eq!(fields(version, operation, params), ["params"]);
            }
        }
    }
}

#[test]
fn absent_params_are_fine_where_nothing_is_required() {
    for version in ProtocolVersion::ALL {
        for operation in Operation::ALL {
            let decoded = wire::decode_request(version, operation, None);
            let fine = matches!(
                operation,
                Operation::ListTasks | Operation::GetExtendedAgentCard
            );
            assert_eq!(decoded.is_ok(), fine, "{version} {operation:?}");
        }
    }
}

#[test]
fn a_message_needs_its_id_role_and_parts() {
    for version in ProtocolVersion::ALL {
        let send = |params| fields(version, Operation::SendStreamingMessage, params);
        assert_eq!(send(json!({})), ["message"]);
        assert_eq!(send(json!({"message": "hi"})), ["message"]);
        assert_eq!(
            send(json!({"message": {}})),
            ["message.messageId", "message.role", "message.parts"]
        );
    }
    assert_eq!(
        message_fields(json!({"messageId": ""})),
        ["message.messageId"]
    );
    assert_eq!(
        message_fields(json!({"messageId": 7})),
        ["message.messageId"]
    );
    assert_eq!(
        message_fields(json!({"messageId": "a\nb"})),
        ["message.messageId"]
    );
    assert_eq!(
        message_fields(json!({"messageId": "x".repeat(257)})),
        ["message.messageId"]
    );
    assert_eq!(
        message_fields(json!({"role": "ROLE_UNSPECIFIED"})),
        ["message.role"]
    );
    assert_eq!(message_fields(json!({"role": "system"})), ["message.role"]);
    assert_eq!(message_fields(json!({"role": 0})), ["message.role"]);
    assert_eq!(message_fields(json!({"role": "1"})), ["message.role"]);
    assert_eq!(message_fields(json!({"parts": []})), ["message.parts"]);
    assert_eq!(message_fields(json!({"parts": null})), ["message.parts"]);
    assert_eq!(message_fields(json!({"parts": {}})), ["message.parts"]);
    assert_eq!(message_fields(json!({"taskId": 1})), ["message.taskId"]);
    assert_eq!(
        message_fields(json!({"contextId": []})),
        ["message.contextId"]
    );
    assert_eq!(
        message_fields(json!({"metadata": []})),
        ["message.metadata"]
    );
    assert_eq!(
        message_fields(json!({"extensions": ["x", 1]})),
        ["message.extensions[1]"]
    );
    assert_eq!(
        message_fields(json!({"referenceTaskIds": [""]})),
        ["message.referenceTaskIds[0]"]
    );
}

#[test]
fn a_part_holds_exactly_one_content() {
    let part = ["message.parts[1]"];
    assert_eq!(part_fields(json!({})), part);
    assert_eq!(part_fields(json!({"filename": "x"})), part);
    assert_eq!(part_fields(json!({"text": "a", "url": "b"})), part);
    assert_eq!(
        part_fields(json!({"kind": "text", "text": "a", "data": {}})),
        part
    );
    assert_eq!(part_fields(json!({"text": null})), part);
    assert_eq!(part_fields(json!("hi")), part);
    assert_eq!(
        part_fields(json!({"kind": "text"})),
        ["message.parts[1].text"]
    );
    assert_eq!(
        part_fields(json!({"kind": "text", "data": {}})),
        ["message.parts[1].text"]
    );
    assert_eq!(
        part_fields(json!({"kind": "data"})),
        ["message.parts[1].data"]
    );
    assert_eq!(
        part_fields(json!({"kind": "file"})),
        ["message.parts[1].file"]
    );
    assert_eq!(
        part_fields(json!({"kind": "image", "url": "x"})),
        ["message.parts[1].kind"]
    );
    assert_eq!(
        part_fields(json!({"kind": 1, "url": "x"})),
        ["message.parts[1].kind"]
    );
    assert_eq!(part_fields(json!({"text": 1})), ["message.parts[1].text"]);
    assert_eq!(part_fields(json!({"url": {}})), ["message.parts[1].url"]);
    assert_eq!(part_fields(json!({"raw": "%%%"})), ["message.parts[1].raw"]);
    assert_eq!(part_fields(json!({"raw": "a"})), ["message.parts[1].raw"]);
    assert_eq!(
        part_fields(json!({"raw": "aGk="  , "mediaType": 1})),
        ["message.parts[1].mediaType"]
    );
    let file = ["message.parts[1].file"];
    assert_eq!(part_fields(json!({"file": {}})), file);
    assert_eq!(part_fields(json!({"file": "x"})), file);
    assert_eq!(
        part_fields(json!({"file": {"bytes": "aGk=", "uri": "x"}})),
        file
    );
    assert_eq!(
        part_fields(json!({"file": {"bytes": 1}})),
        ["message.parts[1].file.bytes"]
    );
    assert_eq!(
        part_fields(json!({"file": {"uri": "x", "name": 1}})),
        ["message.parts[1].file.name"]
    );
}

#[test]
fn every_field_at_fault_is_named_up_to_a_bound() {
    let params = json!({
        "message": {
            "messageId": 1, "role": "king",
            "parts": [{"text": 1}, {"raw": "!"}, {"text": "good"}, {}]
        },
        "configuration": {"historyLength": -1, "blocking": "no"}
    });
    assert_eq!(
        fields(ProtocolVersion::V0_3, Operation::SendMessage, params),
        [
            "message.messageId",
            "message.role",
            "message.parts[0].text",
            "message.parts[1].raw",
            "message.parts[3]",
            "configuration.blocking",
            "configuration.historyLength",
        ]
    );
    let parts = vec![json!({}); 100_000];
    let params = json!({"message": {"messageId": "m", "role": "user", "parts": parts}});
    let error = refuse(ProtocolVersion::V1_0, Operation::SendMessage, params);
    assert!(error.violations.len() <= 16);
}

#[test]
fn numbers_have_bounds() {
    for version in ProtocolVersion::ALL {
        for bad in [
            json!(-1),
            json!("-1"),
            json!(1.5),
            json!("x"),
            json!(1_u64 << 40),
            json!({}),
        ] {
            let params = json!({"id": "t", "historyLength": bad});
            assert_eq!(
                fields(version, Operation::GetTask, params),
                ["historyLength"]
            );
        }
        for bad in [json!(0), json!(101), json!(-5), json!("101"), json!(true)] {
            let params = json!({"pageSize": bad});
            assert_eq!(fields(version, Operation::ListTasks, params), ["pageSize"]);
        }
        let params = json!({"status": "done", "statusTimestampAfter": "yesterday"});
        assert_eq!(
            fields(version, Operation::ListTasks, params),
            ["status", "statusTimestampAfter"]
        );
        let params = json!({"statusTimestampAfter": "2026-01-31T12:00:00"});
        assert_eq!(
            fields(version, Operation::ListTasks, params),
            ["statusTimestampAfter"]
        );
    }
    let error = refuse(
        ProtocolVersion::V1_0,
        Operation::GetTask,
        json!({"id": "t", "historyLength": -1}),
    );
    assert_eq!(
        error.message,
        "historyLength: must be a whole number from 0 to 2147483647"
    );
}

#[test]
fn push_config_parameters_are_named_as_the_version_names_them() {
    use Operation::{CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs};
    let (old, new) = (ProtocolVersion::V0_3, ProtocolVersion::V1_0);

    assert_eq!(fields(old, GetPushConfig, json!({})), ["id"]);
    assert_eq!(fields(new, GetPushConfig, json!({})), ["taskId", "id"]);
    assert_eq!(fields(new, GetPushConfig, json!({"taskId": "t"})), ["id"]);
    assert_eq!(fields(new, GetPushConfig, json!({"id": "p"})), ["taskId"]);
    assert_eq!(
        fields(old, DeletePushConfig, json!({"id": "t"})),
        ["pushNotificationConfigId"]
    );
    assert_eq!(
        fields(old, DeletePushConfig, json!({"taskId": "t"})),
        ["pushNotificationConfigId"]
    );
    assert_eq!(
        fields(new, DeletePushConfig, json!({"taskId": "t"})),
        ["id"]
    );
    assert_eq!(fields(old, ListPushConfigs, json!({})), ["id"]);
    assert_eq!(fields(new, ListPushConfigs, json!({})), ["taskId"]);
    assert_eq!(
        fields(
            new,
            ListPushConfigs,
            json!({"taskId": "t", "pageSize": 101})
        ),
        ["pageSize"]
    );
    assert_eq!(
        fields(old, CreatePushConfig, json!({})),
        ["taskId", "pushNotificationConfig"]
    );
    assert_eq!(
        fields(
            old,
            CreatePushConfig,
            json!({"taskId": "t", "pushNotificationConfig": {}})
        ),
        ["pushNotificationConfig.url"]
    );
    assert_eq!(fields(new, CreatePushConfig, json!({})), ["taskId", "url"]);
    let auth = json!({"credentials": "c"});
    assert_eq!(
        fields(
            new,
            CreatePushConfig,
            json!({"taskId": "t", "url": "u", "authentication": auth})
        ),
        ["authentication.scheme"]
    );
    let config = json!({"url": "u", "authentication": auth});
    assert_eq!(
        fields(
            old,
            CreatePushConfig,
            json!({"taskId": "t", "pushNotificationConfig": config})
        ),
        ["pushNotificationConfig.authentication.schemes"]
    );
}

#[test]
fn what_a_server_answered_wrong_is_named_too() {
    let version = ProtocolVersion::V1_0;
    let path = |result| wire::decode_event(version, result).unwrap_err().path;
    assert_eq!(path(json!([])), "result");
    assert_eq!(path(json!({"unknown": {}})), "result");
    assert_eq!(path(json!({"kind": "surprise"})), "kind");
    assert_eq!(path(json!({"task": {"id": "t"}})), "task.status");
    assert_eq!(
        path(json!({"task": {"id": "t", "status": {"state": "odd"}}})),
        "task.status.state"
    );
    let parts = json!([{"text": "a"}, {}]);
    let artifact = json!({"taskId": "t", "artifact": {"artifactId": "a", "parts": parts}});
    assert_eq!(
        path(json!({"artifactUpdate": artifact})),
        "artifactUpdate.artifact.parts[1]"
    );

    let answer = |operation, result| {
        wire::decode_response(version, operation, result)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        answer(Operation::GetTask, json!(null)),
        "result: must be an object, not null"
    );
    let update = json!({"statusUpdate": {"taskId": "t", "status": {}}});
    assert!(answer(Operation::SendMessage, update).starts_with("result: must be a task or a"));
    assert!(answer(Operation::SubscribeToTask, json!({})).starts_with("result: must be a stream"));
    let page = json!({"tasks": [{"id": "t", "status": {}}, 5]});
    assert_eq!(
        answer(Operation::ListTasks, page),
        "tasks[1]: must be an object, not a number"
    );
    assert_eq!(
        answer(Operation::ListTasks, json!({"totalSize": -1})),
        "totalSize: must be a whole number"
    );

    let card = |card| wire::card::decode(card).unwrap_err().path;
    assert_eq!(card(json!({"url": "u"})), "name");
    assert_eq!(card(json!({"name": "n"})), "supportedInterfaces");
    let scheme =
        json!({"name": "n", "url": "u", "securitySchemes": {"k": {"type": "apiKey", "in": 1}}});
    assert_eq!(card(scheme), "securitySchemes.k.location");
}

#[test]
fn a_store_s_bytes_that_are_damaged_are_an_error() {
    for bytes in [
        &b""[..],
        b"{",
        b"{}",
        b"[]",
        b"{\"task\":{}}",
        b"\xff",
        b"{\"taken\":1}",
    ] {
        assert!(wire::stored::decode_event(bytes).is_err());
        assert!(wire::stored::decode_task(bytes).is_err());
        assert!(wire::stored::decode_push_config(bytes).is_err());
    }
}
