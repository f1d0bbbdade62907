//! The lines of JSON that a command and its agent exchange.
//!
//! **Standard input.** The first line is the turn:
//!
//! ```json
//! {"message": {…}, "task": {…}, "taskId": "…", "contextId": "…", "metadata": {…},
//!  "acceptedOutputModes": ["text/plain"], "resumed": false,
//!  "principal": {"issuer": "api-key", "subject": "alice"}}
//! ```
//!
//! `message` is what is to be answered and `task` the task so far, with its history and
//! artifacts, both as A2A 1.0 writes them. `metadata` is the request's, no accepted mode means
//! any, and `principal` is who sent it (with a `tenant`, if there is one), as the server verified
//! it. `resumed` says that the turn was lost with its server and is run again.
//!
//! Each further message that reaches the task while the command runs is a line like it, without
//! `task` and `resumed`. Standard input is closed when the command has asked for something or
//! given its answer; an answer to a question is a new turn, and a new run of the command.
//!
//! **Standard output.** Each line is an object, and what it is is told by its one member of these:
//!
//! | line | means |
//! |---|---|
//! | `{"statusUpdate": {"status": {"state": …, "message"?}, "metadata"?}}` | a status |
//! | `{"artifactUpdate": {"artifact": {"artifactId": …, "parts": […], …}, "append"?, "lastChunk"?}}` | an artifact, or a chunk of one |
//! | `{"message": {"parts": […], …}}` | the answer is this message, and there is no task |
//! | `{"text": …}`, `{"data": …}`, `{"raw": …}`, `{"url": …}` | a part: a chunk of the artifact `output` |
//! | `{"progress": "…"}` | working, and at what |
//! | `{"ask": "…"}` | input-required, and the question |
//!
//! They are A2A 1.0's; 0.3's spellings are understood too. `taskId` and `contextId` may be left
//! out and must be this turn's where they are given; a message's `messageId` and `role` may be
//! left out. Times are the server's. Empty lines are skipped.
//!
//! **The end.** A terminal status or a message ends the turn, and what follows it is not read.
//! Otherwise the last status decides: `input-required` and `auth-required` leave the task waiting;
//! without them the task is completed where the command ends with status 0, and failed where it
//! does not.

use super::new_id;
use nuncio_core::{
    ArtifactUpdate, ContextId, Event, Message, Part, Principal, ProtocolVersion, Response, Role,
    StatusUpdate, TaskId, TaskState, wire,
};
use nuncio_server::Turn;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

/// The longest line that is read.
pub(super) const LONGEST_LINE: usize = 8 << 20;

/// What tells what a line is.
const MEMBERS: [&str; 11] = [
    "statusUpdate",
    "artifactUpdate",
    "message",
    "task",
    "progress",
    "ask",
    "text",
    "data",
    "raw",
    "url",
    "file",
];

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum Report {
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
    Chunk(Part),
    Progress(String),
    Ask(String),
    Message(Message),
}

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{description}", .field, if .field.is_empty() { "" } else { ": " })]
pub(super) struct Invalid {
    pub(super) field: String,
    pub(super) description: String,
}

impl Invalid {
    fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            description: description.into(),
        }
    }
}

/// Whose reports they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) task: &'a TaskId,
    pub(super) context: &'a ContextId,
}

// ---------------------------------------------------------------------- standard input

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    message: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a RawValue>,
    task_id: &'a str,
    context_id: &'a str,
    metadata: &'a Map<String, Value>,
    accepted_output_modes: &'a [String],
    principal: Caller<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
}

#[derive(Serialize)]
struct Caller<'a> {
    issuer: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
}

impl<'a> From<&'a Principal> for Caller<'a> {
    fn from(principal: &'a Principal) -> Self {
        Self {
            issuer: principal.issuer(),
            subject: principal.subject(),
            tenant: principal.tenant(),
        }
    }
}

/// The line that begins a turn.
pub(super) fn first_line(turn: &Turn) -> serde_json::Result<Vec<u8>> {
    let task = wire::encode_response(ProtocolVersion::V1_0, &Response::Task(turn.task()));
    line(
        turn,
        Some(serde_json::from_slice(&task)?),
        Some(turn.is_resumed()),
    )
}

