//! Methods and paths that there are, and those that there are not.

use super::three_steps;
use crate::harness::{Connection, House, World, request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_a_path_does_not_have_is_told_which_it_has() {
    let house = House::of(World::ALL[0], three_steps());
    let peer = house.peer(World::ALL[0].dialect);
    let others = [
        "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "post",
    ];
    let paths = [
        ("/", ["GET", "HEAD"], "POST"),
        (
            "/.well-known/agent-card.json",
            ["POST", "QUERY"],
            "GET,HEAD",
        ),
        ("/.well-known/agent.json", ["POST", "QUERY"], "GET,HEAD"),
    ];
    for (path, more, allowed) in paths {
        for method in others.into_iter().chain(more) {
            let answer = peer.http(method, path, &[]).await;
            assert_eq!(answer.head.status, 405, "{method} {path}");
            assert_eq!(answer.head.get("allow"), Some(allowed), "{method} {path}");
            assert_eq!(answer.text(), "", "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_there_is_not_is_not_found() {
    let house = House::of(World::ALL[0], three_steps());
    let peer = house.peer(World::ALL[0].dialect);
    for path in [
        "/x",
        "//",
        "/.well-known",
        "/.well-known/",
        "/.well-known/agent-card.json/",
        "/.well-known/Agent-Card.json",
        "/.well-known/../.well-known/agent-card.json",
        "/%2e%2e/etc/passwd",
        "/.well-known/%00",
        "/v1/card",
        "/favicon.ico",
    ] {
        for method in ["GET", "POST", "HEAD", "OPTIONS"] {
            let answer = peer.http(method, path, &[]).await;
            assert_eq!(answer.head.status, 404, "{method} {path}");
            assert_eq!(answer.text(), "", "{method} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_may_name_the_whole_address_as_proxies_do() {
    let house = House::of(World::ALL[0], three_steps());
    let body = br#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}"#;
    for target in ["http://agent.test/", "http://agent.test", "/?", "/?x=y"] {
        let mut connection = Connection::open(house.address).await;
        connection.write(&request("POST", target, &[], body)).await;
        let answer = connection.answer().await;
        assert_eq!(answer.head.status, 200, "{target}");
        assert_eq!(answer.json()["id"], 1, "{target}");
    }
}
