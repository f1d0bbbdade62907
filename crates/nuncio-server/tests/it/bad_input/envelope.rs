//! What is no JSON, and JSON that is no request.

use super::{Case, LIST, try_all};

/// A request with one member as told.
fn with(member: &str, value: &str) -> String {
    let mut members = vec![
        ("jsonrpc", r#""2.0""#),
        ("id", "1"),
        ("method", r#""tasks/list""#),
        ("params", "{}"),
    ];
    members.retain(|(name, _)| *name != member);
    if !value.is_empty() {
        members.push((member, value));
    }
    let members: Vec<_> = members.iter().map(|(n, v)| format!("{n:?}: {v}")).collect();
    format!("{{{}}}", members.join(", "))
}

fn without(member: &str) -> String {
    with(member, "")
}

/// So many arrays in each other, as a member of the parameters, which makes two levels more.
fn nested(levels: usize) -> String {
    let arrays = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    with("params", &format!(r#"{{"metadata": {arrays}}}"#))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_json_is_a_parse_error() {
    let utf16: Vec<u8> = LIST.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let in_text = |bytes: &[u8]| {
        let mut body = br#"{"jsonrpc": "2.0", "id": ""#.to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(br#"", "method": "tasks/list"}"#);
        body
    };
    let bad = |name, body: &[u8]| Case::body(name, body, -32700, "Invalid JSON");
    let cases = || {
        vec![
            bad("nothing", b""),
            bad("blanks", b" \r\n\t "),
            bad("a brace", b"{"),
            bad("cut in a name", &LIST.as_bytes()[..10]),
            bad("cut before its end", &LIST.as_bytes()[..LIST.len() - 1]),
            bad("too many braces", format!("{LIST}}}").as_bytes()),
            bad("two requests", format!("{LIST}{LIST}").as_bytes()),
            bad("two lines", format!("{LIST}\n{LIST}\n").as_bytes()),
            bad("words", b"hello there"),
            bad("a form", b"jsonrpc=2.0&id=1&method=tasks/list"),
            bad("a comma too many", LIST.replace('}', ",}").as_bytes()),
            bad("a comma too few", LIST.replace(',', " ").as_bytes()),
            bad("single quotes", LIST.replace('"', "'").as_bytes()),
            bad("a comment", format!("// list\n{LIST}").as_bytes()),
            bad("not a number", with("params", "NaN").as_bytes()),
            bad("a number beyond all", with("id", "1e999").as_bytes()),
            bad("a leading zero", with("id", "01").as_bytes()),
            bad("a byte order mark", format!("\u{feff}{LIST}").as_bytes()),
            bad("UTF-16", &utf16),
            bad("a stray byte", &in_text(b"\xff")),
            bad("Latin-1", &in_text(b"\xe4")),
            bad("half a character", &in_text(b"\xe2\x82")),
            bad("an overlong character", &in_text(b"\xc0\xaf")),
            bad("a surrogate in UTF-8", &in_text(b"\xed\xa0\x80")),
            bad("half a surrogate pair", &in_text(br"\ud800")),
            bad("a line break in a string", &in_text(b"a\nb")),
            bad("a zero byte", &in_text(b"\0")),
            bad("an unknown escape", &in_text(br"\x41")),
            bad("one level too deep", nested(63).as_bytes()).says("nested deeper than 64"),
            bad("much too deep", nested(15_000).as_bytes()).says("nested deeper than 64"),
            bad("brackets without end", "[".repeat(30_000).as_bytes()).says("nested"),
        ]
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_is_no_request_is_an_invalid_request() {
    let bad = |body: &str, says| Case::body(body, body, -32600, says);
    let cases = || {
        let mut cases = vec![
            bad("7", "object"),
            bad("null", "object"),
            bad("true", "object"),
            bad(r#""tasks/list""#, "object"),
            bad("[]", "batches"),
            bad("[7]", "batches"),
            bad(&format!("[{LIST}]"), "batches"),
            bad(&format!("[{LIST}, {LIST}]"), "batches"),
            bad("{}", "jsonrpc"),
            bad(&without("jsonrpc"), "jsonrpc").id(1),
            bad(&without("method"), "method").id(1),
            // An id that is none can't come back.
            bad(&with("id", "1.5"), "id must be"),
            bad(&with("id", "1.0"), "id must be"),
            bad(&with("id", "1e3"), "id must be"),
            bad(&with("id", "true"), "id must be"),
            bad(&with("id", "{}"), "id must be"),
            bad(&with("id", "[1]"), "id must be"),
            bad(&with("id", "18446744073709551616"), "id must be"),
            bad(&with("id", "-9223372036854775809"), "id must be"),
            // There are no notifications.
            bad(&without("id"), "id is missing"),
        ];
        for value in ["null", "2.0", r#""1.0""#, r#""2""#, r#""2.0 ""#, "{}"] {
            cases.push(bad(&with("jsonrpc", value), "jsonrpc").id(1));
        }
        for value in ["null", "7", r#""""#, "{}", "[]", r#"["tasks/list"]"#] {
            cases.push(bad(&with("method", value), "method").id(1));
        }
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_of_the_right_kind_comes_back_as_it_was() {
    let good = |id: &str| {
        let value: serde_json::Value = serde_json::from_str(id).expect("an id is JSON");
        Case::body(id, with("id", id), 0, "").id(value).fine()
    };
    let long = format!("{:?}", "x".repeat(1000));
    let cases = || {
        vec![
            good("null"),
            good("0"),
            good("-1"),
            good("9007199254740993"),
            good("18446744073709551615"),
            good("-9223372036854775808"),
            good(r#""""#),
            good(r#""1""#),
            good(r#""a\"b\\c\u0000\ud83d\ude00""#),
            good(&long),
        ]
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_method_is_not_found_and_told_before_a_missing_id() {
    let long = "x".repeat(10_000);
    let cases = || {
        let names = [
            "no/such",
            "message/Send",
            "MESSAGE/SEND",
            "sendMessage",
            "message/send ",
            " tasks/list",
            "message.send",
            "/message/send",
            "tasks/list\\u0000",
            "rpc.discover",
            "__proto__",
            "tasks/*",
            "SendMessage, GetTask",
            &long,
        ];
        let mut cases: Vec<_> = names
            .iter()
            .map(|name| {
                let body = with("method", &format!("\"{name}\""));
                Case::body(name, body, -32601, "Method not found").id(1)
            })
            .collect();
        let nameless = without("id").replace("tasks/list", "no/such");
        cases.push(Case::body("no id", nameless, -32601, "Method not found"));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_are_an_object() {
    let bad = |body: String, says| Case::body(&body, &body, -32602, says).id(1);
    let get = |params| with("params", params).replace("tasks/list", "tasks/get");
    let cases = || {
        vec![
            bad(with("params", "[]"), "params"),
            bad(with("params", "[{}]"), "params"),
            bad(with("params", "7"), "params"),
            bad(with("params", "true"), "params"),
            bad(with("params", r#""{}""#), "params"),
            // None at all are none of what is needed.
            bad(get("null"), "id"),
            bad(get(""), "id"),
            bad(get("{}"), "id"),
            bad(without("id").replace("tasks/list", "tasks/get"), "id").id(serde_json::Value::Null),
            // And where nothing is needed, none are enough.
            bad(with("params", "null"), "").fine(),
            bad(without("params"), "").fine(),
            bad(with("params", r#"{"unknown": [1, {"a": null}]}"#), "").fine(),
            bad(nested(62), "").fine(),
            bad(with("extra", "7"), "").fine(),
        ]
    };
    try_all(cases).await;
}
