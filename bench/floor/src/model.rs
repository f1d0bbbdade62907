//! As much of the protocol as the floor speaks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON-RPC request.
#[derive(Debug, Deserialize)]
pub(crate) struct RpcRequest<'r> {
    #[serde(borrow)]
    pub(crate) id: Option<&'r RawValue>,
    #[serde(borrow)]
    pub(crate) method: Cow<'r, str>,
    #[serde(borrow)]
    params: Option<&'r RawValue>,
}

impl<'r> RpcRequest<'r> {
    pub(crate) fn params<T: Deserialize<'r>>(&self) -> Result<T, RpcError> {
        let params = self.params.ok_or(RpcError::PARAMS)?;
        serde_json::from_str(params.get()).map_err(|_| RpcError::PARAMS)
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RpcError(i32, &'static str);

impl RpcError {
    pub(crate) const PARSE: Self = Self(-32700, "parse error");
    pub(crate) const METHOD: Self = Self(-32601, "method not found");
    pub(crate) const PARAMS: Self = Self(-32602, "invalid params");
    pub(crate) const INTERNAL: Self = Self(-32603, "internal error");
    pub(crate) const NO_TASK: Self = Self(-32001, "task not found");

    pub(crate) fn answer(self, id: Option<&RawValue>) -> String {
        let (id, Self(code, message)) = (id.map_or("null", RawValue::get), self);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
    }
}

/// A JSON-RPC result.
#[derive(Debug, Serialize)]
pub(crate) struct Reply<'r, T: ?Sized> {
    jsonrpc: &'static str,
    id: Option<&'r RawValue>,
    result: &'r T,
}

impl<'r, T: ?Sized> Reply<'r, T> {
    pub(crate) fn new(id: Option<&'r RawValue>, result: &'r T) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            result,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct SendParams {
    pub(crate) message: Message,
}

#[derive(Debug, Deserialize)]
pub(crate) struct IdParams {
    pub(crate) id: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    role: String,
    parts: Vec<Part>,
}

impl Message {
    pub(crate) fn user(text: &str) -> Self {
        Self {
            message_id: uid(),
            context_id: None,
            task_id: None,
            role: "ROLE_USER".into(),
            parts: vec![Part {
                text: Some(text.into()),
            }],
        }
    }

    /// The first part of text.
    pub(crate) fn text(&self) -> &str {
        self.parts
            .iter()
            .find_map(|part| part.text.as_deref())
            .unwrap_or_default()
    }
}

#[derive(Debug, Deserialize, Serialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Status {
    state: &'static str,
    timestamp: String,
}

impl Status {
    pub(crate) fn working() -> Self {
        Self::now("TASK_STATE_WORKING")
    }

    pub(crate) fn completed() -> Self {
        Self::now("TASK_STATE_COMPLETED")
    }

    fn now(state: &'static str) -> Self {
        let now = chrono::Utc::now();
        Self {
            state,
            timestamp: now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    artifact_id: &'static str,
    name: &'static str,
    parts: Vec<Part>,
}

/// The one artifact there is, or a chunk of it.
pub(crate) fn artifact(text: String) -> Artifact {
    Artifact {
        artifact_id: "out",
        name: "out",
        parts: vec![Part { text: Some(text) }],
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context_id: String,
    status: Status,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<Message>,
}

impl Task {
    pub(crate) fn new(status: Status) -> Self {
        let (artifacts, history) = (Vec::new(), Vec::new());
        Self {
            id: uid(),
            context_id: uid(),
            status,
            artifacts,
            history,
        }
    }

    pub(crate) fn named(self, id: String) -> Self {
        Self { id, ..self }
    }

    pub(crate) fn with(mut self, artifact: Artifact) -> Self {
        self.artifacts.push(artifact);
        self
    }

    pub(crate) fn asked(mut self, message: Message) -> Self {
        if let Some(context_id) = &message.context_id {
            self.context_id.clone_from(context_id);
        }
        self.history.push(message);
        self
    }
}

/// What a send answers and a stream carries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Payload<'u> {
    Task(Task),
    #[serde(rename_all = "camelCase")]
    ArtifactUpdate {
        task_id: &'u str,
        context_id: &'u str,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    },
    #[serde(rename_all = "camelCase")]
    StatusUpdate {
        task_id: &'u str,
        context_id: &'u str,
        status: Status,
    },
}

impl<'u> Payload<'u> {
    pub(crate) fn chunk(
        task_id: &'u str,
        context_id: &'u str,
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    ) -> Self {
        Self::ArtifactUpdate {
            task_id,
            context_id,
            artifact,
            append,
            last_chunk,
        }
    }

    pub(crate) fn status(task_id: &'u str, context_id: &'u str, status: Status) -> Self {
        Self::StatusUpdate {
            task_id,
            context_id,
            status,
        }
    }
}

fn uid() -> String {
    uuid::Uuid::new_v4().to_string()
}
