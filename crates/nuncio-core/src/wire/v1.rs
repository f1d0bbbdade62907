//! How A2A 1.0 writes the model: ProtoJSON of the protobuf package `lf.a2a.v1`.
//!
//! Enumerations have protobuf's names (`TASK_STATE_WORKING`, `ROLE_USER`); what an object is, is
//! told by the member it stands under (`{"task": …}`), not by a `kind`; a part is told by the
//! member it has (`text`, `raw`, `url`, `data`). What has its default value is left out, except
//! the members that the specification requires.

use super::card::{self, CardForm};
use super::write::{Base64, Each, Object, Text, Time, object};
use crate::{
    Artifact, ArtifactUpdate, Event, LogEvent, Message, Part, PartContent, PushAuthentication,
    PushConfig, Request, Response, Role, SendConfiguration, SendMessage, SetPushConfig,
    StatusUpdate, Task, TaskId, TaskPage, TaskState, TaskStatus,
};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A thing to be written as 1.0 does.
pub(super) struct V1<'a, T>(pub(super) &'a T);

/// A state's name.
pub(super) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Unspecified => "TASK_STATE_UNSPECIFIED",
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

impl Serialize for V1<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(task) = self;
        let mut o = object(serializer)?;
        o.field("id", &Text(&task.id))?;
        o.field("contextId", &Text(&task.context_id))?;
        o.field("status", &V1(&task.status))?;
        o.list("artifacts", &task.artifacts, V1)?;
        o.list("history", &task.history, V1)?;
        o.metadata("metadata", &task.metadata)?;
        o.end()
    }
}

impl Serialize for V1<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status) = self;
        let mut o = object(serializer)?;
        o.field("state", state_name(status.state))?;
        o.optional("message", status.message.as_ref().map(V1))?;
        o.optional("timestamp", status.timestamp.map(Time))?;
        o.end()
    }
}

impl Serialize for V1<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(message) = self;
        let mut o = object(serializer)?;
        o.field("messageId", &Text(&message.id))?;
        o.optional("contextId", message.context_id.as_ref().map(Text))?;
        o.optional("taskId", message.task_id.as_ref().map(Text))?;
        o.field("role", role_name(message.role))?;
        o.field("parts", &Each(&message.parts, V1))?;
        o.metadata("metadata", &message.metadata)?;
        o.strings("extensions", &message.extensions)?;
        o.list("referenceTaskIds", &message.reference_task_ids, Text)?;
        o.end()
    }
}

impl Serialize for V1<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part) = self;
        let mut o = object(serializer)?;
        match &part.content {
            PartContent::Text(text) => o.field("text", text)?,
            PartContent::Raw(bytes) => o.field("raw", &Base64(bytes))?,
            PartContent::Url(url) => o.field("url", url)?,
            PartContent::Data(value) => o.field("data", value)?,
        }
        o.text("filename", part.filename.as_ref())?;
        o.text("mediaType", part.media_type.as_ref())?;
        o.metadata("metadata", &part.metadata)?;
        o.end()
    }
}

impl Serialize for V1<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(artifact) = self;
        let mut o = object(serializer)?;
        o.field("artifactId", &Text(&artifact.id))?;
        o.text("name", artifact.name.as_ref())?;
        o.text("description", artifact.description.as_ref())?;
        o.field("parts", &Each(&artifact.parts, V1))?;
        o.metadata("metadata", &artifact.metadata)?;
        o.strings("extensions", &artifact.extensions)?;
        o.end()
    }
}

impl Serialize for V1<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(update) = self;
        let mut o = object(serializer)?;
        o.field("taskId", &Text(&update.task_id))?;
        o.field("contextId", &Text(&update.context_id))?;
        o.field("status", &V1(&update.status))?;
        o.metadata("metadata", &update.metadata)?;
        o.end()
    }
}

impl Serialize for V1<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(update) = self;
        let mut o = object(serializer)?;
        o.field("taskId", &Text(&update.task_id))?;
        o.field("contextId", &Text(&update.context_id))?;
        o.field("artifact", &V1(&update.artifact))?;
        o.flag("append", update.append)?;
        o.flag("lastChunk", update.last_chunk)?;
        o.metadata("metadata", &update.metadata)?;
        o.end()
    }
}

fn wrapped<'a, S: Serializer, T>(serializer: S, name: &str, thing: &'a T) -> Result<S::Ok, S::Error>
where
    V1<'a, T>: Serialize,
{
    let mut o = object(serializer)?;
    o.field(name, &V1(thing))?;
    o.end()
}

impl Serialize for V1<'_, Event> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Event::Task(task) => wrapped(serializer, "task", task),
            Event::Message(message) => wrapped(serializer, "message", message),
            Event::Status(update) => wrapped(serializer, "statusUpdate", update),
            Event::Artifact(update) => wrapped(serializer, "artifactUpdate", update),
        }
    }
}

