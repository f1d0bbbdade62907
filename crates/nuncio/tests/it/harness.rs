//! A `nuncio serve` process, and a client so plain that it can't hide anything.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Long enough that only a hang gets there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under test.
pub(crate) fn nuncio() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nuncio"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("NUNCIO_")) {
        command.env_remove(name);
    }
    command
}

/// A server process; it is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    /// What it printed before it was ready, without the first line.
    pub(crate) greeting: Vec<String>,
}

impl Server {
    /// Serves with a data folder and further arguments, on a free port.
    pub(crate) fn start(data: &Path, args: &[&str]) -> Self {
        let mut command = nuncio();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(args);
        Self::spawn(command)
    }

    /// Starts a command that serves and waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("nuncio starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let first = lines
            .next()
            .expect("nuncio printed a line")
            .expect("in UTF-8");
        let address = first
            .strip_prefix("listening on http://")
            .unwrap_or_else(|| panic!("the first line is {first:?}"))
            .to_owned();
        let mut greeting = Vec::new();
        for line in lines.by_ref() {
            let line = line.expect("in UTF-8");
            let last = line.starts_with("try: ");
            greeting.push(line);
            if last {
                break;
            }
        }
        Self {
            child,
            address,
            greeting,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            address: self.address.clone(),
            headers: String::new(),
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// SIGTERM; says with which code it ended.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .expect("kill runs");
        assert!(sent.success());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end after SIGTERM");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: String,
    headers: String,
}

/// One frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) result: Value,
}

impl Client {
    /// The same client with one more header on every request.
    pub(crate) fn with_header(&self, name: &str, value: &str) -> Self {
        let headers = format!("{}{name}: {value}\r\n", self.headers);
        Self {
            headers,
            ..self.clone()
        }
    }

    fn post(&self, method: &str, params: &Value) -> std::io::Result<BufReader<TcpStream>> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // HTTP/1.0: the body is what comes until the connection closes.
        write!(
            stream,
            "POST / HTTP/1.0\r\nHost: test\r\nContent-Type: application/json\r\n{}\
             Content-Length: {}\r\n\r\n{body}",
            self.headers,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                return Ok(reader);
            }
        }
    }

    /// The whole answer to a call.
    pub(crate) fn call(&self, method: &str, params: &Value) -> std::io::Result<Value> {
        let mut body = String::new();
        self.post(method, params)?.read_to_string(&mut body)?;
        serde_json::from_str(&body).map_err(|_| std::io::ErrorKind::UnexpectedEof.into())
    }

    /// Follows a stream; every whole frame is handed over. Ends with the stream or when `each`
    /// says `false`.
    pub(crate) fn follow(
        &self,
        method: &str,
        params: &Value,
        mut each: impl FnMut(Frame) -> bool,
    ) -> std::io::Result<()> {
        let mut reader = self.post(method, params)?;
        let (mut id, mut data) = (None, None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if !line.ends_with('\n') {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.parse().ok();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(text.to_owned());
            } else if line.is_empty() {
                let Some(text) = data.take() else { continue };
                let mut reply: Value = serde_json::from_str(&text).expect("a frame is JSON");
                let result = match reply["result"].take() {
                    Value::Null => reply,
                    result => result,
                };
                if !each(Frame {
                    id: id.take(),
                    result,
                }) {
                    return Ok(());
                }
            }
        }
    }

    /// All frames of a stream.
    pub(crate) fn frames(&self, method: &str, params: &Value) -> std::io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        self.follow(method, params, |frame| {
            frames.push(frame);
            true
        })?;
        Ok(frames)
    }
}

/// Parameters of a 0.3 send.
pub(crate) fn message(text: &str) -> Value {
    json!({"message": {
        "kind": "message", "messageId": "m", "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }})
}
