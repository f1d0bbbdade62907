//! The envelope: every way to get it wrong has its code, and the id comes back as it came.

use crate::samples;
use nuncio_core::wire;
use nuncio_core::wire::jsonrpc::{
    ErrorDetails, RemoteError, RequestId, decode_reply, error_object, failure, parse_request,
    success, write_success_prefix,
};
use nuncio_core::{
    ErrorKind, LogEvent, Operation, ProtocolError, ProtocolVersion, Request, Task, Timestamp,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn refused(body: impl AsRef<[u8]>) -> (i32, RequestId) {
    let failure = parse_request(body.as_ref(), 64).unwrap_err();
    (failure.error.kind.code(), failure.id)
}

#[test]
fn what_is_no_json_is_a_parse_error_without_an_id() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}}}"#,
        "[".repeat(100_000)
    );
    for body in [
        "".as_bytes(),
        b"{",
        b"hello",
        b"\xff\xfe",
        b"{\"id\":\"\xc3\x28\"}",
        br#"{"jsonrpc":"2.0","id":1,"method":"m"} trailing"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"m"}{}"#,
        br#"{"jsonrpc":"2.0","id":1e999,"method":"m"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
        deep.as_bytes(),
    ] {
        assert_eq!(
            refused(body),
            (-32700, RequestId::Null),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
}

#[test]
fn what_is_no_request_is_refused_with_its_id_where_that_is_good() {
    use RequestId::Null;
    let seven = || RequestId::from(7_u64);
    for (body, id) in [
        (json!([]), Null),
        (json!([{"jsonrpc": "2.0", "id": 7, "method": "m"}]), Null),
        (json!("request"), Null),
        (json!(null), Null),
        (json!({}), Null),
        (json!({"jsonrpc": "2.0", "id": {}, "method": "m"}), Null),
        (json!({"jsonrpc": "2.0", "id": [7], "method": "m"}), Null),
        (json!({"jsonrpc": "2.0", "id": true, "method": "m"}), Null),
        (json!({"jsonrpc": "2.0", "id": 1.5, "method": "m"}), Null),
        (json!({"jsonrpc": "2.0", "id": 7.0, "method": "m"}), Null),
        (json!({"jsonrpc": "1.0", "id": 7, "method": "m"}), seven()),
        (json!({"jsonrpc": 2.0, "id": 7, "method": "m"}), seven()),
        (json!({"id": 7, "method": "m"}), seven()),
        (json!({"jsonrpc": "2.0", "id": 7}), seven()),
        (json!({"jsonrpc": "2.0", "id": 7, "method": ""}), seven()),
        (json!({"jsonrpc": "2.0", "id": 7, "method": 1}), seven()),
        (json!({"jsonrpc": "2.0", "id": 7, "method": null}), seven()),
    ] {
        assert_eq!(refused(body.to_string()), (-32600, id), "{body}");
    }
    // Beyond what an integer can hold exactly.
    let huge = r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"m"}"#;
    assert_eq!(refused(huge), (-32600, Null));
}

#[test]
fn a_missing_id_is_told_from_a_null_one() {
    let parse = |body: Value| parse_request(body.to_string().as_bytes(), 64).unwrap();
    let absent = parse(json!({"jsonrpc": "2.0", "method": "m"}));
    let null = parse(json!({"jsonrpc": "2.0", "id": null, "method": "m"}));
    assert_eq!((absent.id, absent.has_id), (RequestId::Null, false));
    assert_eq!((null.id, null.has_id), (RequestId::Null, true));
}

#[test]
fn params_that_are_no_object_are_invalid_params() {
    for params in [json!([]), json!("x"), json!(0), json!(false)] {
        let body = json!({"jsonrpc": "2.0", "id": "r", "method": "m", "params": params});
        let failure = parse_request(body.to_string().as_bytes(), 64).unwrap_err();
        assert_eq!(
            (failure.error.kind.code(), failure.id),
            (-32602, "r".into())
        );
        assert_eq!(failure.error.violations[0].field, "params");
    }
    for body in [
        json!({"jsonrpc": "2.0", "id": "r", "method": "m"}),
        json!({"jsonrpc": "2.0", "id": "r", "method": "m", "params": null, "extra": 1}),
    ] {
        let request = parse_request(body.to_string().as_bytes(), 64).unwrap();
        assert_eq!(request.params, None);
    }
}

#[test]
fn depth_is_counted_outside_strings_and_to_the_level() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":{open}{close}}}}}"#)
    };
    for max in [4, 64, 200, 256] {
        assert!(parse_request(nested(max).as_bytes(), max).is_ok(), "{max}");
        let failure = parse_request(nested(max + 1).as_bytes(), max).unwrap_err();
        assert_eq!(failure.error.kind, ErrorKind::ParseError, "{max}");
    }
    // However deep the configuration allows, the stack is safe.
    assert!(parse_request(nested(257).as_bytes(), usize::MAX).is_err());
    let quoted = format!(
        r#"{{"jsonrpc":"2.0","id":"\"{}\\","method":"m{}"}}"#,
        "[".repeat(100),
        "{".repeat(100)
    );
    assert!(parse_request(quoted.as_bytes(), 2).is_ok());
}

