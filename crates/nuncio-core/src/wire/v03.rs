//! How A2A 0.3 writes the model: the JSON Schema of `types.ts`.
//!
//! Enumerations are lower-case words; tasks, messages, parts and events say what they are in a
//! `kind`; results are bare. A file's content, name and media type stand in an object of their
//! own; a text's or data's name and media type have no place and are left out.
//!
//! A data part must be an object in 0.3 and may be any JSON value in 1.0. What is no object is
//! written as `{"value": …}`, and [`DATA_MARK`] in the part's metadata says so, for it to be
//! unwrapped where it is read again. The Python SDK does the same, so its clients see the value.

use super::card::{self, CardForm};
use super::write::{Base64, Each, Object, Text, Time, object};
use crate::{
    Artifact, ArtifactUpdate, Event, Message, Part, PartContent, PushAuthentication, PushConfig,
    Request, Response, Role, SendConfiguration, SendMessage, SetPushConfig, StatusUpdate, Task,
    TaskPage, TaskState, TaskStatus,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// The metadata key of a data part whose value is wrapped.
pub const DATA_MARK: &str = "data_part_compat";

/// A thing to be written as 0.3 does.
pub(super) struct V03<'a, T>(pub(super) &'a T);

/// A state's name.
pub(super) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "unknown",
        TaskState::Submitted => "submitted",
        TaskState::Working => "working",
        TaskState::InputRequired => "input-required",
        TaskState::AuthRequired => "auth-required",
        TaskState::Completed => "completed",
        TaskState::Failed => "failed",
        TaskState::Canceled => "canceled",
        TaskState::Rejected => "rejected",
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

impl Serialize for V03<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(task) = self;
        let mut o = object(serializer)?;
        o.field("kind", "task")?;
        o.field("id", &Text(&task.id))?;
        o.field("contextId", &Text(&task.context_id))?;
        o.field("status", &V03(&task.status))?;
        o.list("artifacts", &task.artifacts, V03)?;
        o.list("history", &task.history, V03)?;
        o.metadata("metadata", &task.metadata)?;
        o.end()
    }
}

impl Serialize for V03<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status) = self;
        let mut o = object(serializer)?;
        o.field("state", state_name(status.state))?;
        o.optional("message", status.message.as_ref().map(V03))?;
        o.optional("timestamp", status.timestamp.map(Time))?;
        o.end()
    }
}

impl Serialize for V03<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(message) = self;
        let mut o = object(serializer)?;
        o.field("kind", "message")?;
        o.field("messageId", &Text(&message.id))?;
        o.optional("contextId", message.context_id.as_ref().map(Text))?;
        o.optional("taskId", message.task_id.as_ref().map(Text))?;
        o.field("role", role_name(message.role))?;
        o.field("parts", &Each(&message.parts, V03))?;
        o.metadata("metadata", &message.metadata)?;
        o.strings("extensions", &message.extensions)?;
        o.list("referenceTaskIds", &message.reference_task_ids, Text)?;
        o.end()
    }
}

impl Serialize for V03<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part) = self;
        let mut o = object(serializer)?;
        match &part.content {
            PartContent::Text(text) => {
                o.field("kind", "text")?;
                o.field("text", text)?;
            }
            PartContent::Raw(_) | PartContent::Url(_) => {
                o.field("kind", "file")?;
                o.field("file", &File(part))?;
            }
            PartContent::Data(value) => {
                o.field("kind", "data")?;
                if !value.is_object() {
                    o.field("data", &Wrapped(value))?;
                    o.marked_metadata("metadata", &part.metadata, DATA_MARK)?;
                    return o.end();
                }
                o.field("data", value)?;
            }
        }
        o.metadata("metadata", &part.metadata)?;
        o.end()
    }
}

struct File<'a>(&'a Part);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part) = self;
        let mut o = object(serializer)?;
        match &part.content {
            PartContent::Raw(bytes) => o.field("bytes", &Base64(bytes))?,
            PartContent::Url(url) => o.field("uri", url)?,
            PartContent::Text(_) | PartContent::Data(_) => {}
        }
        o.text("name", part.filename.as_ref())?;
        o.text("mimeType", part.media_type.as_ref())?;
        o.end()
    }
}

struct Wrapped<'a>(&'a Value);

impl Serialize for Wrapped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("value", self.0)?;
        o.end()
    }
}

impl Serialize for V03<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(artifact) = self;
        let mut o = object(serializer)?;
        o.field("artifactId", &Text(&artifact.id))?;
        o.text("name", artifact.name.as_ref())?;
        o.text("description", artifact.description.as_ref())?;
        o.field("parts", &Each(&artifact.parts, V03))?;
        o.metadata("metadata", &artifact.metadata)?;
        o.strings("extensions", &artifact.extensions)?;
        o.end()
    }
}

impl Serialize for V03<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(update) = self;
        let mut o = object(serializer)?;
        o.field("kind", "status-update")?;
        o.field("taskId", &Text(&update.task_id))?;
        o.field("contextId", &Text(&update.context_id))?;
        o.field("status", &V03(&update.status))?;
        o.field("final", &update.status.state.is_final())?;
        o.metadata("metadata", &update.metadata)?;
        o.end()
    }
}

impl Serialize for V03<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(update) = self;
        let mut o = object(serializer)?;
        o.field("kind", "artifact-update")?;
        o.field("taskId", &Text(&update.task_id))?;
        o.field("contextId", &Text(&update.context_id))?;
        o.field("artifact", &V03(&update.artifact))?;
        o.field("append", &update.append)?;
        o.field("lastChunk", &update.last_chunk)?;
        o.metadata("metadata", &update.metadata)?;
        o.end()
    }
}

