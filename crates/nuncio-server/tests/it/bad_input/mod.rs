//! Requests and connections as they should not be: each has its answer, and none leaves a mark.

mod connections;
mod envelope;
mod headers;
mod messages;
mod pace;
mod parameters;

use crate::harness::{
    Answer, Connection, Dialect, House, World, counted, error_of, everywhere, request, send,
};
use nuncio_server::core::{Operation, TaskState};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Most parts of a message here, and most bytes of a body.
const PARTS: usize = 8;
const BODY_BYTES: usize = 32 << 10;

/// A bad request and what it is told.
struct Case {
    name: String,
    ask: Ask,
    status: u16,
    /// The error's code; `None` where the request is odd but good.
    code: Option<i64>,
    /// The id that comes back.
    id: Value,
    /// The field that a -32602 names; what the message of any other error says.
    says: &'static str,
}

enum Ask {
    /// Under the usual headers.
    Body(Vec<u8>),
    /// Under these headers alone.
    Http(&'static str, Vec<(&'static str, String)>, Vec<u8>),
    /// As the parameters of an operation. `OPEN` and `ENDED` stand for tasks that exist.
    Params(Operation, Value),
}

impl Case {
    /// A body, which is refused whatever else is wrong.
    fn body(name: &str, body: impl AsRef<[u8]>, code: i64, says: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            ask: Ask::Body(body.as_ref().to_vec()),
            status: 200,
            code: Some(code),
            id: Value::Null,
            says,
        }
    }

    /// Headers around a good request for a list, whose id is 1.
    fn headers(headers: &[(&'static str, &str)], code: impl Into<Option<i64>>) -> Self {
        let owned = headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Self {
            name: format!("{headers:?}"),
            ask: Ask::Http("/", owned.collect(), LIST.into()),
            status: 200,
            code: code.into(),
            id: json!(1),
            says: "",
        }
    }

    fn params(operation: Operation, params: Value, code: i64, says: &'static str) -> Self {
        Self {
            name: format!("{} {params}", operation.pascal_name()),
            ask: Ask::Params(operation, params),
            status: 200,
            code: Some(code),
            id: json!(7),
            says,
        }
    }

    fn id(mut self, id: impl Into<Value>) -> Self {
        self.id = id.into();
        self
    }

    /// It is good after all.
    fn fine(mut self) -> Self {
        self.code = None;
        self
    }

    fn at(mut self, address: &'static str) -> Self {
        if let Ask::Http(path, ..) = &mut self.ask {
            *path = address;
        }
        self.name.push_str(address);
        self
    }

    fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    fn bytes(&self, dialect: Dialect, tasks: [&str; 2]) -> Vec<u8> {
        let usual = [
            ("Content-Type", "application/json"),
            ("A2A-Version", dialect.version.as_str()),
        ];
        match &self.ask {
            Ask::Body(body) => request("POST", "/", &usual, body),
            Ask::Http(path, headers, body) => {
                let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
                request("POST", path, &headers, body)
            }
            Ask::Params(operation, params) => {
                let method = dialect.method(*operation);
                let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
                let body = body.to_string();
                let body = body.replace("OPEN", tasks[0]).replace("ENDED", tasks[1]);
                request("POST", "/", &usual, body.as_bytes())
            }
        }
    }

    fn check(&self, answer: &Answer) {
        let (name, text) = (&self.name, answer.text());
        assert_eq!(answer.head.status, self.status, "{name}: {text}");
        assert_eq!(
            answer.head.get("content-type"),
            Some("application/json"),
            "{name}"
        );
        let reply = answer.json();
        assert_eq!(reply["jsonrpc"], "2.0", "{name}: {text}");
        assert_eq!(reply["id"], self.id, "{name}: {text}");
        let error = error_of(&reply);
        let code = error.as_ref().map(|error| error.code);
        assert_eq!(code, self.code, "{name}: {text}");
        let Some(error) = error else {
            return;
        };
        assert!(reply.get("result").is_none(), "{name}: {text}");
        if error.code == -32602 {
            assert_eq!(error.field(), Some(self.says), "{name}: {text}");
        }
        assert!(error.message.contains(self.says), "{name}: {text}");
        // Long input is not sent back.
        assert!(text.len() < 4096, "{name}: {} bytes", text.len());
    }
}

/// A good request.
const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}"#;

/// Puts every case to a server that has something to lose, all that may be on one connection;
/// then the server must have lost nothing, run nothing, and serve on.
async fn try_all(cases: impl Fn() -> Vec<Case>) {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move {
            match turn.message().text().as_str() {
                "ask" => turn.ask("what?"),
                _ => turn.complete(),
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| {
                limits.parts = PARTS;
                limits.body_bytes = BODY_BYTES;
            })
        });
        let peer = house.peer(world.dialect);
        let (open, ended) = (peer.say("ask").await, peer.say("end").await);
        let mut kept = Connection::open(house.address).await;
        for case in cases() {
            let bytes = case.bytes(world.dialect, [open.id.as_str(), ended.id.as_str()]);
            let answer = if case.status == 200 {
                kept.write(&bytes).await;
                kept.answer().await
            } else {
                let mut connection = Connection::open(house.address).await;
                connection.write(&bytes).await;
                connection.answer().await
            };
            case.check(&answer);
        }
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        for task in [&open, &ended] {
            assert_eq!(peer.get(&task.id).await.as_ref(), Ok(task));
        }
        let all = async || {
            peer.list(Default::default())
                .await
                .expect("there is a page")
        };
        assert_eq!(all().await.total_size, 2);
        // On the connection that has seen it all, too.
        let good = nuncio_server::core::Request::SendMessage(send("hi"));
        kept.write(&peer.request_bytes(&good)).await;
        assert!(kept.answer().await.json()["result"].is_object());
        let page = all().await;
        let unfinished = page
            .tasks
            .iter()
            .filter(|task| !task.status.state.is_terminal());
        let states: Vec<_> = unfinished.map(|task| task.status.state).collect();
        assert_eq!(
            (page.total_size, states),
            (3, vec![TaskState::InputRequired])
        );
    })
    .await;
}