#[test]
fn the_deepest_request_can_be_stored_and_read_again() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let body = |data: usize, metadata: usize| {
        let (data, metadata) = (nested(data), nested(metadata));
        let part = format!(r#"{{"data":{data},"metadata":{{"x":{metadata}}}}}"#);
        let message = format!(r#"{{"messageId":"m","role":"user","parts":[{part}]}}"#);
        let params = format!(r#"{{"message":{message}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}"#)
    };
    assert!(parse_request(body(252, 250).as_bytes(), 1000).is_err());
    assert!(parse_request(body(251, 251).as_bytes(), 1000).is_err());
    let request = parse_request(body(251, 250).as_bytes(), 1000).unwrap();
    let version = ProtocolVersion::V1_0;
    let request = wire::decode_request(version, Operation::SendMessage, request.params).unwrap();
    let Request::SendMessage(send) = request else {
        panic!("{request:?}")
    };
    let at = Timestamp::from_millis(0);
    let task = Task::submitted(samples::id("t"), samples::id("c"), send.message, at);
    let stored = wire::stored::encode_task(&task);
    assert_eq!(wire::stored::decode_task(&stored).as_ref(), Ok(&task));
    let entry = LogEvent::Created(task);
    let stored = wire::stored::encode_event(&entry);
    assert_eq!(wire::stored::decode_event(&stored), Ok(entry));
}

#[test]
fn replies_are_the_bytes_they_are_made_of() {
    let id = RequestId::from("r\"1");
    assert_eq!(
        success(&id, b"{\"a\":1}"),
        br#"{"jsonrpc":"2.0","id":"r\"1","result":{"a":1}}"#
    );
    let mut frame = b"data: ".to_vec();
    write_success_prefix(&RequestId::Null, &mut frame);
    assert_eq!(frame, br#"data: {"jsonrpc":"2.0","id":null,"result":"#);
    let error = ProtocolError::new(ErrorKind::MethodNotFound);
    assert_eq!(
        failure(&(-1_i64).into(), &error),
        br#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32601,"message":"Method not found"}}"#
    );
}

fn data(error: &ProtocolError) -> Value {
    let object: Value = serde_json::from_slice(&error_object(error)).unwrap();
    assert_eq!(object["code"], error.kind.code());
    assert_eq!(object["message"], error.message.as_str());
    let data = object.get("data").cloned().unwrap_or(Value::Null);
    if ErrorDetails(error).is_empty() {
        assert_eq!(data, Value::Null);
    } else {
        assert_eq!(data, serde_json::to_value(ErrorDetails(error)).unwrap());
    }
    data
}

#[test]
fn errors_say_more_in_typed_details() {
    for kind in ErrorKind::ALL {
        let expected = match kind.reason() {
            None => Value::Null,
            Some(reason) => json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org", "metadata": {}
            }]),
        };
        assert_eq!(data(&ProtocolError::new(kind)), expected);
    }
    let error = ProtocolError::invalid_field("message.parts", "must hold at least one part");
    let bad_request = json!({
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations":
            [{"field": "message.parts", "description": "must hold at least one part"}]
    });
    assert_eq!(data(&error), json!([bad_request]));
    let error =
        ProtocolError::invalid_field("url", "must be https").refused("refused_webhook_scheme");
    let details = data(&error);
    assert_eq!(details[0]["reason"], "refused_webhook_scheme");
    assert_eq!(details[0]["domain"], "a2a-protocol.org");
    assert_eq!(details[1]["fieldViolations"][0]["field"], "url");
}

#[test]
fn another_server_s_reply_is_a_result_or_an_error() {
    let reply = |value| decode_reply(value);
    assert_eq!(
        reply(json!({"jsonrpc": "2.0", "id": 1, "result": null})),
        Ok(Ok(Value::Null))
    );
    assert_eq!(
        reply(json!({"id": 1, "result": {"a": 1}, "error": null})),
        Ok(Ok(json!({"a": 1})))
    );
    let error = json!({"code": -32001, "message": "gone", "data": [1]});
    let expected = RemoteError {
        code: -32001,
        message: "gone".to_owned(),
        data: Some(json!([1])),
    };
    assert_eq!(expected.kind(), Some(ErrorKind::TaskNotFound));
    assert_eq!(expected.to_string(), "gone (-32001)");
    assert_eq!(reply(json!({"error": error})), Ok(Err(expected)));
    assert_eq!(reply(json!([])).unwrap_err().path, "reply");
    assert_eq!(reply(json!({"id": 1})).unwrap_err().path, "reply");
    assert_eq!(
        reply(json!({"error": {"code": "x"}})).unwrap_err().path,
        "error.code"
    );
    assert_eq!(reply(json!({"error": "bad"})).unwrap_err().path, "error");
}

proptest! {
    #[test]
    fn ids_come_back_with_their_type(
        text in any::<String>(), signed in any::<i64>(), unsigned in any::<u64>(),
    ) {
        for id in [text.as_str().into(), signed.into(), unsigned.into(), RequestId::Null] {
            let id: RequestId = id;
            let sent = serde_json::to_string(&id).unwrap();
            let body = format!(r#"{{"jsonrpc":"2.0","id":{sent},"method":"m"}}"#);
            let request = parse_request(body.as_bytes(), 64).unwrap();
            prop_assert_eq!(&request.id, &id);
            let reply: Value = serde_json::from_slice(&success(&request.id, b"0")).unwrap();
            prop_assert_eq!(reply["id"].to_string(), sent);
        }
    }
}
