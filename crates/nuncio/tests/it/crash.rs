//! `kill -9` while clients send, stream and cancel: nothing acknowledged is lost, no task is
//! stuck, and whoever reconnects ends with exactly the events of an undisturbed reader.

use crate::harness::{Client, Frame, Server, message};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Mutex, time::Duration};

const ROUNDS: u64 = 8;

/// What the server acknowledged before it was killed.
#[derive(Default)]
struct Acknowledged {
    /// Sends that were answered with their task.
    sent: Vec<Value>,
    /// Frames by task.
    streamed: HashMap<String, Vec<Frame>>,
    /// Tasks that were answered as canceled.
    canceled: Vec<String>,
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let data = tempfile::tempdir().unwrap();
    let acknowledged = Mutex::new(Acknowledged::default());
    for round in 0..ROUNDS {
        let server = Server::start(data.path(), &["--agent", "bench"]);
        verify(&server.client(), &acknowledged.lock().unwrap());
        std::thread::scope(|scope| {
            for n in 0..3 {
                let (client, acknowledged) = (server.client(), &acknowledged);
                scope.spawn(move || while send(&client, n, acknowledged).is_ok() {});
                let client = server.client();
                scope.spawn(move || while stream(&client, acknowledged).is_ok() {});
            }
            let (client, acknowledged) = (server.client(), &acknowledged);
            scope.spawn(move || while cancel(&client, acknowledged).is_ok() {});
            // Another moment each round; which one does not matter to what must hold.
            std::thread::sleep(Duration::from_millis(150 + 97 * round));
            server.kill();
        });
    }
    let server = Server::start(data.path(), &["--agent", "bench"]);
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.sent.len() > 20 && acknowledged.streamed.len() > 5);
    assert!(!acknowledged.canceled.is_empty());
    verify(&server.client(), &acknowledged);
    verify_all_rest(&server.client());
    assert_eq!(server.terminate(), Some(0));
}

fn send(client: &Client, n: u64, to: &Mutex<Acknowledged>) -> std::io::Result<()> {
    let reply = client.call("message/send", &message(&format!("hello from {n}")))?;
    to.lock().unwrap().sent.push(reply["result"].clone());
    Ok(())
}

fn stream(client: &Client, to: &Mutex<Acknowledged>) -> std::io::Result<()> {
    let mut task = None;
    client.follow("message/stream", &message("fanout:40:0:4"), |frame| {
        let id = match frame.result["kind"].as_str() {
            Some("task") => frame.result["id"].as_str(),
            _ => frame.result["taskId"].as_str(),
        };
        let id = task.get_or_insert_with(|| id.expect("a frame names its task").to_owned());
        to.lock()
            .unwrap()
            .streamed
            .entry(id.clone())
            .or_default()
            .push(frame);
        true
    })
}

fn cancel(client: &Client, to: &Mutex<Acknowledged>) -> std::io::Result<()> {
    let mut params = message("fanout:100000:0:5");
    params["configuration"] = json!({"blocking": false});
    let reply = client.call("message/send", &params)?;
    let id = reply["result"]["id"].as_str().expect("a task").to_owned();
    let reply = client.call("tasks/cancel", &json!({"id": id}))?;
    assert_eq!(reply["result"]["status"]["state"], "canceled", "{reply}");
    to.lock().unwrap().canceled.push(id);
    Ok(())
}

fn verify(client: &Client, acknowledged: &Acknowledged) {
    for task in &acknowledged.sent {
        let reply = client
            .call("tasks/get", &json!({"id": task["id"]}))
            .unwrap();
        assert_eq!(&reply["result"], task);
    }
    for id in &acknowledged.canceled {
        let reply = client.call("tasks/get", &json!({"id": id})).unwrap();
        assert_eq!(reply["result"]["status"]["state"], "canceled");
    }
    for (id, seen) in &acknowledged.streamed {
        verify_stream(client, id, seen);
    }
}

/// What was seen, and what comes after it, is what a reader from the beginning gets.
fn verify_stream(client: &Client, id: &str, seen: &[Frame]) {
    let params = json!({"id": id});
    let resume = |after: u64| {
        let client = client.with_header("Last-Event-ID", &after.to_string());
        let mut frames = client.frames("tasks/resubscribe", &params).unwrap();
        assert_eq!(
            frames[0].id,
            Some(after),
            "the snapshot is as of the last event"
        );
        assert_eq!(frames[0].result["kind"], "task");
        frames.remove(0);
        frames
    };
    let whole = resume(1);
    let ids: Vec<_> = whole.iter().map(|frame| frame.id.unwrap()).collect();
    let expected: Vec<_> = (2..2 + ids.len() as u64).collect();
    assert_eq!(ids, expected, "no gap and no duplicate");
    let ended = &whole.last().expect("an ended task has an end").result;
    assert_eq!(ended["final"], true, "the last event is final: {ended}");
    let last = seen.last().unwrap().id.unwrap();
    let mut mine = seen[1..].to_vec();
    mine.extend(resume(last));
    assert_eq!(mine, whole);
}

/// Every task there is has ended, and those that were cut off say why.
fn verify_all_rest(client: &Client) {
    let mut token = String::new();
    let mut cut_off = 0;
    loop {
        let page = client
            .call("tasks/list", &json!({"pageSize": 100, "pageToken": token}))
            .unwrap();
        for task in page["result"]["tasks"].as_array().unwrap() {
            let state = task["status"]["state"].as_str().unwrap();
            match state {
                "completed" | "canceled" => {}
                "failed" => {
                    cut_off += 1;
                    let reason = &task["status"]["message"]["parts"][0]["text"];
                    assert!(
                        reason.as_str().is_some_and(|r| r.contains("stopped")),
                        "{task}"
                    );
                }
                _ => panic!("a task is stuck: {task}"),
            }
        }
        token = page["result"]["nextPageToken"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert!(cut_off > 0, "no kill fell into a running task");
}
