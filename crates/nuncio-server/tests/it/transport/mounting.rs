//! A server as a part of somebody else's.

use super::three_steps;
use crate::harness::{Connection, Mounted, Peer, World, request, send};
use axum::{Router, routing::get};
use nuncio_server::{Server, core::Request};

fn agent(name: &str) -> Router {
    let server = Server::builder(three_steps()).name(name);
    server
        .base_url(format!("https://example.com/{name}"))
        .build()
        .router()
}

/// Posts a list to a path; says how many tasks there are, or the status.
async fn total(mounted: &Mounted, path: &str) -> Result<u64, u16> {
    let body = br#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}"#;
    let mut connection = Connection::open(mounted.address).await;
    connection.write(&request("POST", path, &[], body)).await;
    let answer = connection.answer().await;
    match answer.head.status {
        200 => Ok(answer.json()["result"]["totalSize"]
            .as_u64()
            .expect("a number")),
        status => Err(status),
    }
}

async fn card_name(mounted: &Mounted, path: &str) -> String {
    let peer = Peer::new(mounted.address, World::ALL[0].dialect);
    let answer = peer.fetch(path, &[]).await;
    assert_eq!(answer.head.status, 200, "{path}");
    answer.json()["name"].as_str().expect("a name").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_a_path_it_answers_with_and_without_the_slash_and_redirects_nobody() {
    let app = Router::new()
        .route("/", get(async || "the host's own"))
        .nest_service("/agent", agent("one"))
        .nest_service("/deep/er", agent("two"))
        .fallback(async || (axum::http::StatusCode::IM_A_TEAPOT, "the host's own"));
    let mounted = Mounted::serve(app).await;
    for path in [
        "/agent",
        "/agent/",
        "/agent?x=1",
        "/agent/?x=1",
        "/deep/er",
        "/deep/er/",
    ] {
        assert_eq!(total(&mounted, path).await, Ok(0), "{path}");
    }
    for name in ["agent-card.json", "agent.json"] {
        let path = format!("/agent/.well-known/{name}");
        assert_eq!(card_name(&mounted, &path).await, "one");
        let path = format!("/deep/er/.well-known/{name}");
        assert_eq!(card_name(&mounted, &path).await, "two");
    }
    for (path, status) in [
        ("/", 405),
        ("/agents", 418),
        ("/agent/x", 404),
        ("/deep", 418),
        ("/.well-known/agent-card.json", 418),
    ] {
        assert_eq!(total(&mounted, path).await, Err(status), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_or_merged_it_leaves_the_rest_to_its_host() {
    let own = || get(async || "the host's own");
    let nested = Router::new()
        .route("/own", own())
        .nest("/agent", agent("one"));
    let nested = Mounted::serve(nested.fallback(own())).await;
    assert_eq!(total(&nested, "/agent").await, Ok(0));
    assert_eq!(
        card_name(&nested, "/agent/.well-known/agent.json").await,
        "one"
    );
    let merged = Router::new().route("/own", own()).merge(agent("one"));
    let merged = Mounted::serve(merged.fallback(own())).await;
    assert_eq!(total(&merged, "/").await, Ok(0));
    assert_eq!(card_name(&merged, "/.well-known/agent.json").await, "one");
    for mounted in [nested, merged] {
        let peer = Peer::new(mounted.address, World::ALL[0].dialect);
        for path in ["/own", "/whatever"] {
            assert_eq!(
                peer.fetch(path, &[]).await.text(),
                "the host's own",
                "{path}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_agents_of_one_host_have_nothing_to_do_with_each_other() {
    let app = Router::new()
        .nest_service("/one", agent("one"))
        .nest_service("/two", agent("two"));
    let mounted = Mounted::serve(app).await;
    for World { dialect, .. } in World::ALL {
        let before = total(&mounted, "/one").await.unwrap();
        let peer = Peer::new(mounted.address, dialect);
        let send = Request::SendMessage(send("hi"));
        let body = peer.body(send.operation(), &peer.params(&send));
        // The version may stand in the address there, too.
        let path = format!("/one/?A2A-Version={}", dialect.version);
        let mut connection = Connection::open(mounted.address).await;
        connection.write(&request("POST", &path, &[], &body)).await;
        let reply = connection.answer().await.json();
        assert_eq!(
            reply["result"].get("task").is_some(),
            dialect.is_v1(),
            "{reply}"
        );
        assert_eq!(total(&mounted, "/one").await, Ok(before + 1));
        assert_eq!(total(&mounted, "/two").await, Ok(0));
    }
}
