//! Reading what messages and tasks are made of, in either version's spelling.
//!
//! What can't be confused is taken whatever version is spoken. What can be is decided by 0.3's
//! `kind` where it stands, and by the version where it does not: only a `data` member that holds
//! nothing but a `data` member (0.3's protobuf against 1.0's JSON).

use super::read::{At, Fields, Reader, bytes, id, list, string, timestamp, whole};
use super::{v1, v03};
use crate::{
    Artifact, ArtifactUpdate, ContextId, Event, Message, Part, PartContent, Role, StatusUpdate,
    Task, TaskId, TaskState, TaskStatus,
};
use serde_json::Value;

/// A message.
pub(super) fn message(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Message> {
    let mut fields = reader.open(at, value)?;
    // The parts' name in 0.3's protobuf.
    fields.alias("parts", "content");
    let message_id = fields.required(reader, "messageId", id);
    let context_id = fields.id(reader, "contextId");
    let task_id = fields.id(reader, "taskId");
    let role = fields.required(reader, "role", role);
    let parts = if reader.is_request() {
        fields.required(reader, "parts", some_parts)
    } else {
        Some(fields.list(reader, "parts", part))
    };
    let metadata = fields.metadata(reader, "metadata");
    let extensions = fields.list(reader, "extensions", string);
    let reference_task_ids = fields.list(reader, "referenceTaskIds", id);
    Some(Message {
        id: message_id?,
        context_id,
        task_id,
        role: role?,
        parts: parts?,
        metadata,
        extensions,
        reference_task_ids,
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a `Read` takes what it reads"
)]
fn role(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Role> {
    match (value.as_str(), whole(&value)) {
        (Some("user" | "ROLE_USER"), _) | (None, Some(1)) => Some(Role::User),
        (Some("agent" | "ROLE_AGENT"), _) | (None, Some(2)) => Some(Role::Agent),
        _ => reader.fault(at, "must be user or agent (1.0: ROLE_USER or ROLE_AGENT)"),
    }
}

fn some_parts(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Vec<Part>> {
    if value.as_array().is_some_and(Vec::is_empty) {
        return reader.fault(at, "must hold at least one part");
    }
    list(reader, at, value, part)
}

/// A part.
fn part(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Part> {
    const CONTENTS: [&str; 5] = ["text", "raw", "url", "file", "data"];

    let mut fields = reader.open(at, value)?;
    let metadata = fields.metadata(reader, "metadata");
    let filename = fields.text(reader, "filename");
    let media_type = fields.text(reader, "mediaType");
    // Before 0.3 the discriminator was called `type`.
    let is_older = reader.is_v03() && !fields.has("kind") && fields.has("type");
    let discriminator = if is_older { "type" } else { "kind" };
    let kind = fields.optional(reader, discriminator, string);
    let mut present = CONTENTS.into_iter().filter(|name| fields.has(name));
    let (first, more) = (present.next(), present.next());
    if more.is_some() {
        return reader.fault(
            at,
            "must hold exactly one of text, raw, url and data, not several",
        );
    }
    let expected = match kind.as_deref() {
        None => None,
        Some("text") => Some("text"),
        Some("file") => Some("file"),
        Some("data") => Some("data"),
        Some(_) => {
            return reader.fault(&At::Field(at, discriminator), "must be text, file or data");
        }
    };
    // `null` is a JSON value like any other, so it can be a data part's; for every other member
    // it means absent.
    let content = match (first, expected) {
        (None, None | Some("data")) if fields.has_raw("data") => "data",
        (Some(content), None) => content,
        (Some("raw" | "url"), Some("file")) => first?,
        (_, Some(expected)) => expected,
        (None, None) => return reader.fault(at, "must hold one of text, raw, url and data"),
    };
    let part = Part {
        metadata,
        filename,
        media_type,
        ..PartContent::Data(Value::Null).into()
    };
    match content {
        "text" => {
            let content = PartContent::Text(fields.required(reader, "text", string)?);
            Some(Part { content, ..part })
        }
        "raw" => {
            let content = PartContent::Raw(fields.required(reader, "raw", bytes)?);
            Some(Part { content, ..part })
        }
        "url" => {
            let content = PartContent::Url(fields.required(reader, "url", string)?);
            Some(Part { content, ..part })
        }
        "file" => {
            let (content, name, media_type) = fields.required(reader, "file", file)?;
            let filename = name.or(part.filename);
            let media_type = media_type.or(part.media_type);
            Some(Part {
                content,
                filename,
                media_type,
                ..part
            })
        }
        _ => {
            let Some(value) = fields.take_raw("data") else {
                return fields.missing(reader, "data");
            };
            Some(data(value, part, kind.is_some(), reader.is_v03()))
        }
    }
}

/// A file of 0.3: its content, name and media type.
fn file(
    reader: &mut Reader,
    at: &At<'_>,
    value: Value,
) -> Option<(PartContent, Option<String>, Option<String>)> {
    let mut fields = reader.open(at, value)?;
    fields.alias("bytes", "fileWithBytes");
    fields.alias("uri", "fileWithUri");
    let name = fields.text(reader, "name");
    let media_type = fields.text(reader, "mimeType");
    // Protobuf's JSON may carry the other member as an empty string.
    if fields.has("bytes") && fields.has("uri") {
        if fields.peek("uri") == Some("") {
            fields.take("uri");
        } else if fields.peek("bytes") == Some("") {
            fields.take("bytes");
        } else {
            return reader.fault(at, "must hold either bytes or uri, not both");
        }
    }
    let content = if fields.has("uri") {
        PartContent::Url(fields.required(reader, "uri", string)?)
    } else if fields.has("bytes") {
        PartContent::Raw(fields.required(reader, "bytes", bytes)?)
    } else {
        return reader.fault(at, "must hold bytes or uri");
    };
    Some((content, name, media_type))
}

/// A data part, out of the two wrappings that 0.3 knows: protobuf's `DataPart`, and the object
/// around a value that is none itself.
fn data(value: Value, mut part: Part, has_kind: bool, is_v03: bool) -> Part {
    fn only<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
        value
            .as_object_mut()
            .filter(|map| map.len() == 1)?
            .get_mut(name)
    }
    let mut value = value;
    if is_v03
        && !has_kind
        && let Some(inner) = only(&mut value, "data").filter(|inner| inner.is_object())
    {
        value = inner.take();
    }
    if (is_v03 || has_kind)
        && part.metadata.get(v03::DATA_MARK) == Some(&Value::Bool(true))
        && let Some(inner) = only(&mut value, "value").filter(|inner| !inner.is_object())
    {
        value = inner.take();
        part.metadata.remove(v03::DATA_MARK);
    }
    Part {
        content: PartContent::Data(value),
        ..part
    }
}

/// An artifact.
fn artifact(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Artifact> {
    let mut fields = reader.open(at, value)?;
    let artifact_id = fields.required(reader, "artifactId", id);
    Some(Artifact {
        name: fields.text(reader, "name"),
        description: fields.text(reader, "description"),
        // May be empty: some servers close an artifact with a chunk that holds nothing.
        parts: fields.list(reader, "parts", part),
        metadata: fields.metadata(reader, "metadata"),
        extensions: fields.list(reader, "extensions", string),
        id: artifact_id?,
    })
}

/// A task's state, by any of its names or by its number in protobuf.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a `Read` takes what it reads"
)]
pub(super) fn state(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<TaskState> {
    const BY_NUMBER: [TaskState; 9] = [
        TaskState::Unspecified,
        TaskState::Submitted,
        TaskState::Working,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::InputRequired,
        TaskState::Rejected,
        TaskState::AuthRequired,
    ];
    let found = match value.as_str() {
        // 0.3's protobuf.
        Some("TASK_STATE_CANCELLED") => Some(TaskState::Canceled),
        Some(name) => TaskState::ALL
            .into_iter()
            .find(|state| name == v03::state_name(*state) || name == v1::state_name(*state)),
        None => whole(&value)
            .and_then(|n| usize::try_from(n).ok())
            .and_then(|n| BY_NUMBER.get(n).copied()),
    };
    match found {
        Some(state) => Some(state),
        None => reader.fault(
            at,
            "must be a task state such as working (1.0: TASK_STATE_WORKING)",
        ),
    }
}

fn status(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<TaskStatus> {
    let mut fields = reader.open(at, value)?;
    // The message's name in 0.3's protobuf.
    fields.alias("message", "update");
    Some(TaskStatus {
        // Protobuf's JSON leaves the zero of an enumeration out.
        state: fields
            .optional(reader, "state", state)
            .unwrap_or(TaskState::Unspecified),
        message: fields.optional(reader, "message", message),
        timestamp: fields.optional(reader, "timestamp", timestamp),
    })
}

/// A task.
pub(super) fn task(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Task> {
    let mut fields = reader.open(at, value)?;
    let task_id = fields.required(reader, "id", id);
    let context_id = context(reader, &mut fields, task_id.as_ref());
    let status = fields.required(reader, "status", status);
    Some(Task {
        artifacts: fields.list(reader, "artifacts", artifact),
        history: fields.list(reader, "history", message),
        metadata: fields.metadata(reader, "metadata"),
        id: task_id?,
        context_id: context_id?,
        status: status?,
    })
}

/// A task's context. 1.0 lets a server leave it out; such a task is a context of its own.
fn context(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    task_id: Option<&TaskId>,
) -> Option<ContextId> {
    match fields.id(reader, "contextId") {
        Some(id) => Some(id),
        None => ContextId::new(task_id?.as_str()).ok(),
    }
}

fn status_update(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<StatusUpdate> {
    let mut fields = reader.open(at, value)?;
    let task_id = fields.required(reader, "taskId", id);
    let context_id = context(reader, &mut fields, task_id.as_ref());
    let status = fields.required(reader, "status", status);
    Some(StatusUpdate {
        metadata: fields.metadata(reader, "metadata"),
        task_id: task_id?,
        context_id: context_id?,
        status: status?,
    })
}

fn artifact_update(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<ArtifactUpdate> {
    let mut fields = reader.open(at, value)?;
    let task_id = fields.required(reader, "taskId", id);
    let context_id = context(reader, &mut fields, task_id.as_ref());
    let artifact = fields.required(reader, "artifact", artifact);
    Some(ArtifactUpdate {
        append: fields.flag(reader, "append"),
        last_chunk: fields.flag(reader, "lastChunk"),
        metadata: fields.metadata(reader, "metadata"),
        task_id: task_id?,
        context_id: context_id?,
        artifact: artifact?,
    })
}

/// An event: 1.0's wrapper of one member, or 0.3's bare object with its `kind`.
pub(super) fn event(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Event> {
    let mut fields = reader.open(at, value)?;
    // The message's name in 0.3's protobuf.
    fields.alias("message", "msg");
    for wrapper in ["task", "message", "statusUpdate", "artifactUpdate"] {
        if let Some(value) = fields.take(wrapper) {
            return event_of(wrapper, reader, &At::Field(at, wrapper), value);
        }
    }
    let shape = match fields.peek("kind") {
        Some("task") => "task",
        Some("message") => "message",
        Some("status-update") => "statusUpdate",
        Some("artifact-update") => "artifactUpdate",
        Some(_) => {
            let right = "must be task, message, status-update or artifact-update";
            return reader.fault(&At::Field(at, "kind"), right);
        }
        None if fields.has("messageId") => "message",
        None if fields.has("artifact") => "artifactUpdate",
        None if fields.has("status") && fields.has("taskId") => "statusUpdate",
        None if fields.has("status") => "task",
        None => {
            let right = "must be a task, a message, a status update or an artifact update";
            return reader.fault(at, right);
        }
    };
    event_of(shape, reader, at, fields.into_value())
}

fn event_of(shape: &str, reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Event> {
    match shape {
        "task" => task(reader, at, value).map(Event::Task),
        "message" => message(reader, at, value).map(Event::Message),
        "statusUpdate" => status_update(reader, at, value).map(Event::Status),
        _ => artifact_update(reader, at, value).map(Event::Artifact),
    }
}
