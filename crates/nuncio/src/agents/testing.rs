//! Tests drive an agent as its users do: a whole server, over a socket.
//!
//! The client is a few lines of HTTP/1.0, under which an answer simply lasts until the connection
//! closes: what it sees is what is on the wire, and no client library stands in between.

use nuncio_core::AgentCard;
use nuncio_server::{Agent, Limits, Server};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A bound on every wait: reached only where something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server with an agent.
pub(crate) struct Rig {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Rig {
    pub(crate) async fn start(agent: impl Agent) -> Self {
        Self::with_limits(agent, Limits::default()).await
    }

    pub(crate) async fn with_limits(agent: impl Agent, limits: Limits) -> Self {
        let any = || vec!["*/*".to_owned()];
        let card = AgentCard {
            name: "agent".into(),
            description: "An agent under test".into(),
            version: "1".into(),
            default_input_modes: any(),
            default_output_modes: any(),
            ..AgentCard::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder(agent).card(card).limits(limits);
        let serving = tokio::spawn(async move {
            let forever = std::future::pending();
            server.serve_on(listener, || Ok(()), forever).await.unwrap();
        });
        Self { address, serving }
    }

    async fn post(&self, method: &str, params: Value) -> BufReader<TcpStream> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let head = format!(
            "POST / HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n\
             A2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(body.as_bytes()).await.unwrap();
        let mut answer = BufReader::new(connection);
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(PATIENCE, answer.read_line(&mut line)).await;
            assert!(
                read.unwrap().unwrap() > 0,
                "the connection closed within the head"
            );
            if line == "\r\n" {
                return answer;
            }
        }
    }

    /// The whole answer to a call.
    pub(crate) async fn reply(&self, method: &str, params: Value) -> Value {
        let mut answer = self.post(method, params).await;
        let mut body = Vec::new();
        tokio::time::timeout(PATIENCE, answer.read_to_end(&mut body))
            .await
            .unwrap()
            .unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The result of a call that is to succeed.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        let mut reply = self.reply(method, params).await;
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].take()
    }

    /// Sends a message and waits for its answer.
    pub(crate) async fn send(&self, message: Value) -> Value {
        self.call("SendMessage", json!({"message": message})).await
    }

    /// Sends a message and streams its answer.
    pub(crate) async fn stream(&self, message: Value) -> Stream {
        let answer = self
            .post("SendStreamingMessage", json!({"message": message}))
            .await;
        Stream(answer.lines())
    }
}

/// The events of a stream, as they come.
pub(crate) struct Stream(Lines<BufReader<TcpStream>>);

impl Stream {
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.0.next_line())
                .await
                .unwrap();
            if let Some(data) = line.unwrap()?.strip_prefix("data: ") {
                let mut frame: Value = serde_json::from_str(data).unwrap();
                assert!(frame.get("error").is_none(), "{frame}");
                return Some(frame["result"].take());
            }
        }
    }

    /// The next event that `wanted` finds something in.
    pub(crate) async fn find<T>(&mut self, wanted: impl Fn(&Value) -> Option<T>) -> T {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }

    /// All that is left.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// A user's message of one text.
pub(crate) fn text_message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}