/// The store's form: a stream's event.
impl Serialize for V1<'_, LogEvent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            LogEvent::Created(task) => wrapped(serializer, "task", task),
            LogEvent::Message(message) => wrapped(serializer, "message", message),
            LogEvent::Status(update) => wrapped(serializer, "statusUpdate", update),
            LogEvent::Artifact(update) => wrapped(serializer, "artifactUpdate", update),
        }
    }
}

impl Serialize for V1<'_, Response> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Response::SentTask(task) => wrapped(serializer, "task", task),
            Response::SentMessage(message) => wrapped(serializer, "message", message),
            Response::Task(task) => V1(task).serialize(serializer),
            Response::TaskPage(page) => V1(page).serialize(serializer),
            Response::PushConfig(set) => answered(set).serialize(serializer),
            Response::PushConfigs {
                configs,
                next_page_token,
            } => {
                let mut o = object(serializer)?;
                o.field("configs", &Each(configs, answered))?;
                o.field("nextPageToken", next_page_token)?;
                o.end()
            }
            Response::PushConfigDeleted => object(serializer)?.end(),
            Response::Card(agent) => card::Card(agent, CardForm::V1_0).serialize(serializer),
        }
    }
}

impl Serialize for V1<'_, TaskPage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(page) = self;
        let mut o = object(serializer)?;
        o.field("tasks", &Each(&page.tasks, V1))?;
        o.field("nextPageToken", &page.next_page_token)?;
        o.field("pageSize", &page.page_size)?;
        o.field("totalSize", &page.total_size)?;
        o.end()
    }
}

/// A push config; its secrets go to servers only.
struct Push<'a> {
    task_id: Option<&'a TaskId>,
    config: &'a PushConfig,
    secrets: bool,
}

fn answered(set: &SetPushConfig) -> Push<'_> {
    Push {
        task_id: Some(&set.task_id),
        config: &set.config,
        secrets: false,
    }
}

impl Serialize for Push<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            task_id,
            config,
            secrets,
        } = *self;
        let mut o = object(serializer)?;
        push_members(&mut o, task_id, config, secrets)?;
        o.end()
    }
}

fn push_members<M: SerializeMap>(
    o: &mut Object<M>,
    task_id: Option<&TaskId>,
    config: &PushConfig,
    secrets: bool,
) -> Result<(), M::Error> {
    o.optional("taskId", task_id.map(Text))?;
    o.optional("id", config.id.as_ref().map(Text))?;
    o.field("url", &config.url)?;
    o.secret("token", config.token.as_ref().filter(|_| secrets))?;
    o.optional(
        "authentication",
        config
            .authentication
            .as_ref()
            .map(|auth| Auth(auth, secrets)),
    )
}

struct Auth<'a>(&'a PushAuthentication, bool);

impl Serialize for Auth<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(authentication, secrets) = *self;
        let mut o = object(serializer)?;
        o.field("scheme", &authentication.schemes.join(", "))?;
        o.secret(
            "credentials",
            authentication.credentials.as_ref().filter(|_| secrets),
        )?;
        o.end()
    }
}

impl Serialize for V1<'_, Request> {
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
            Request::CreatePushConfig(set) => {
                push_members(&mut o, Some(&set.task_id), &set.config, true)?;
            }
            Request::GetPushConfig(get) => {
                o.field("taskId", &Text(&get.task_id))?;
                o.optional("id", get.config_id.as_ref().map(Text))?;
            }
            Request::ListPushConfigs(list) => {
                o.field("taskId", &Text(&list.task_id))?;
                o.optional("pageSize", list.page_size)?;
                o.text("pageToken", list.page_token.as_ref())?;
            }
            Request::DeletePushConfig(delete) => {
                o.field("taskId", &Text(&delete.task_id))?;
                o.field("id", &Text(&delete.config_id))?;
            }
            Request::GetExtendedAgentCard => {}
        }
        o.end()
    }
}

fn send_members<M: SerializeMap>(o: &mut Object<M>, send: &SendMessage) -> Result<(), M::Error> {
    o.field("message", &V1(&send.message))?;
    if send.configuration != SendConfiguration::default() {
        o.field("configuration", &V1(&send.configuration))?;
    }
    o.metadata("metadata", &send.metadata)
}

impl Serialize for V1<'_, SendConfiguration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(configuration) = self;
        let mut o = object(serializer)?;
        o.strings("acceptedOutputModes", &configuration.accepted_output_modes)?;
        let push = configuration.push_config.as_ref();
        let push = push.map(|config| Push {
            task_id: None,
            config,
            secrets: true,
        });
        o.optional("taskPushNotificationConfig", push)?;
        o.optional("historyLength", configuration.history_length)?;
        o.flag("returnImmediately", configuration.return_immediately)?;
        o.end()
    }
}
