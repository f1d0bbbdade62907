//! Driving every operation and taking down what comes.
//!
//! The rows are observed on a task that this makes itself and that has come to rest. Outcomes are
//! taken from what is on the wire, not from what a client would make of it, so a server that
//! misbehaves is shown as it is.

use crate::{
    client::{Client, ClientError, first_event, media_type, read_body, within},
    exit::{CommandError, Exit},
};
use nuncio_core::{
    CancelTask, DeletePushConfig, GetPushConfig, GetTask, ListPushConfigs, ListTasks, Message,
    MessageId, Metadata, Operation, Part, PushConfig, PushConfigId, Request, Response, Role,
    SendConfiguration, SendMessage, SetPushConfig, SubscribeToTask, TaskId,
};
use serde_json::Value;
use std::{fmt, time::Duration};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a task that is at work is looked at.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// The largest answer that is read.
const MAX_BYTES: usize = 16 << 20;
/// The webhook that push configs name; nothing is ever delivered there for a task at rest.
const WEBHOOK: &str = "https://example.com/nuncio-map";
const CONFIG: &str = "nuncio-map";

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A JSON-RPC result.
    Result,
    /// A stream whose first event is no error.
    Sse,
    /// A JSON-RPC error, in JSON or as the first event of a stream.
    Error(i64),
    /// An HTTP status and no JSON-RPC answer.
    Http(u16),
    /// The connection ended without an answer.
    Closed,
    /// No answer in time.
    Silence,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result => f.write_str("result"),
            Self::Sse => f.write_str("sse"),
            Self::Error(code) => write!(f, "error {code}"),
            Self::Http(status) => write!(f, "http {status}"),
            Self::Closed => f.write_str("closed"),
            Self::Silence => f.write_str("silence"),
        }
    }
}

/// An operation's outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) operation: Operation,
    /// Under its 0.3 name.
    pub(crate) slash: Outcome,
    /// Under its 1.0 name.
    pub(crate) pascal: Outcome,
}

/// Drives every operation under both names, in the order of [`Operation::ALL`].
///
/// # Errors
/// Where the server makes no task to observe on.
pub(crate) async fn observe(client: &Client, text: &str) -> Result<Vec<Row>, CommandError> {
    let task = make_task(client, text).await?;
    let mut rows = Vec::with_capacity(Operation::ALL.len());
    for operation in Operation::ALL {
        let request = request(operation, &task, text);
        let slash = outcome(client, operation.slash_name(), &request).await;
        if operation == Operation::DeletePushConfig {
            // What the first name deleted must be there again for the second.
            let create = self::request(Operation::CreatePushConfig, &task, text);
            outcome(
                client,
                Operation::CreatePushConfig.rpc_name(client.version()),
                &create,
            )
            .await;
        }
        let pascal = outcome(client, operation.pascal_name(), &request).await;
        rows.push(Row {
            operation,
            slash,
            pascal,
        });
    }
    Ok(rows)
}

/// Makes a task and waits until it rests.
async fn make_task(client: &Client, text: &str) -> Result<TaskId, CommandError> {
    let sent = within(PATIENCE, client.call(&Request::SendMessage(message(text)))).await?;
    let Response::SentTask(mut task) = sent.response else {
        let text = "the server answers with messages and makes no tasks: there is none to observe";
        return Err(CommandError::new(Exit::Unreachable, text));
    };
    let at_rest = async {
        while !task.status.state.is_final() {
            tokio::time::sleep(POLL_EVERY).await;
            task = client.task(&task.id, Some(0)).await?.0;
        }
        Ok(task.id)
    };
    Ok(within(PATIENCE, at_rest).await?)
}

fn message(text: &str) -> SendMessage {
    let id = MessageId::new(uuid::Uuid::now_v7().to_string()).expect("a UUID is a valid id");
    SendMessage {
        message: Message::new(id, Role::User, vec![Part::text(text)]),
        configuration: SendConfiguration::default(),
        metadata: Metadata::new(),
    }
}

