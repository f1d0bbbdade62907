//! What scripts rely on: first lines, exit codes, refusals.

use crate::harness::{Client, Server, message, nuncio};
use serde_json::json;
use std::{path::Path, process::Output};

fn run(args: &[&str], data: &Path) -> Output {
    nuncio()
        .args(args)
        .env("NUNCIO_DATA", data)
        .output()
        .expect("nuncio runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn serve_says_where_it_is_and_a_curl_line_that_works() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let line = server
        .greeting
        .iter()
        .find_map(|l| l.strip_prefix("try: "))
        .expect("a try line");
    let output = std::process::Command::new("sh")
        .args(["-c", line])
        .output()
        .unwrap();
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reply["result"]["status"]["state"], "completed");
    assert_eq!(reply["result"]["artifacts"][0]["parts"][0]["text"], "hello");
    assert!(
        server.greeting.iter().any(|l| l.contains("nuncio.db")),
        "says where it stores"
    );
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn tasks_survive_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let reply = server
        .client()
        .call("message/send", &message("one two"))
        .unwrap();
    assert_eq!(server.terminate(), Some(0));
    let server = Server::start(data.path(), &[]);
    let again = server
        .client()
        .call("tasks/get", &json!({"id": reply["result"]["id"]}))
        .unwrap();
    assert_eq!(again["result"], reply["result"]);
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let _server = Server::start(data.path(), &[]);
    let second = run(&["serve", "--listen", "127.0.0.1:0"], data.path());
    assert_eq!(second.status.code(), Some(2));
    let said = text(&second.stderr);
    assert!(said.contains("nuncio.db"), "{said}");
    assert!(second.stdout.is_empty(), "it did not say that it listens");
}

#[test]
fn everybody_is_not_served_beyond_loopback_unless_told_to() {
    let data = tempfile::tempdir().unwrap();
    let refused = run(
        &["serve", "--listen", "0.0.0.0:0", "--store", "memory"],
        data.path(),
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--dangerously-serve-everybody"));
    assert!(refused.stdout.is_empty());
    let mut command = nuncio();
    command.args(["serve", "--listen", "0.0.0.0:0", "--store", "memory"]);
    command
        .arg("--dangerously-serve-everybody")
        .env("NUNCIO_DATA", data.path());
    drop(Server::spawn(command));
}

#[test]
fn keys_let_in_and_keep_apart() {
    let data = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let added = run(&["keys", "add", name], data.path());
        assert!(added.status.success());
        text(&added.stdout).trim().to_owned()
    };
    let (alice, bob) = (key("alice"), key("bob"));
    let stored = std::fs::read_to_string(data.path().join("keys.json")).unwrap();
    assert!(!stored.contains(&alice), "the file has no key");
    let listed = text(&run(&["keys", "list"], data.path()).stdout);
    assert!(listed.contains("alice") && !listed.contains(&alice));

    let server = Server::start(data.path(), &[]);
    let nobody = server.client();
    let as_who = |key: &str| nobody.with_header("Authorization", &format!("Bearer {key}"));
    let refused = nobody.call("message/send", &message("hi")).unwrap();
    assert_eq!(refused["error"]["code"], -32600);
    let task = as_who(&alice).call("message/send", &message("hi")).unwrap();
    let params = json!({"id": task["result"]["id"]});
    let get = |client: &Client| client.call("tasks/get", &params).unwrap();
    assert_eq!(get(&as_who(&alice))["result"]["id"], params["id"]);
    assert_eq!(get(&as_who(&bob))["error"]["code"], -32001);
    assert_eq!(get(&as_who("nuncio_wrong"))["error"]["code"], -32600);
    assert_eq!(
        get(&nobody.with_header("X-API-Key", &alice))["result"]["id"],
        params["id"]
    );
}

#[test]
fn the_configuration_is_written_checked_and_refused() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("n.toml");
    let file = path.to_str().unwrap();
    assert!(run(&["init", file], data.path()).status.success());
    let again = run(&["init", file], data.path());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("--force"));
    let checked = run(&["check-config", "--config", file], data.path());
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(text(&checked.stdout).contains("body_bytes = 8388608"));
    std::fs::write(&path, "[limits]\nbody_byte = 1\n").unwrap();
    let wrong = run(&["check-config", "--config", file], data.path());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("body_byte"));
}

#[test]
fn an_echo_comes_a_word_a_chunk() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--store", "memory"]);
    let frames = server
        .client()
        .frames("message/stream", &message("one  two three"))
        .unwrap();
    let chunks: Vec<_> = frames
        .iter()
        .filter(|frame| frame.result["kind"] == "artifact-update")
        .map(|frame| {
            frame.result["artifact"]["parts"][0]["text"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks.concat(), "one  two three");
}