/// The line that brings a further message.
pub(super) fn next_line(turn: &Turn) -> serde_json::Result<Vec<u8>> {
    line(turn, None, None)
}

fn line(
    turn: &Turn,
    task: Option<&RawValue>,
    resumed: Option<bool>,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let event = Event::Message(turn.message().clone());
    let event = wire::encode_event(ProtocolVersion::V1_0, &event);
    let Wrapped { message } = serde_json::from_slice(&event)?;
    let mut line = serde_json::to_vec(&Line {
        message,
        task,
        task_id: turn.task_id().as_str(),
        context_id: turn.context_id().as_str(),
        metadata: turn.metadata().as_map(),
        accepted_output_modes: turn.accepted_output_modes(),
        principal: turn.principal().into(),
        resumed,
    })?;
    line.push(b'\n');
    Ok(line)
}

// ---------------------------------------------------------------------- standard output

/// Reads a line; `None` where it is empty.
pub(super) fn read(line: &[u8], names: Names<'_>) -> Result<Option<Report>, Invalid> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let object = match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(Invalid::new("", "must be a JSON object")),
        Err(error) => {
            return Err(Invalid::new(
                "",
                format!("is no JSON, at column {}", error.column()),
            ));
        }
    };
    let mut object = normalized(object);
    let mut present = MEMBERS
        .into_iter()
        .filter(|name| object.contains_key(*name));
    let name = match (present.next(), present.next()) {
        (Some(name), None) => name,
        (Some(one), Some(other)) => {
            return Err(Invalid::new(
                "",
                format!("has both {one} and {other}: say one a line"),
            ));
        }
        (None, _) => {
            let members = "statusUpdate, artifactUpdate, message, text, data, raw, url, progress \
                           and ask";
            return Err(Invalid::new("", format!("must have one of {members}")));
        }
    };
    match name {
        "progress" => text(&object, name).map(Report::Progress),
        "ask" => text(&object, name).map(Report::Ask),
        "task" => Err(Invalid::new(
            "task",
            "is the server's to say: report updates",
        )),
        "message" => message(object.remove(name).unwrap_or_default(), names),
        "statusUpdate" | "artifactUpdate" => {
            let mut update = object.remove(name).unwrap_or_default();
            complete_update(&mut update, names);
            match decode(name, update)? {
                Event::Status(update) => status(update, names),
                Event::Artifact(update) => artifact(update, names),
                Event::Task(_) | Event::Message(_) => Err(Invalid::new(name, "is something else")),
            }
        }
        _ => part(object),
    }
    .map(Some)
}

/// The line in 1.0's spelling: protobuf's wrappers renamed, 0.3's bare events wrapped.
fn normalized(mut object: Map<String, Value>) -> Map<String, Value> {
    for (name, other) in [
        ("statusUpdate", "status_update"),
        ("artifactUpdate", "artifact_update"),
    ] {
        if let Some(value) = object.remove(other) {
            object.entry(name).or_insert(value);
        }
    }
    let wrapper = match object.get("kind").and_then(Value::as_str) {
        Some("status-update") => "statusUpdate",
        Some("artifact-update") => "artifactUpdate",
        Some("message") => "message",
        Some("task") => "task",
        _ => return object,
    };
    Map::from_iter([(wrapper.to_owned(), Value::Object(object))])
}

fn text(object: &Map<String, Value>, name: &str) -> Result<String, Invalid> {
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(Invalid::new(name, "must be a string")),
    }
}

fn set_default(value: &mut Value, name: &str, other_spelling: &str, default: &str) {
    let Value::Object(object) = value else { return };
    let has = |name| object.get(name).is_some_and(|value| !value.is_null());
    if !has(name) && !has(other_spelling) {
        object.insert(name.to_owned(), default.into());
    }
}

fn complete_update(update: &mut Value, names: Names<'_>) {
    set_default(update, "taskId", "task_id", names.task.as_str());
    set_default(update, "contextId", "context_id", names.context.as_str());
    if let Some(message) = update.pointer_mut("/status/message") {
        complete_message(message);
    }
}

fn complete_message(message: &mut Value) {
    set_default(message, "messageId", "message_id", &new_id());
    set_default(message, "role", "role", "ROLE_AGENT");
}