fn request(operation: Operation, task: &TaskId, text: &str) -> Request {
    let id = task.clone();
    let task_id = task.clone();
    let config_id = PushConfigId::new(CONFIG).expect("a valid id");
    match operation {
        Operation::SendMessage => Request::SendMessage(message(text)),
        Operation::SendStreamingMessage => Request::SendStreamingMessage(message(text)),
        Operation::GetTask => Request::GetTask(GetTask {
            id,
            history_length: None,
        }),
        Operation::ListTasks => Request::ListTasks(ListTasks {
            page_size: Some(10),
            ..ListTasks::default()
        }),
        Operation::CancelTask => Request::CancelTask(CancelTask {
            id,
            metadata: Metadata::new(),
        }),
        Operation::SubscribeToTask => Request::SubscribeToTask(SubscribeToTask { id }),
        Operation::CreatePushConfig => {
            let url = WEBHOOK.to_owned();
            let config = PushConfig {
                id: Some(config_id),
                url,
                token: None,
                authentication: None,
            };
            Request::CreatePushConfig(SetPushConfig { task_id, config })
        }
        Operation::GetPushConfig => Request::GetPushConfig(GetPushConfig {
            task_id,
            config_id: Some(config_id),
        }),
        Operation::ListPushConfigs => Request::ListPushConfigs(ListPushConfigs {
            task_id,
            page_size: None,
            page_token: None,
        }),
        Operation::DeletePushConfig => {
            Request::DeletePushConfig(DeletePushConfig { task_id, config_id })
        }
        Operation::GetExtendedAgentCard => Request::GetExtendedAgentCard,
    }
}

async fn outcome(client: &Client, method: &str, request: &Request) -> Outcome {
    match tokio::time::timeout(PATIENCE, answer(client, method, request)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(ClientError::Unauthorized { status, .. })) => Outcome::Http(status),
        Ok(Err(_)) => Outcome::Closed,
        Err(_elapsed) => Outcome::Silence,
    }
}

async fn answer(client: &Client, method: &str, request: &Request) -> Result<Outcome, ClientError> {
    let (_, response) = client.post(method, request, None).await?;
    let status = response.status();
    if status.is_success() && media_type(&response) == "text/event-stream" {
        // Dropped after its first event.
        let first = first_event(response.into_body(), MAX_BYTES).await?;
        return Ok(match first.as_deref().map(classify) {
            None => Outcome::Closed,
            Some(Some(Outcome::Result)) => Outcome::Sse,
            Some(other) => other.unwrap_or(Outcome::Http(status.as_u16())),
        });
    }
    let body = read_body(response.into_body(), MAX_BYTES).await?;
    let reply = std::str::from_utf8(&body).ok().and_then(classify);
    Ok(reply.unwrap_or(Outcome::Http(status.as_u16())))
}

/// What a JSON-RPC answer is; `None` where it is none.
fn classify(reply: &str) -> Option<Outcome> {
    let reply: Value = serde_json::from_str(reply).ok()?;
    match (reply.get("result"), reply.get("error")) {
        (_, Some(error)) if !error.is_null() => error
            .get("code")
            .and_then(Value::as_i64)
            .map(Outcome::Error),
        (Some(_), _) => Some(Outcome::Result),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(classify(r#"{"result":null}"#), Some(Outcome::Result));
        assert_eq!(
            classify(r#"{"result":{},"error":null}"#),
            Some(Outcome::Result)
        );
        assert_eq!(
            classify(r#"{"error":{"code":-32001}}"#),
            Some(Outcome::Error(-32001))
        );
        for nothing in [
            "",
            "[]",
            "{}",
            "<html>",
            r#"{"error":{}}"#,
            r#"{"error":"no"}"#,
        ] {
            assert_eq!(classify(nothing), None, "{nothing}");
        }
    }
}
