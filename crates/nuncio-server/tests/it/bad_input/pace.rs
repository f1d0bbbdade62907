//! Clients that are slow, or that are many and do nothing.

use super::LIST;
use crate::harness::{Connection, House, PATIENCE, World, eventually, request, script};
use std::time::{Duration, Instant};

/// So short that a test can wait for it.
const SHORT: Duration = Duration::from_millis(300);

/// Sends what never ends, a piece at a time and each in good time, until the server has had
/// enough.
async fn drip(connection: &mut Connection, piece: &[u8]) {
    let begun = Instant::now();
    while connection.try_write(piece).await.is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the server listens for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_take_too_long_end_the_connection() {
    let house = House::with(
        World::ALL[0],
        script(|turn| async move { turn.complete() }),
        |setting| setting.limits(|limits| limits.header_read = SHORT),
    );
    let mut slow = Vec::new();
    for start in [
        "",
        "P",
        "POST / HTTP/1.1\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX-",
    ] {
        let mut connection = Connection::open(house.address).await;
        connection.write(start.as_bytes()).await;
        slow.push((start, connection));
    }
    for (start, mut connection) in slow {
        assert!(connection.is_closed().await, "{start:?}");
    }
    // Each of its headers comes in time, but not all of them.
    let mut connection = Connection::open(house.address).await;
    connection.write(b"POST / HTTP/1.1\r\n").await;
    drip(&mut connection, b"X: y\r\n").await;
    assert!(connection.is_closed().await);
    // Who is quick is served; a test that was held up itself tries again.
    let answer = eventually("an answer", async || {
        let mut connection = Connection::open(house.address).await;
        let list = request("POST", "/", &[], LIST.as_bytes());
        connection.try_write(&list).await.ok()?;
        connection.try_answer("POST").await
    });
    assert_eq!(answer.await.head.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_takes_too_long_is_a_timeout() {
    let house = House::with(
        World::ALL[0],
        script(|turn| async move { turn.complete() }),
        |setting| setting.limits(|limits| limits.body_read = SHORT),
    );
    let head = |framing: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
    let (length, chunked) = ("Content-Length: 1000000", "Transfer-Encoding: chunked");
    let mut slow = Vec::new();
    for (start, piece) in [
        (head(length), ""),
        (head(length) + LIST, ""),
        (head(chunked), ""),
        (head(chunked) + "1\r\n{\r\n", ""),
        (head(length), " "),
        (head(chunked), "1\r\n \r\n"),
    ] {
        let mut connection = Connection::open(house.address).await;
        connection.write(start.as_bytes()).await;
        if !piece.is_empty() {
            // What it is told is lost on who does not stop talking.
            drip(&mut connection, piece.as_bytes()).await;
            continue;
        }
        slow.push((start, connection));
    }
    for (start, mut connection) in slow {
        let answer = connection.answer().await;
        assert_eq!(answer.head.status, 408, "{start}");
        assert_eq!(answer.json()["error"]["code"], -32600);
        assert!(connection.is_closed().await, "{start}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_idle_connections_keep_nobody_waiting() {
    let house = House::with(
        World::ALL[1],
        script(|turn| async move { turn.complete() }),
        |setting| {
            setting.limits(|limits| {
                limits.header_read = Duration::from_secs(3600);
                limits.body_read = Duration::from_secs(3600);
            })
        },
    );
    let mut idle = Vec::new();
    for n in 0..300 {
        let mut connection = Connection::open(house.address).await;
        // Some have said nothing, some a part of a head, some of a body.
        let whole = request("POST", "/", &[], LIST.as_bytes());
        let said = [0, 10, whole.len() - 10][n % 3];
        connection.write(&whole[..said]).await;
        idle.push((connection, whole[said..].to_vec()));
    }
    let peer = house.peer(World::ALL[1].dialect);
    for _ in 0..20 {
        peer.say("hi").await;
    }
    // They were not forgotten over it.
    for (mut connection, rest) in idle {
        connection.write(&rest).await;
        let answer = connection.answer().await;
        assert_eq!(answer.json()["result"]["totalSize"], 20);
    }
}
