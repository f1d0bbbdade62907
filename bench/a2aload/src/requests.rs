//! The requests, in each of the ways they can be spelled.

use memchr::memmem;
use serde_json::Value;

use crate::args::TargetArgs;

/// The version and the binding that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    JsonRpc03,
    JsonRpc10,
    Rest10,
}

/// Writes requests to one server. Each run has an id of its own, so that no message's id comes
/// twice, in this run or another.
#[derive(Debug)]
pub(crate) struct Requests {
    host: String,
    path: String,
    run: u128,
    pub(crate) dialect: Dialect,
}

#[derive(Clone, Copy)]
enum Accept {
    Json,
    Events,
}

impl Requests {
    pub(crate) fn new(target: &TargetArgs, run: u128) -> Self {
        let dialect = match (target.v03, target.rest) {
            (true, _) => Dialect::JsonRpc03,
            (false, false) => Dialect::JsonRpc10,
            (false, true) => Dialect::Rest10,
        };
        let path = match dialect {
            Dialect::Rest10 => target.url.path.trim_end_matches('/'),
            _ => &target.url.path,
        };
        Self {
            host: target.url.address.to_string(),
            path: path.to_owned(),
            run,
            dialect,
        }
    }

    /// A message whose answer is a task.
    pub(crate) fn send(&self, n: u64, text: &str) -> Vec<u8> {
        let message = self.message(n, text);
        match self.dialect {
            Dialect::JsonRpc03 => self.rpc(n, "message/send", &message, Accept::Json),
            Dialect::JsonRpc10 => self.rpc(n, "SendMessage", &message, Accept::Json),
            Dialect::Rest10 => self.post("/message:send", &message, Accept::Json),
        }
    }

    /// A message whose answer is a stream.
    pub(crate) fn stream(&self, n: u64, text: &str) -> Vec<u8> {
        let message = self.message(n, text);
        match self.dialect {
            Dialect::JsonRpc03 => self.rpc(n, "message/stream", &message, Accept::Events),
            Dialect::JsonRpc10 => self.rpc(n, "SendStreamingMessage", &message, Accept::Events),
            Dialect::Rest10 => self.post("/message:stream", &message, Accept::Events),
        }
    }