fn decode(wrapper: &str, value: Value) -> Result<Event, Invalid> {
    let event = Value::Object(Map::from_iter([(wrapper.to_owned(), value)]));
    wire::decode_event(ProtocolVersion::V1_0, event).map_err(|error| {
        let path = error.path.strip_prefix("result").unwrap_or(&error.path);
        Invalid::new(path.trim_start_matches('.'), error.description)
    })
}

fn check_names(
    at: &str,
    task: Option<&TaskId>,
    context: Option<&ContextId>,
    names: Names<'_>,
) -> Result<(), Invalid> {
    let wrong = |name: &str, what: &str| {
        Invalid::new(
            format!("{at}.{name}"),
            format!("must be this {what}'s id, or left out"),
        )
    };
    if task.is_some_and(|id| id != names.task) {
        return Err(wrong("taskId", "task"));
    }
    if context.is_some_and(|id| id != names.context) {
        return Err(wrong("contextId", "context"));
    }
    Ok(())
}

fn check_message(at: &str, message: &mut Message, names: Names<'_>) -> Result<(), Invalid> {
    check_names(
        at,
        message.task_id.as_ref(),
        message.context_id.as_ref(),
        names,
    )?;
    if message.role != Role::Agent {
        return Err(Invalid::new(
            format!("{at}.role"),
            "must be ROLE_AGENT, or left out",
        ));
    }
    if message.parts.is_empty() {
        return Err(Invalid::new(
            format!("{at}.parts"),
            "must hold at least one part",
        ));
    }
    message.task_id = Some(names.task.clone());
    message.context_id = Some(names.context.clone());
    Ok(())
}

fn status(mut update: StatusUpdate, names: Names<'_>) -> Result<Report, Invalid> {
    let at = "statusUpdate";
    check_names(at, Some(&update.task_id), Some(&update.context_id), names)?;
    if update.status.state == TaskState::Unspecified {
        return Err(Invalid::new(
            format!("{at}.status.state"),
            "must be a task state such as TASK_STATE_WORKING",
        ));
    }
    if let Some(message) = &mut update.status.message {
        check_message(&format!("{at}.status.message"), message, names)?;
    }
    Ok(Report::Status(update))
}

fn artifact(update: ArtifactUpdate, names: Names<'_>) -> Result<Report, Invalid> {
    check_names(
        "artifactUpdate",
        Some(&update.task_id),
        Some(&update.context_id),
        names,
    )?;
    Ok(Report::Artifact(update))
}

fn message(mut value: Value, names: Names<'_>) -> Result<Report, Invalid> {
    complete_message(&mut value);
    match decode("message", value)? {
        Event::Message(mut message) => {
            check_message("message", &mut message, names)?;
            Ok(Report::Message(message))
        }
        _ => Err(Invalid::new("message", "must be a message")),
    }
}

