//! HTTP/1.1 so plain that it can't hide anything: bytes out, a head and a body back.

use super::PATIENCE;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// A header's value, by its name in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the body is no JSON ({error}): {:?}", self.text()))
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What is left of the body being read.
    body: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server takes connections");
        stream.set_nodelay(true).expect("TCP_NODELAY can be set");
        Self {
            stream,
            buffer: Vec::new(),
            body: Framing::Length(0),
        }
    }

    /// A connection with little room for what has not been read.
    pub(crate) async fn open_narrow(address: SocketAddr) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket can be made");
        socket
            .set_recv_buffer_size(16 << 10)
            .expect("the buffer can be set");
        let stream = socket
            .connect(address)
            .await
            .expect("the server takes connections");
        Self {
            stream,
            buffer: Vec::new(),
            body: Framing::Length(0),
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).await.expect("the server reads");
    }

    /// Writes to a server that may have had enough.
    pub(crate) async fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        timeout(PATIENCE, self.stream.write_all(bytes))
            .await
            .expect("the server reads in time")
    }

    /// Says that no more comes from this side.
    pub(crate) async fn close_sending(&mut self) {
        self.stream
            .shutdown()
            .await
            .expect("the sending side can be closed");
    }

    /// Goes away without a goodbye: the server sees the connection reset.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("linger can be set");
    }

    /// Reads more; `false` at the end of the connection.
    async fn fill(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await;
        match read.expect("the server says something in time") {
            Ok(count) => count > 0,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("the connection broke: {error}"),
        }
    }

    /// Whether the server has closed the connection, or does so without saying more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }

    /// Reads the head of an answer; `None` where the connection ended instead.
    pub(crate) async fn read_head(&mut self, method: &str) -> Option<Head> {
        loop {
            let end = loop {
                if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                    break at;
                }
                if !self.fill().await {
                    assert!(self.buffer.is_empty(), "half a head: {:?}", self.buffer);
                    return None;
                }
            };
            let head = String::from_utf8(self.buffer[..end].to_vec()).expect("a head is text");
            self.buffer.drain(..end + 4);
            let head = parse_head(&head);
            if head.status == 100 {
                continue;
            }
            self.body = framing(method, &head);
            return Some(head);
        }
    }

    /// Waits for `100 Continue`.
    pub(crate) async fn read_continue(&mut self) {
        const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        while self.buffer.len() < CONTINUE.len() && self.fill().await {}
        assert!(
            self.buffer.starts_with(CONTINUE),
            "{:?}",
            String::from_utf8_lossy(&self.buffer)
        );
        self.buffer.drain(..CONTINUE.len());
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn read_piece(&mut self) -> Option<Vec<u8>> {
        match self.body {
            Framing::Length(0) => None,
            Framing::Length(left) => {
                if self.buffer.is_empty() {
                    assert!(self.fill().await, "the body ended {left} bytes early");
                }
                let count = left.min(self.buffer.len());
                self.body = Framing::Length(left - count);
                Some(self.buffer.drain(..count).collect())
            }
            Framing::UntilClose => {
                if self.buffer.is_empty() && !self.fill().await {
                    return None;
                }
                Some(std::mem::take(&mut self.buffer))
            }
            Framing::Chunked => {
                let line = loop {
                    if let Some(at) = find(&self.buffer, b"\r\n") {
                        break at;
                    }
                    if !self.fill().await {
                        return None;
                    }
                };
                let size = std::str::from_utf8(&self.buffer[..line]).expect("a size is text");
                let size = usize::from_str_radix(size, 16).expect("a size is hexadecimal");
                while self.buffer.len() < line + 2 + size + 2 {
                    if !self.fill().await {
                        return None;
                    }
                }
                let piece = self.buffer[line + 2..line + 2 + size].to_vec();
                self.buffer.drain(..line + 2 + size + 2);
                if size == 0 {
                    self.body = Framing::Length(0);
                    return None;
                }
                Some(piece)
            }
        }
    }

    /// Reads a whole answer; `None` where the connection ended instead.
    pub(crate) async fn try_answer(&mut self, method: &str) -> Option<Answer> {
        let head = self.read_head(method).await?;
        let mut body = Vec::new();
        while let Some(piece) = self.read_piece().await {
            body.extend(piece);
        }
        Some(Answer { head, body })
    }

    /// Reads a whole answer to a POST.
    pub(crate) async fn answer(&mut self) -> Answer {
        self.try_answer("POST").await.expect("the server answers")
    }
}

/// A request with a body of known length.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        bytes.push_str("Host: agent.test\r\n");
    }
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    let has_length = headers.iter().any(|(name, _)| {
        name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
    });
    if !has_length && (!body.is_empty() || method == "POST") {
        bytes.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    bytes.push_str("\r\n");
    let mut bytes = bytes.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn parse_head(text: &str) -> Head {
    let mut lines = text.split("\r\n");
    let first = lines.next().expect("a head has a first line");
    let status = first.split(' ').nth(1).and_then(|s| s.parse().ok());
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        })
        .collect();
    Head {
        status: status.unwrap_or_else(|| panic!("no status in {first:?}")),
        headers,
    }
}

fn framing(method: &str, head: &Head) -> Framing {
    if method == "HEAD" || head.status == 304 {
        return Framing::Length(0);
    }
    if head.get("transfer-encoding") == Some("chunked") {
        return Framing::Chunked;
    }
    match head.get("content-length") {
        Some(length) => Framing::Length(length.parse().expect("a length is a number")),
        None => Framing::UntilClose,
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