    /// A read of one task.
    pub(crate) fn get(&self, n: u64, task: &str) -> Vec<u8> {
        let params = format!(r#"{{"id":"{task}"}}"#);
        match self.dialect {
            Dialect::JsonRpc03 => self.rpc(n, "tasks/get", &params, Accept::Json),
            Dialect::JsonRpc10 => self.rpc(n, "GetTask", &params, Accept::Json),
            Dialect::Rest10 => self.get_path(&format!("/tasks/{task}"), Accept::Json),
        }
    }

    /// A page of the list of tasks.
    pub(crate) fn list(&self, n: u64, size: u64, token: Option<&str>) -> Vec<u8> {
        let rpc = |method| {
            let token = token.map(|token| format!(r#","pageToken":{}"#, Value::from(token)));
            let token = token.unwrap_or_default();
            self.rpc(
                n,
                method,
                &format!(r#"{{"pageSize":{size}{token}}}"#),
                Accept::Json,
            )
        };
        match self.dialect {
            Dialect::JsonRpc03 => rpc("tasks/list"),
            Dialect::JsonRpc10 => rpc("ListTasks"),
            Dialect::Rest10 => {
                let token = token
                    .map(|token| format!("&pageToken={token}"))
                    .unwrap_or_default();
                self.get_path(&format!("/tasks?pageSize={size}{token}"), Accept::Json)
            }
        }
    }

    /// A subscription to a running task.
    pub(crate) fn subscribe(&self, n: u64, task: &str) -> Vec<u8> {
        let params = format!(r#"{{"id":"{task}"}}"#);
        match self.dialect {
            Dialect::JsonRpc03 => self.rpc(n, "tasks/resubscribe", &params, Accept::Events),
            Dialect::JsonRpc10 => self.rpc(n, "SubscribeToTask", &params, Accept::Events),
            Dialect::Rest10 => self.get_path(&format!("/tasks/{task}:subscribe"), Accept::Events),
        }
    }

    /// What tells the answers to request `n`; with HTTP+JSON nothing does.
    pub(crate) fn id_mark(&self, n: u64) -> IdMark {
        match self.dialect {
            Dialect::JsonRpc03 | Dialect::JsonRpc10 => IdMark::rpc(n),
            Dialect::Rest10 => IdMark(None),
        }
    }

    fn message(&self, n: u64, text: &str) -> String {
        let (run, text) = (self.run, Value::from(text));
        let id = format!("{run:x}-{n:012x}");
        match self.dialect {
            Dialect::JsonRpc03 => format!(
                r#"{{"message":{{"kind":"message","messageId":"{id}","role":"user","parts":[{{"kind":"text","text":{text}}}]}}}}"#
            ),
            Dialect::JsonRpc10 | Dialect::Rest10 => format!(
                r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":{text}}}]}}}}"#
            ),
        }
    }

    fn rpc(&self, n: u64, method: &str, params: &str, accept: Accept) -> Vec<u8> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"{method}","params":{params}}}"#);
        self.post("", &body, accept)
    }

    fn post(&self, path: &str, body: &str, accept: Accept) -> Vec<u8> {
        let head = self.head("POST", path, accept);
        let length = body.len();
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    fn get_path(&self, path: &str, accept: Accept) -> Vec<u8> {
        format!("{}\r\n", self.head("GET", path, accept)).into_bytes()
    }

    fn head(&self, method: &str, path: &str, accept: Accept) -> String {
        let version = match self.dialect {
            Dialect::JsonRpc03 => "",
            Dialect::JsonRpc10 | Dialect::Rest10 => "A2A-Version: 1.0\r\n",
        };
        let accept = match accept {
            Accept::Json => "application/json",
            Accept::Events => "text/event-stream",
        };
        format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n{version}",
            self.path, self.host
        )
    }
}

/// The id that the answers to one request bear.
#[derive(Debug)]
pub(crate) struct IdMark(Option<String>);

impl IdMark {
    /// The mark of JSON-RPC request `n`.
    pub(crate) fn rpc(n: u64) -> Self {
        Self(Some(format!(r#""id":{n}"#)))
    }

    /// Whether an answer or an event bears it. Other ids, such as a task's, are text.
    pub(crate) fn is_in(&self, answer: &[u8]) -> bool {
        let Some(mark) = &self.0 else { return true };
        memmem::find_iter(answer, mark.as_bytes()).any(|at| {
            let next = answer.get(at + mark.len());
            next.is_some_and(|next| !next.is_ascii_digit())
        })
    }
}

/// The id of the task that an answer or an event, in any dialect, is about.
pub(crate) fn task_id(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let result = answer.get("result").unwrap_or(&answer);
    let id = if let Some(task) = result.get("task") {
        task.get("id")
    } else {
        let updates = ["statusUpdate", "artifactUpdate"];
        let update = updates
            .iter()
            .find_map(|key| result.get(key))
            .unwrap_or(result);
        update.get("taskId").or_else(|| update.get("id"))
    };
    id?.as_str().map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(url: &str, v03: bool, rest: bool) -> Requests {
        let (url, label) = (url.parse().unwrap(), String::new());
        Requests::new(
            &TargetArgs {
                url,
                pid: vec![],
                label,
                v03,
                rest,
            },
            0xa,
        )
    }

    fn text(request: Vec<u8>) -> String {
        String::from_utf8(request).unwrap()
    }

    #[test]
    fn each_dialect_has_its_words() {
        let url = "http://127.0.0.1:9/x/";
        let v03 = text(requests(url, true, false).send(1, "\"hi\""));
        assert!(
            v03.starts_with("POST /x/ HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"),
            "{v03}"
        );
        assert!(
            v03.contains("message/send") && v03.contains(r#""text":"\"hi\"""#),
            "{v03}"
        );
        assert!(!v03.contains("A2A-Version"), "{v03}");
        let v10 = text(requests(url, false, false).stream(1, "hi"));
        assert!(
            v10.contains("SendStreamingMessage") && v10.contains("A2A-Version: 1.0"),
            "{v10}"
        );
        assert!(
            v10.contains("a-000000000001") && v10.contains("text/event-stream"),
            "{v10}"
        );
        let rest = text(requests(url, false, true).list(1, 50, Some("t")));
        assert!(
            rest.starts_with("GET /x/tasks?pageSize=50&pageToken=t HTTP/1.1\r\n"),
            "{rest}"
        );
    }

    #[test]
    fn a_length_is_that_of_the_body() {
        let request = text(requests("http://127.0.0.1:9", false, false).get(1, "t"));
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        assert!(serde_json::from_str::<Value>(body).is_ok());
    }

    #[test]
    fn an_answer_bears_the_id_of_its_request() {
        let url = "http://127.0.0.1:9";
        let mark = requests(url, false, false).id_mark(12);
        for (answer, bears) in [
            (&br#"{"jsonrpc":"2.0","id":12,"result":{}}"#[..], true),
            (br#"{"result":{"id":"12"},"id":12}"#, true),
            (br#"{"id":123,"result":{"id":"12"}}"#, false),
            (br#"{"id":null,"error":{}}"#, false),
        ] {
            assert_eq!(mark.is_in(answer), bears, "{}", answer.escape_ascii());
        }
        assert!(requests(url, false, true).id_mark(12).is_in(b"{}"));
    }

    #[test]
    fn a_task_is_found_in_whatever_names_it() {
        for answer in [
            r#"{"id":1,"result":{"task":{"contextId":"c","id":"t"}}}"#,
            r#"{"id":1,"result":{"kind":"task","id":"t","contextId":"c"}}"#,
            r#"{"id":1,"result":{"statusUpdate":{"taskId":"t"}}}"#,
            r#"{"artifactUpdate":{"taskId":"t"}}"#,
            r#"{"task":{"id":"t"}}"#,
        ] {
            assert_eq!(task_id(answer.as_bytes()).as_deref(), Some("t"), "{answer}");
        }
        assert_eq!(task_id(br#"{"id":1,"error":{}}"#), None);
    }
}