fn part(object: Map<String, Value>) -> Result<Report, Invalid> {
    const AT: &str = "message.parts[0]";
    let parts = Value::Array(vec![Value::Object(object)]);
    let mut message = Value::Object(Map::from_iter([("parts".to_owned(), parts)]));
    complete_message(&mut message);
    let event = decode("message", message).map_err(|mut invalid| {
        if let Some(field) = invalid.field.strip_prefix(AT) {
            invalid.field = field.trim_start_matches('.').to_owned();
        }
        invalid
    })?;
    match event {
        Event::Message(mut message) if !message.parts.is_empty() => {
            Ok(Report::Chunk(message.parts.swap_remove(0)))
        }
        _ => Err(Invalid::new("", "must be a part")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_line(line: &str) -> Result<Option<Report>, Invalid> {
        let task = TaskId::new("t1").unwrap();
        let context = ContextId::new("c1").unwrap();
        read(
            line.as_bytes(),
            Names {
                task: &task,
                context: &context,
            },
        )
    }

    fn reported(value: &Value) -> Report {
        read_line(&value.to_string()).unwrap().unwrap()
    }

    fn refused(line: &str) -> String {
        read_line(line).unwrap_err().to_string()
    }

    #[test]
    fn what_can_be_known_may_be_left_out() {
        let Report::Status(update) = reported(
            &json!({"statusUpdate": {"status": {"state": "TASK_STATE_FAILED",
                                                         "message": {"parts": [{"text": "x"}]}}}}),
        ) else {
            panic!("it is a status");
        };
        assert_eq!(
            (update.task_id.as_str(), update.context_id.as_str()),
            ("t1", "c1")
        );
        let said = update.status.message.unwrap();
        assert_eq!((said.text().as_str(), said.role), ("x", Role::Agent));
        assert_eq!(said.task_id.unwrap().as_str(), "t1");

        let Report::Message(message) = reported(&json!({"message": {"parts": [{"text": "hi"}]}}))
        else {
            panic!("it is a message");
        };
        assert_eq!(message.text(), "hi");
    }

    #[test]
    fn a_part_is_a_chunk() {
        assert_eq!(
            reported(&json!({"text": "a\n"})),
            Report::Chunk(Part::text("a\n"))
        );
        assert_eq!(
            reported(&json!({"data": null})),
            Report::Chunk(Part::data(Value::Null))
        );
        let raw = json!({"raw": "aGk=", "filename": "f", "mediaType": "image/png"});
        assert_eq!(
            reported(&raw),
            Report::Chunk(Part::raw("hi", "image/png").named("f"))
        );
    }

    #[test]
    fn other_spellings_are_understood() {
        for line in [
            r#"{"kind":"status-update","status":{"state":"working"},"final":false}"#,
            r#"{"status_update":{"task_id":"t1","status":{"state":"TASK_STATE_WORKING"}}}"#,
            r#"  {"statusUpdate":{"taskId":null,"status":{"state":"working"},"later":1}}"#,
        ] {
            let report = read_line(line).unwrap().unwrap();
            let Report::Status(update) = report else {
                panic!("{line} is a status")
            };
            assert_eq!(update.status.state, TaskState::Working);
            assert_eq!(update.task_id.as_str(), "t1");
        }
        let part = read_line(r#"{"kind":"text","text":"x"}"#).unwrap().unwrap();
        assert_eq!(part, Report::Chunk(Part::text("x")));
    }

    #[test]
    fn empty_lines_say_nothing() {
        assert_eq!(read_line("\n"), Ok(None));
        assert_eq!(read_line(" \r\n"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, complaint) in [
            ("hello\n", "is no JSON, at column 1"),
            ("[1]", "must be a JSON object"),
            ("{}", "must have one of statusUpdate"),
            (r#"{"text":"x","ask":"y"}"#, "has both ask and text"),
            (r#"{"ask":1}"#, "ask: must be a string"),
            (r#"{"text":1}"#, "text: must be a string"),
            (r#"{"raw":"*"}"#, "raw: must be base64"),
            (r#"{"task":{}}"#, "task: is the server's"),
            (r#"{"statusUpdate":{}}"#, "statusUpdate.status: is required"),
            (r#"{"statusUpdate":7}"#, "statusUpdate: must be an object"),
            (
                r#"{"statusUpdate":{"status":{}}}"#,
                "statusUpdate.status.state: must be",
            ),
            (
                r#"{"statusUpdate":{"status":{"state":"done"}}}"#,
                "statusUpdate.status.state: must be",
            ),
            (
                r#"{"statusUpdate":{"taskId":"other","status":{"state":"working"}}}"#,
                "statusUpdate.taskId: must be this task's",
            ),
            (
                r#"{"artifactUpdate":{"contextId":"other","artifact":{"artifactId":"a","parts":[]}}}"#,
                "artifactUpdate.contextId: must be this context's",
            ),
            (
                r#"{"artifactUpdate":{"artifact":{"parts":[{"text":"x"}]}}}"#,
                "artifactUpdate.artifact.artifactId: is required",
            ),
            (r#"{"message":{"parts":[]}}"#, "message.parts: must hold"),
            (
                r#"{"message":{"role":"user","parts":[{"text":"x"}]}}"#,
                "message.role: must be ROLE_AGENT",
            ),
            (
                r#"{"statusUpdate":{"status":{"state":"working","message":{"parts":[{"x":1}]}}}}"#,
                "statusUpdate.status.message.parts[0]: must hold",
            ),
        ] {
            let refusal = refused(line);
            assert!(refusal.starts_with(complaint), "{line} gives {refusal:?}");
        }
    }
}