impl Serialize for V03<'_, Event> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Event::Task(task) => V03(task).serialize(serializer),
            Event::Message(message) => V03(message).serialize(serializer),
            Event::Status(update) => V03(update).serialize(serializer),
            Event::Artifact(update) => V03(update).serialize(serializer),
        }
    }
}

impl Serialize for V03<'_, Response> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Response::SentTask(task) | Response::Task(task) => V03(task).serialize(serializer),
            Response::SentMessage(message) => V03(message).serialize(serializer),
            Response::TaskPage(page) => V03(page).serialize(serializer),
            Response::PushConfig(set) => answered(set).serialize(serializer),
            Response::PushConfigs { configs, .. } => Each(configs, answered).serialize(serializer),
            Response::PushConfigDeleted => serializer.serialize_unit(),
            Response::Card(agent) => card::Card(agent, CardForm::V0_3).serialize(serializer),
        }
    }
}

impl Serialize for V03<'_, TaskPage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(page) = self;
        let mut o = object(serializer)?;
        o.field("tasks", &Each(&page.tasks, V03))?;
        o.field("nextPageToken", &page.next_page_token)?;
        o.field("pageSize", &page.page_size)?;
        o.field("totalSize", &page.total_size)?;
        o.end()
    }
}

/// A task's push config; its secrets go to servers only.
struct Push<'a>(&'a SetPushConfig, bool);

fn answered(set: &SetPushConfig) -> Push<'_> {
    Push(set, false)
}

impl Serialize for Push<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        push_members(&mut o, self.0, self.1)?;
        o.end()
    }
}

fn push_members<M: SerializeMap>(
    o: &mut Object<M>,
    set: &SetPushConfig,
    secrets: bool,
) -> Result<(), M::Error> {
    o.field("taskId", &Text(&set.task_id))?;
    o.field("pushNotificationConfig", &Config(&set.config, secrets))
}

struct Config<'a>(&'a PushConfig, bool);

/// A push config as it goes to a server, or to the store.
pub(super) fn with_secrets(config: &PushConfig) -> impl Serialize + '_ {
    Config(config, true)
}

impl Serialize for Config<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(config, secrets) = *self;
        let mut o = object(serializer)?;
        o.optional("id", config.id.as_ref().map(Text))?;
        o.field("url", &config.url)?;
        o.secret("token", config.token.as_ref().filter(|_| secrets))?;
        let authentication = config
            .authentication
            .as_ref()
            .map(|auth| Auth(auth, secrets));
        o.optional("authentication", authentication)?;
        o.end()
    }
}

struct Auth<'a>(&'a PushAuthentication, bool);

impl Serialize for Auth<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(authentication, secrets) = *self;
        let mut o = object(serializer)?;
        o.field("schemes", &authentication.schemes)?;
        o.secret(
            "credentials",
            authentication.credentials.as_ref().filter(|_| secrets),
        )?;
        o.end()
    }
}

impl Serialize for V03<'_, Request> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        match self.0 {
            Request::SendMessage(send) | Request::SendStreamingMessage(send) => {
                send_members(&mut o, send)?;
            }
            Request::GetTask(get) => {
                o.field("id", &Text(&get.id))?;
                o.optional("historyLength", get.history_length)?;
            }
            Request::ListTasks(list) => {
                o.optional("contextId", list.context_id.as_ref().map(Text))?;
                o.optional("status", list.state.map(state_name))?;
                o.optional("pageSize", list.page_size)?;
                o.text("pageToken", list.page_token.as_ref())?;
                o.optional("historyLength", list.history_length)?;
                o.optional("statusTimestampAfter", list.status_after.map(Time))?;
                o.flag("includeArtifacts", list.include_artifacts)?;
            }
            Request::CancelTask(cancel) => {
                o.field("id", &Text(&cancel.id))?;
                o.metadata("metadata", &cancel.metadata)?;
            }
            Request::SubscribeToTask(subscribe) => o.field("id", &Text(&subscribe.id))?,
            Request::CreatePushConfig(set) => push_members(&mut o, set, true)?,
            Request::GetPushConfig(get) => {
                o.field("id", &Text(&get.task_id))?;
                o.optional("pushNotificationConfigId", get.config_id.as_ref().map(Text))?;
            }
            Request::ListPushConfigs(list) => {
                o.field("id", &Text(&list.task_id))?;
                o.optional("pageSize", list.page_size)?;
                o.text("pageToken", list.page_token.as_ref())?;
            }
            Request::DeletePushConfig(delete) => {
                o.field("id", &Text(&delete.task_id))?;
                o.field("pushNotificationConfigId", &Text(&delete.config_id))?;
            }
            Request::GetExtendedAgentCard => {}
        }
        o.end()
    }
}

fn send_members<M: SerializeMap>(o: &mut Object<M>, send: &SendMessage) -> Result<(), M::Error> {
    o.field("message", &V03(&send.message))?;
    o.field("configuration", &V03(&send.configuration))?;
    o.metadata("metadata", &send.metadata)
}

impl Serialize for V03<'_, SendConfiguration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(configuration) = self;
        let mut o = object(serializer)?;
        o.strings("acceptedOutputModes", &configuration.accepted_output_modes)?;
        let push = configuration
            .push_config
            .as_ref()
            .map(|config| Config(config, true));
        o.optional("pushNotificationConfig", push)?;
        o.optional("historyLength", configuration.history_length)?;
        // Always said: servers of 0.3 do not agree on what its absence means.
        o.field("blocking", &!configuration.return_immediately)?;
        o.end()
    }
}
