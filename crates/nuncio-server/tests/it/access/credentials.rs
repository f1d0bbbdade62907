//! Keys that let their holders in, and everything else, which does not.

use super::{Keys, holding, told};
use crate::harness::{
    Answer, Connection, House, World, counted, everywhere, request, script, send,
};
use axum::http::HeaderName;
use nuncio_server::{
    ApiKeys, Auth, KeyFile,
    core::{Operation, Request},
};
use serde_json::json;
use std::sync::atomic::Ordering;

fn assert_is_401(answer: &Answer, why: &str) {
    assert_eq!(answer.head.status, 401, "{why}: {}", answer.text());
    assert_eq!(
        answer.head.get("www-authenticate"),
        Some("Bearer realm=\"a2a\""),
        "{why}"
    );
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    let reply = answer.json();
    assert_eq!(reply["jsonrpc"], "2.0", "{why}");
    assert!(reply["id"].is_null(), "{why}: {reply}");
    assert_eq!(reply["error"]["code"], -32600, "{why}");
    assert!(reply.get("result").is_none(), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_lets_its_holder_in_by_either_header() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let key = keys.add("alice");
        let house = keys.guard(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let bearer = format!("Bearer {key}");
        let (shouted, padded) = (format!("BEARER {key}"), format!("bearer   {key}  "));
        let ways = [
            ("Authorization", &bearer),
            ("authorization", &shouted),
            ("AUTHORIZATION", &padded),
            ("X-API-Key", &key),
            ("x-api-key", &key),
        ];
        for (count, (header, value)) in ways.into_iter().enumerate() {
            let peer = peer.with(header, value);
            peer.say("hi").await;
            // The same principal by whatever header: each sees the tasks of all.
            let page = peer.list(Default::default()).await.unwrap();
            assert_eq!(page.total_size, count as u64 + 1, "{header}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_with_credentials_gets_one_and_the_same_answer() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let key = keys.add("alice");
        let other = keys.add("bob");
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = keys.guard(world, agent);
        let bearer = format!("Bearer {key}");
        let hash = std::fs::read_to_string(keys.path()).unwrap();
        let hash = hash.split('"').find(|word| word.len() == 64).unwrap();
        let wrong: Vec<(&str, Vec<(&str, String)>)> = vec![
            ("nothing", vec![]),
            ("an empty header", vec![("Authorization", String::new())]),
            ("a scheme alone", vec![("Authorization", "Bearer".into())]),
            ("an empty token", vec![("Authorization", "Bearer  ".into())]),
            ("an empty key", vec![("X-API-Key", String::new())]),
            (
                "an unknown key",
                vec![("Authorization", "Bearer nuncio_x".into())],
            ),
            (
                "a key cut short",
                vec![("X-API-Key", key[..key.len() - 1].into())],
            ),
            ("a key and more", vec![("X-API-Key", format!("{key}A"))]),
            ("another case", vec![("X-API-Key", key.to_uppercase())]),
            ("the hash of a key", vec![("X-API-Key", hash.into())]),
            ("the holder's name", vec![("X-API-Key", "alice".into())]),
            ("no scheme", vec![("Authorization", key.clone())]),
            (
                "another scheme",
                vec![("Authorization", format!("Basic {key}"))],
            ),
            ("no space", vec![("Authorization", format!("Bearer{key}"))]),
            ("a tab", vec![("Authorization", format!("Bearer\t{key}"))]),
            (
                "two keys in one",
                vec![("Authorization", format!("{bearer}, {bearer}"))],
            ),
            (
                "not ASCII",
                vec![("Authorization", "Bearer schlüssel".into())],
            ),
            ("an oversized key", vec![("X-API-Key", "x".repeat(100_000))]),
            (
                "the same twice",
                vec![
                    ("Authorization", bearer.clone()),
                    ("Authorization", bearer.clone()),
                ],
            ),
            (
                "the same key in both headers",
                vec![
                    ("Authorization", bearer.clone()),
                    ("X-API-Key", key.clone()),
                ],
            ),
            (
                "two callers' keys",
                vec![("X-API-Key", key.clone()), ("X-API-Key", other)],
            ),
            (
                "a good key beside an empty one",
                vec![("X-API-Key", String::new()), ("X-API-Key", key.clone())],
            ),
            (
                "a good key beside another scheme",
                vec![
                    ("Authorization", "Basic YTpi".into()),
                    ("X-API-Key", key.clone()),
                ],
            ),
            (
                "a key in a cookie",
                vec![("Cookie", format!("X-API-Key={key}"))],
            ),
            (
                "a key in a header that is not named",
                vec![("X-Api-Token", key.clone())],
            ),
        ];
        let mut first = None;
        for (what, headers) in wrong {
            let mut peer = house.peer(world.dialect);
            for (name, value) in &headers {
                peer = peer.with(name, value);
            }
            let send = Request::SendMessage(send("let me in"));
            let bodies = [
                peer.body(send.operation(), &peer.params(&send)),
                peer.body(Operation::ListTasks, &json!({})),
                peer.body(Operation::GetExtendedAgentCard, &json!({})),
                peer.body(Operation::SendStreamingMessage, &peer.params(&send)),
                br#"{"jsonrpc": "2.0", "id": 1, "method": "no/such"}"#.to_vec(),
                b"no JSON".to_vec(),
            ];
            for body in bodies {
                let answer = told(&peer.post(&body).await);
                assert_is_401(&answer, what);
                let first = first.get_or_insert_with(|| answer.clone());
                assert_eq!(&answer, first, "{what}");
            }
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_address_is_no_credential() {
    let keys = Keys::new();
    let key = keys.add("alice");
    let world = World::ALL[0];
    let house = keys.guard(world, script(|turn| async move { turn.complete() }));
    for query in [
        "key",
        "api_key",
        "access_token",
        "x-api-key",
        "Authorization",
    ] {
        let path = format!("/?{query}={key}");
        let answer = house.peer(world.dialect).http("POST", &path, &[]).await;
        assert_is_401(&answer, query);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_is_told_before_the_body_is_sent() {
    let keys = Keys::new();
    let house = keys.guard(World::ALL[0], script(|turn| async move { turn.complete() }));
    for (framing, waits) in [
        ("Content-Length: 1000000000", false),
        ("Transfer-Encoding: chunked", false),
        ("Content-Length: 9\r\nExpect: 100-continue", true),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
        let mut connection = Connection::open(house.address).await;
        connection.write(head.as_bytes()).await;
        assert_is_401(&connection.answer().await, framing);
        // What was announced and never sent can't be taken for the next request.
        if waits {
            assert!(connection.is_closed().await, "{framing}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_it_all_before_listening_hears_the_refusal_too() {
    let keys = Keys::new();
    let agent = script(|turn| async move { turn.complete() });
    let house = keys.guard(World::ALL[0], agent);
    // More than sockets hold.
    let body = vec![b' '; 7 << 20];
    let mut connection = Connection::open(house.address).await;
    connection.write(&request("POST", "/", &[], &body)).await;
    assert_is_401(&connection.answer().await, "a long body");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_may_have_a_header_of_another_name() {
    let keys = Keys::new();
    let key = keys.add("alice");
    let file = KeyFile::open(keys.path()).unwrap();
    let header = HeaderName::from_static("x-our-key");
    let auth = Auth::api_keys(ApiKeys::new(file).in_header(header));
    let world = World::ALL[1];
    let agent = script(|turn| async move { turn.complete() });
    let house = House::with(world, agent, |setting| {
        setting.build(|builder| builder.auth(auth))
    });
    let peer = house.peer(world.dialect);
    peer.with("X-Our-Key", &key).say("hi").await;
    holding(&peer, &key).say("hi").await;
    let usual = peer.with("X-API-Key", &key);
    let answer = usual.call(Operation::ListTasks, &json!({})).await;
    assert_is_401(&answer, "the usual name");
    let card = peer.fetch("/.well-known/agent-card.json", &[]).await.json();
    let scheme = &card["securitySchemes"]["apiKeyHeader"]["apiKeySecurityScheme"];
    assert_eq!(scheme["name"], "x-our-key", "{card}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_is_for_everybody_and_says_how_to_get_in() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let key = keys.add("alice");
        let house = keys.guard(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let version = [("A2A-Version", world.dialect.version.as_str())];
        let open = peer.fetch("/.well-known/agent-card.json", &version).await;
        assert_eq!(open.head.status, 200);
        assert!(!open.text().contains("alice"), "{}", open.text());
        let card = open.json();
        let schemes = &card["securitySchemes"];
        if world.dialect.is_v1() {
            let bearer = &schemes["apiKeyBearer"]["httpAuthSecurityScheme"];
            assert_eq!(bearer["scheme"], "Bearer", "{card}");
            let header = &schemes["apiKeyHeader"]["apiKeySecurityScheme"];
            assert_eq!(
                (&header["location"], &header["name"]),
                (&"header".into(), &"x-api-key".into())
            );
            // Alternatives, each on its own: one of the two is enough.
            let needs = card["securityRequirements"].as_array().unwrap();
            assert!(
                needs
                    .iter()
                    .all(|need| need["schemes"].as_object().unwrap().len() == 1)
            );
            assert_eq!(needs.len(), 2);
        } else {
            assert_eq!(schemes["apiKeyBearer"]["type"], "http", "{card}");
            assert_eq!(schemes["apiKeyHeader"]["in"], "header", "{card}");
            assert_eq!(card["security"].as_array().unwrap().len(), 2);
        }
        // Credentials, good or bad, change nothing.
        for value in [format!("Bearer {key}"), "Bearer wrong".into()] {
            let headers = [version[0], ("Authorization", value.as_str())];
            let again = peer.fetch("/.well-known/agent-card.json", &headers).await;
            assert_eq!(told(&again), told(&open));
        }
    })
    .await;
}
