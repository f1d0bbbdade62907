//! Just enough HTTP/1.1: one kept-alive connection, and answers framed in any of the three ways.

use std::{io, net::SocketAddr};

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::{io::AsyncReadExt, io::AsyncWriteExt, net::TcpStream};

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("i/o: {0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection within {0}")]
    Ended(&'static str),
    #[error("{0} can't be read")]
    Malformed(&'static str),
}

/// A connection with at most one exchange under way.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Read and not used yet.
    unread: BytesMut,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// The head of an answer, and how much of its body is still to come.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Whether the body is a stream of Server-Sent Events.
    pub(crate) is_sse: bool,
    framing: Framing,
    close: bool,
}

impl Head {
    /// Whether the connection takes another request after this answer.
    pub(crate) fn keeps_alive(&self) -> bool {
        !self.close && self.framing != Framing::UntilClose
    }

    fn parse(head: &[u8]) -> Result<Self, HttpError> {
        let text = std::str::from_utf8(head).map_err(|_| HttpError::Malformed("the head"))?;
        let mut lines = text.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or(HttpError::Malformed("the status line"))?;
        let (mut framing, mut close, mut is_sse) = (Framing::UntilClose, false, false);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let length = value
                    .parse()
                    .map_err(|_| HttpError::Malformed("Content-Length"))?;
                framing = Framing::Length(length);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Framing::Chunked;
            } else if name.eq_ignore_ascii_case("connection") {
                close = value.eq_ignore_ascii_case("close");
            } else if name.eq_ignore_ascii_case("content-type") {
                let sse = b"text/event-stream";
                let start = value.as_bytes().get(..sse.len());
                is_sse = start.is_some_and(|start| start.eq_ignore_ascii_case(sse));
            }
        }
        Ok(Self {
            status,
            is_sse,
            framing,
            close,
        })
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, HttpError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            unread: BytesMut::with_capacity(16 << 10),
        })
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Head, HttpError> {
        self.stream.write_all(request).await?;
        loop {
            if let Some(end) = memmem::find(&self.unread, b"\r\n\r\n") {
                let head = Head::parse(&self.unread[..end])?;
                self.unread.advance(end + 4);
                return Ok(head);
            }
            self.fill("the head").await?;
        }
    }

    /// Adds what comes next of the body; false at its end.
    pub(crate) async fn piece(
        &mut self,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<bool, HttpError> {
        match &mut head.framing {
            Framing::Chunked => self.chunk(out).await,
            Framing::Length(0) => Ok(false),
            Framing::Length(left) => {
                if self.unread.is_empty() {
                    self.fill("the body").await?;
                }
                let taken = self.unread.len().min(*left);
                out.extend_from_slice(&self.unread[..taken]);
                self.unread.advance(taken);
                *left -= taken;
                Ok(true)
            }
            Framing::UntilClose => {
                if self.unread.is_empty() && self.stream.read_buf(&mut self.unread).await? == 0 {
                    return Ok(false);
                }
                out.extend_from_slice(&self.unread);
                self.unread.clear();
                Ok(true)
            }
        }
    }

    /// Replaces `out` by the whole body.
    pub(crate) async fn body(
        &mut self,
        head: &mut Head,
        out: &mut Vec<u8>,
    ) -> Result<(), HttpError> {
        out.clear();
        while self.piece(head, out).await? {}
        Ok(())
    }

    async fn chunk(&mut self, out: &mut Vec<u8>) -> Result<bool, HttpError> {
        const WRONG: HttpError = HttpError::Malformed("a chunk");
        let line = loop {
            match memmem::find(&self.unread, b"\r\n") {
                Some(line) => break line,
                None => self.fill("a chunk's head").await?,
            }
        };
        let size = std::str::from_utf8(&self.unread[..line]).map_err(|_| WRONG)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| WRONG)?;
        self.unread.advance(line + 2);
        let whole = size.checked_add(2).ok_or(WRONG)?;
        while self.unread.len() < whole {
            self.fill("a chunk").await?;
        }
        out.extend_from_slice(&self.unread[..size]);
        if &self.unread[size..whole] != b"\r\n" {
            return Err(WRONG);
        }
        self.unread.advance(whole);
        Ok(size != 0)
    }

    async fn fill(&mut self, within: &'static str) -> Result<(), HttpError> {
        self.unread.reserve(8 << 10);
        match self.stream.read_buf(&mut self.unread).await? {
            0 => Err(HttpError::Ended(within)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn body_of(answer: &'static [u8]) -> Result<(u16, bool, Vec<u8>), HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 3];
            stream.read_exact(&mut request).await.unwrap();
            // By halves, so that nothing comes in one piece.
            let (first, second) = answer.split_at(answer.len() / 2);
            stream.write_all(first).await.unwrap();
            tokio::task::yield_now().await;
            stream.write_all(second).await.unwrap();
        };
        let client = async {
            let mut connection = Connection::open(address).await?;
            let mut head = connection.ask(b"ask").await?;
            let mut body = Vec::new();
            connection.body(&mut head, &mut body).await?;
            Ok((head.status, head.keeps_alive(), body))
        };
        futures_util::future::join(server, client).await.1
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn a_body_is_framed_in_three_ways() {
        for (answer, keeps_alive) in [
            (&b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"[..], true),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", false),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", true),
            (b"HTTP/1.1 200 OK\r\n\r\nhello", false),
        ] {
            let read = block_on(body_of(answer)).unwrap();
            assert_eq!(read, (200, keeps_alive, b"hello".to_vec()), "{}", answer.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
            b"hello\r\n\r\n",
        ] {
            assert!(
                block_on(body_of(answer)).is_err(),
                "{}",
                answer.escape_ascii()
            );
        }
    }
}
