//! Messages that can't be taken: what is wrong with them is named, and nothing runs.

use super::{Case, PARTS, try_all};
use nuncio_server::core::Operation;
use serde_json::{Value, json};

/// The parameters of a good send, but for one place in them. Objects on the way are made.
fn but(path: &str, value: Value) -> Value {
    let part = json!({"text": "hi"});
    let mut params = json!({"message": {"messageId": "m", "role": "user", "parts": [part]}});
    let mut place = &mut params;
    for step in path.split('.') {
        place = match step.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[step],
        };
    }
    *place = value;
    params
}

/// Sends that are refused with -32602 for the field; waited for and as streams.
fn refused(path: &str, values: impl IntoIterator<Item = Value>, field: &'static str) -> Vec<Case> {
    let mut cases = Vec::new();
    for value in values {
        for operation in [Operation::SendMessage, Operation::SendStreamingMessage] {
            cases.push(Case::params(
                operation,
                but(path, value.clone()),
                -32602,
                field,
            ));
        }
    }
    cases
}

/// What is no identifier, in one way or another.
fn no_ids() -> [Value; 6] {
    let long = "x".repeat(257);
    [
        json!(7),
        json!(true),
        json!(["a"]),
        json!({"id": "a"}),
        json!(long),
        json!("a\nb"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_looked_at_field_by_field() {
    let many: Vec<_> = (0..=PARTS).map(|_| json!({"text": "x"})).collect();
    let cases = || {
        let mut cases = refused(
            "message",
            [json!(null), json!("hi"), json!([]), json!(7)],
            "message",
        );
        cases.extend(refused(
            "message.messageId",
            [json!(null), json!("")],
            "message.messageId",
        ));
        cases.extend(refused("message.messageId", no_ids(), "message.messageId"));
        cases.extend(refused("message.contextId", no_ids(), "message.contextId"));
        cases.extend(refused("message.taskId", no_ids(), "message.taskId"));
        let roles = [
            json!(null),
            json!("boss"),
            json!("USER"),
            json!(""),
            json!(0),
            json!(3),
            json!({}),
        ];
        cases.extend(refused("message.role", roles, "message.role"));
        let parts = [
            json!(null),
            json!({}),
            json!("hi"),
            json!([]),
            json!(many.clone()),
        ];
        cases.extend(refused("message.parts", parts, "message.parts"));
        for field in ["message.metadata", "metadata"] {
            cases.extend(refused(
                field,
                [json!("x"), json!([]), json!(7), json!(false)],
                field,
            ));
        }
        cases.extend(refused(
            "message.extensions",
            [json!("urn:x"), json!({})],
            "message.extensions",
        ));
        cases.extend(refused(
            "message.extensions",
            [json!(["urn:x", 7])],
            "message.extensions[1]",
        ));
        cases.extend(refused(
            "message.referenceTaskIds",
            [json!("t")],
            "message.referenceTaskIds",
        ));
        let references = [json!([7]), json!([""]), json!([null])];
        cases.extend(refused(
            "message.referenceTaskIds",
            references,
            "message.referenceTaskIds[0]",
        ));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_is_exactly_one_thing() {
    let cases = || {
        let whole = [
            json!({}),
            json!(null),
            json!("hi"),
            json!([]),
            json!({"metadata": {}}),
            json!({"kind": null}),
            json!({"text": null}),
            json!({"text": "a", "url": "https://example.com"}),
            json!({"text": "a", "data": {}}),
            json!({"raw": "YQ==", "url": "https://example.com"}),
            json!({"kind": "text", "text": "a", "file": {"uri": "https://example.com"}}),
        ];
        let mut cases = refused("message.parts.0", whole, "message.parts[0]");
        for (part, field) in [
            (json!({"text": 7}), "message.parts[0].text"),
            (json!({"text": ["a"]}), "message.parts[0].text"),
            (json!({"kind": "text"}), "message.parts[0].text"),
            (json!({"kind": "text", "data": {}}), "message.parts[0].text"),
            (json!({"raw": "!!"}), "message.parts[0].raw"),
            (json!({"raw": "YQ=a"}), "message.parts[0].raw"),
            (json!({"raw": 7}), "message.parts[0].raw"),
            (json!({"url": 7}), "message.parts[0].url"),
            (json!({"kind": "file"}), "message.parts[0].file"),
            (
                json!({"kind": "file", "file": "x"}),
                "message.parts[0].file",
            ),
            (json!({"file": {}}), "message.parts[0].file"),
            (json!({"file": {"name": "x"}}), "message.parts[0].file"),
            (
                json!({"file": {"bytes": "YQ==", "uri": "a:b"}}),
                "message.parts[0].file",
            ),
            (
                json!({"file": {"bytes": "*"}}),
                "message.parts[0].file.bytes",
            ),
            (json!({"file": {"uri": 7}}), "message.parts[0].file.uri"),
            (json!({"kind": "data"}), "message.parts[0].data"),
            (
                json!({"kind": "video", "text": "a"}),
                "message.parts[0].kind",
            ),
            (json!({"kind": 7, "text": "a"}), "message.parts[0].kind"),
            (
                json!({"text": "a", "metadata": 7}),
                "message.parts[0].metadata",
            ),
            (
                json!({"text": "a", "filename": 7}),
                "message.parts[0].filename",
            ),
            (
                json!({"text": "a", "mediaType": {}}),
                "message.parts[0].mediaType",
            ),
        ] {
            cases.extend(refused("message.parts.0", [part], field));
        }
        let second = json!([{"text": "a"}, {"text": "b"}, {"txet": "c"}]);
        cases.extend(refused("message.parts", [second], "message.parts[2]"));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_a_send_is_to_be_answered_is_looked_at_too() {
    let cases = || {
        let mut cases = refused(
            "configuration",
            [json!("x"), json!([]), json!(7)],
            "configuration",
        );
        let lengths = [
            json!(-1),
            json!(1.5),
            json!("many"),
            json!(true),
            json!(2_147_483_648_u32),
        ];
        let field = "configuration.historyLength";
        cases.extend(refused(field, lengths, field));
        for field in ["configuration.blocking", "configuration.returnImmediately"] {
            cases.extend(refused(field, [json!("yes"), json!(1), json!({})], field));
        }
        for field in [
            "configuration.pushNotificationConfig",
            "configuration.taskPushNotificationConfig",
        ] {
            cases.extend(refused(field, [json!("x"), json!([])], field));
        }
        for field in [
            "configuration.pushNotificationConfig.url",
            "configuration.taskPushNotificationConfig.url",
        ] {
            cases.extend(refused(field, [json!(7), json!(null)], field));
        }
        let field = "configuration.acceptedOutputModes";
        cases.extend(refused(field, [json!("text/plain"), json!({})], field));
        cases.extend(refused(
            field,
            [json!([7])],
            "configuration.acceptedOutputModes[0]",
        ));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_the_server_or_the_task_has_its_own_error() {
    let cases = || {
        let both = [Operation::SendMessage, Operation::SendStreamingMessage];
        let mut cases = Vec::new();
        for operation in both {
            let mut add =
                |params, code, says| cases.push(Case::params(operation, params, code, says));
            add(but("message.taskId", json!("nobody")), -32001, "");
            let mut elsewhere = but("message.taskId", json!("OPEN"));
            elsewhere["message"]["contextId"] = json!("elsewhere");
            add(elsewhere, -32602, "message.contextId");
            add(
                but("message.parts.0", json!({"data": {"a": 1}})),
                -32005,
                "message.parts[0]",
            );
            add(
                but("message.parts.0", json!({"raw": "YQ=="})),
                -32005,
                "message.parts[0]",
            );
            add(
                but("message.parts.0", json!({"url": "a:b"})),
                -32005,
                "message.parts[0]",
            );
            let modes = json!(["image/png", ""]);
            add(
                but("configuration.acceptedOutputModes", modes),
                -32005,
                "acceptedOutputModes",
            );
            let hook = json!({"url": "https://example.com/hook"});
            for name in ["pushNotificationConfig", "taskPushNotificationConfig"] {
                add(
                    but(&format!("configuration.{name}"), hook.clone()),
                    -32003,
                    "",
                );
            }
        }
        cases
    };
    try_all(cases).await;
}
