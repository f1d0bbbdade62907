//! Good requests under headers that are not.

use super::{BODY_BYTES, Case, LIST, try_all};
use serde_json::Value;

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_claims_to_be_no_json_is_refused_as_such() {
    let cases = || {
        let mut cases = Vec::new();
        for claim in [
            "",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "application/json-rpc",
            "application/octet-stream; type=application/json",
            "json",
            "*/*",
            "application/json, text/plain",
            "schön",
        ] {
            let headers = [("Content-Type", claim)];
            cases.push(Case::headers(&headers, -32005).says("application/json"));
        }
        for claim in [
            "application/json",
            "APPLICATION/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/a2a+json",
        ] {
            cases.push(Case::headers(&[("Content-Type", claim)], None));
        }
        // Who says nothing is believed.
        cases.push(Case::headers(&[], None));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_not_spoken_is_refused_from_the_header_and_from_the_address() {
    let cases = || {
        let mut cases = Vec::new();
        for version in [
            "2.0",
            "0.2",
            "0.30",
            "1",
            "1.",
            "1.0.",
            "1.0.x",
            "01.0",
            "latest",
            "1.0;q=1",
            "eins",
            "1.0\u{e4}",
        ] {
            let headers = [JSON, ("A2A-Version", version)];
            cases.push(Case::headers(&headers, -32009));
        }
        for version in ["", " ", "0.3", "0.3.0", "1.0", "1.0.1", "1.0.99"] {
            cases.push(Case::headers(&[JSON, ("A2A-Version", version)], None));
        }
        for address in ["/?A2A-Version=2.0", "/?x=1&a2a-version=9"] {
            cases.push(Case::headers(&[JSON], -32009).at(address));
        }
        for address in [
            "/?A2A-Version=1.0",
            "/?A2A-Version=",
            "/?version=2.0",
            "/?A2A-Version",
        ] {
            cases.push(Case::headers(&[JSON], None).at(address));
        }
        // The header is the one that counts.
        cases.push(Case::headers(&[JSON, ("A2A-Version", "1.0")], None).at("/?A2A-Version=2.0"));
        cases.push(Case::headers(&[JSON, ("A2A-Version", "2.0")], -32009).at("/?A2A-Version=1.0"));
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_that_nobody_knows_are_no_error() {
    let many = "urn:x, ".repeat(1000);
    let cases = || {
        let mut cases = Vec::new();
        for name in ["A2A-Extensions", "X-A2A-Extensions"] {
            for value in [
                "",
                "urn:no:such",
                ",,,",
                "not a URI at all",
                "\u{e4}",
                &many,
            ] {
                cases.push(Case::headers(&[JSON, (name, value)], None));
            }
        }
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_or_a_place_that_is_none_is_named() {
    let long = "x".repeat(257);
    let cases = || {
        let mut cases = Vec::new();
        for key in ["", &long, "\u{e4}"] {
            let headers = [JSON, ("Idempotency-Key", key)];
            cases.push(Case::headers(&headers, -32602).says("Idempotency-Key"));
        }
        for place in [
            "x",
            "-1",
            "1.5",
            "1 2",
            "0x1",
            "18446744073709551616",
            "\u{e4}",
        ] {
            let headers = [JSON, ("Last-Event-ID", place)];
            cases.push(Case::headers(&headers, -32602).says("Last-Event-ID"));
        }
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_beyond_the_limit_is_too_large() {
    let padded = |bytes: usize| format!("{}{LIST}", " ".repeat(bytes - LIST.len()));
    let chunked = |body: &str| {
        let half = body.len() / 2;
        let chunks = [&body[..half], &body[half..], ""];
        let chunks = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()));
        Case::headers(&[JSON, ("Transfer-Encoding", "chunked")], -32600).body_of(chunks.concat())
    };
    let cases = || {
        let large = "larger than 32768 bytes";
        let too_large = |case: Case| case.status(413).id(Value::Null).says(large);
        let plain = Case::headers(&[JSON], -32600);
        vec![
            too_large(plain.body_of(padded(BODY_BYTES + 1))),
            too_large(chunked(&padded(BODY_BYTES + 1))),
            // All of the limit is still within it.
            Case::headers(&[JSON], None).body_of(padded(BODY_BYTES)),
            chunked(&padded(BODY_BYTES)).fine(),
        ]
    };
    try_all(cases).await;
}

impl Case {
    fn body_of(mut self, body: String) -> Self {
        if let super::Ask::Http(.., bytes) = &mut self.ask {
            *bytes = body.into_bytes();
        }
        self
    }
}
