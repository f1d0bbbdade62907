//! The agent in ten lines that the README shows, as a process.

use crate::harness::{Dialect, Peer, eventually, soon};
use std::{net::SocketAddr, process::Stdio};
use tokio::{
    net::{TcpListener, TcpStream},
    process::Command,
};

/// A port that was free a moment ago.
async fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    listener.local_addr().expect("it has an address")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_echo_example_echoes_in_both_versions() {
    let tests = std::env::current_exe().expect("this test is a file");
    let target = tests.ancestors().nth(2).expect("in target/debug/deps");
    let address = free_port().await;
    let mut example = Command::new(target.join("examples/echo"))
        .arg(address.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("cargo builds examples before it runs tests");
    eventually("the example listens", async || {
        assert!(example.try_wait().expect("it can be asked").is_none());
        TcpStream::connect(address).await.ok()
    })
    .await;
    for dialect in [Dialect::V0_3, Dialect::V1_0] {
        let task = soon("an answer", Peer::new(address, dialect).say("hello")).await;
        assert_eq!(task.artifacts[0].parts[0].as_text(), Some("hello"));
    }
    // What Ctrl-C sends ends it in good order.
    let id = example.id().expect("it runs").to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().await;
    assert!(sent.expect("kill is there").success());
    let ended = soon("its end", example.wait()).await;
    assert!(ended.expect("it can be waited for").success());
}
