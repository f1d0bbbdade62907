//! Connections that do not do as they should, and such as do so in unusual ways.

use super::{BODY_BYTES, LIST};
use crate::harness::{
    Answer, Connection, Gate, House, World, counted, everywhere, request, script, send,
};
use nuncio_server::core::{Request, TaskState};
use serde_json::json;
use std::sync::atomic::Ordering;

fn list_of_id(id: u32) -> Vec<u8> {
    let body = LIST.replace("\"id\": 1", &format!("\"id\": {id}"));
    request("POST", "/", &[], body.as_bytes())
}

/// An error of the transport: its body is JSON all the same, and the connection ends with it.
async fn assert_ends_with(mut connection: Connection, status: u16, says: &str) {
    let answer = connection.answer().await;
    assert_eq!(answer.head.status, status, "{}", answer.text());
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    let reply = answer.json();
    assert_eq!(reply["error"]["code"], -32600, "{reply}");
    assert!(reply["id"].is_null(), "{reply}");
    let message = reply["error"]["message"].as_str().expect("a message");
    assert!(message.contains(says), "{message}");
    assert_eq!(answer.head.get("connection"), Some("close"));
    assert!(connection.is_closed().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_said_all_it_wanted_still_gets_its_answer() {
    everywhere(async |world: World| {
        let (begun, gate) = (Gate::new(), Gate::new());
        let (begin, wait) = (begun.clone(), gate.clone());
        let agent = script(move |turn| {
            let (begin, wait) = (begin.clone(), wait.clone());
            async move {
                begin.open();
                wait.pass().await;
                turn.complete_with("done")
            }
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for ask in [Request::SendMessage, Request::SendStreamingMessage] {
            let mut connection = Connection::open(house.address).await;
            connection
                .write(&peer.request_bytes(&ask(send("hi"))))
                .await;
            connection.close_sending().await;
            begun.reached().await;
            gate.open();
            let answer = connection.answer().await;
            assert_eq!(answer.head.status, 200);
            assert!(answer.text().contains("done"), "{}", answer.text());
            assert!(connection.is_closed().await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_in_the_middle_of_its_request_runs_nothing() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let bytes = peer.request_bytes(&Request::SendMessage(send("hi")));
        let head = bytes
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .expect("a head")
            + 4;
        for cut in [0, 1, 20, head - 2, head, head + 1, bytes.len() - 1] {
            for in_peace in [true, false] {
                let mut connection = Connection::open(house.address).await;
                connection.write(&bytes[..cut]).await;
                if in_peace {
                    drop(connection);
                } else {
                    connection.reset();
                }
            }
        }
        let task = peer.say("hi").await;
        assert_eq!(task.status.state, TaskState::Completed);
        let page = peer.list(Default::default()).await.unwrap();
        assert_eq!((page.total_size, runs.load(Ordering::SeqCst)), (1, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_ends_early_or_is_no_body_is_refused() {
    let (agent, runs) = counted(|turn| async move { turn.complete() });
    let house = House::of(World::ALL[0], agent);
    let head = |framing: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
    let body = r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}}"#;
    let (length, chunked) = ("Content-Length: 1000", "Transfer-Encoding: chunked");
    let cases = [
        // Whole JSON, but not the whole body.
        (head(length) + body, true),
        (head(length), true),
        (head(chunked), true),
        (
            format!("{}{:x}\r\n{body}\r\n", head(chunked), body.len()),
            true,
        ),
        (head(chunked) + "40\r\n{", true),
        // What is no chunk is known to be none before the end.
        (head(chunked) + "zz\r\n{}\r\n0\r\n\r\n", false),
        (head(chunked) + "-1\r\n{}\r\n0\r\n\r\n", false),
        (head(chunked) + "1\r\n{}\r\n0\r\n\r\n", false),
        (
            head(chunked) + "fffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
            false,
        ),
    ];
    for (bytes, ends) in cases {
        let mut connection = Connection::open(house.address).await;
        connection.write(bytes.as_bytes()).await;
        if ends {
            connection.close_sending().await;
        }
        assert_ends_with(connection, 400, "ended early").await;
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_and_pieces_of_any_size_are_one_body() {
    let house = House::of(World::ALL[0], script(|turn| async move { turn.complete() }));
    let mut chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for byte in LIST.bytes() {
        chunked.extend_from_slice(b"1;ext=x\r\n");
        chunked.push(byte);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
    let mut connection = Connection::open(house.address).await;
    for bytes in [chunked.clone(), list_of_id(1)] {
        connection.write(&bytes).await;
        assert!(connection.answer().await.json()["result"].is_object());
        for byte in &bytes {
            connection.write(&[*byte]).await;
        }
        assert!(connection.answer().await.json()["result"].is_object());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_are_answered_in_order_whatever_they_are() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let stream = Request::SendStreamingMessage(send("hi"));
        let mut bytes = list_of_id(1);
        bytes.extend(peer.bytes(b"no JSON"));
        bytes.extend(peer.request_bytes(&stream));
        bytes.extend(list_of_id(2));
        bytes.extend(request("GET", "/no/such", &[], b""));
        bytes.extend(list_of_id(3));
        let mut connection = Connection::open(house.address).await;
        connection.write(&bytes).await;
        let total = |answer: &Answer| answer.json()["result"]["totalSize"].clone();
        let first = connection.answer().await;
        assert_eq!((&first.json()["id"], total(&first)), (&json!(1), json!(0)));
        let second = connection.answer().await;
        assert_eq!(second.json()["error"]["code"], -32700);
        let third = connection.answer().await;
        assert_eq!(third.head.get("content-type"), Some("text/event-stream"));
        // By then the task is there.
        let fourth = connection.answer().await;
        assert_eq!(
            (&fourth.json()["id"], total(&fourth)),
            (&json!(2), json!(1))
        );
        assert_eq!(connection.answer().await.head.status, 404);
        assert_eq!(connection.answer().await.json()["id"], 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_before_sending_a_body_is_told_to_go_on_or_not_to() {
    let house = House::with(
        World::ALL[0],
        script(|turn| async move { turn.complete() }),
        |setting| setting.limits(|limits| limits.body_bytes = BODY_BYTES),
    );
    let head = |length: usize| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ";
        format!("{head}{length}\r\n\r\n")
    };
    let mut connection = Connection::open(house.address).await;
    for _ in 0..2 {
        connection.write(head(LIST.len()).as_bytes()).await;
        connection.read_continue().await;
        connection.write(LIST.as_bytes()).await;
        assert!(connection.answer().await.json()["result"].is_object());
    }
    // Nor does it take a byte of the body to know that there are too many.
    for length in [BODY_BYTES + 1, usize::MAX / 2] {
        connection = Connection::open(house.address).await;
        connection.write(head(length).as_bytes()).await;
        assert_ends_with(connection, 413, "larger than").await;
        connection = Connection::open(house.address).await;
        let plain = head(length).replace("Expect: 100-continue\r\n", "");
        connection.write(plain.as_bytes()).await;
        assert_eq!(connection.answer().await.head.status, 413);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_too_much_before_listening_hears_that_it_was() {
    const LIMIT: usize = 3 << 20;
    let agent = script(|turn| async move { turn.complete() });
    let house = House::with(World::ALL[0], agent, |setting| {
        setting.limits(|limits| limits.body_bytes = LIMIT)
    });
    // More than sockets hold.
    let body = vec![b' '; 2 * LIMIT];
    let mut chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(1 << 20) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend_from_slice(chunk);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    for bytes in [request("POST", "/", &[], &body), chunked] {
        let mut connection = Connection::open(house.address).await;
        connection.write(&bytes).await;
        assert_ends_with(connection, 413, "larger than").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_http_1_0_get_answers_and_streams_that_end_with_the_connection() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move { turn.complete_with("done") });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        for ask in [Request::SendMessage, Request::SendStreamingMessage] {
            let bytes = peer.request_bytes(&ask(send("hi")));
            let bytes = String::from_utf8(bytes).expect("a request is text");
            let mut connection = Connection::open(house.address).await;
            let older = bytes.replacen("HTTP/1.1", "HTTP/1.0", 1);
            connection.write(older.as_bytes()).await;
            let answer = connection.answer().await;
            assert_eq!(answer.head.get("transfer-encoding"), None);
            assert!(answer.text().contains("done"), "{}", answer.text());
            assert!(connection.is_closed().await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_http_is_shown_the_door() {
    let house = House::of(World::ALL[0], script(|turn| async move { turn.complete() }));
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(1000));
    let cases: [&[u8]; 9] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a handshake \r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"{\"jsonrpc\": \"2.0\"}\r\n\r\n",
        b"POST / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in cases {
        let mut connection = Connection::open(house.address).await;
        // It may have had enough before it has heard all.
        let _ = connection.try_write(bytes).await;
        if let Some(answer) = connection.try_answer("GET").await {
            let status = answer.head.status;
            assert!(matches!(status, 400 | 431 | 505), "{status}");
        }
        assert!(connection.is_closed().await);
    }
    let mut connection = Connection::open(house.address).await;
    connection.write(&list_of_id(1)).await;
    assert!(connection.answer().await.json()["result"].is_object());
}
