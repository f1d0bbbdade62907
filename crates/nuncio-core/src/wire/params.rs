//! Reading the parameters of the eleven operations.

use super::content::{message, state};
use super::read::{At, Fields, Reader, id, string, timestamp};
use crate::{
    CancelTask, DeletePushConfig, GetPushConfig, GetTask, ListPushConfigs, ListTasks, Operation,
    PushAuthentication, PushConfig, PushConfigId, Request, Secret, SendConfiguration, SendMessage,
    SetPushConfig, SubscribeToTask, TaskId, TaskState,
};
use serde_json::Value;

/// 1.0's protobuf has these as `int32`.
const MAX_HISTORY: u32 = i32::MAX.unsigned_abs();
const MAX_PAGE: u32 = 100;

/// A request's parameters.
pub(super) fn request(
    reader: &mut Reader,
    at: &At<'_>,
    operation: Operation,
    value: Value,
) -> Option<Request> {
    let mut fields = reader.open(at, value)?;
    let fields = &mut fields;
    match operation {
        Operation::SendMessage => send(reader, fields).map(Request::SendMessage),
        Operation::SendStreamingMessage => send(reader, fields).map(Request::SendStreamingMessage),
        Operation::GetTask => {
            let history_length = history_length(reader, fields);
            let id = fields.required(reader, "id", id)?;
            Some(Request::GetTask(GetTask { id, history_length }))
        }
        Operation::ListTasks => Some(Request::ListTasks(list_tasks(reader, fields))),
        Operation::CancelTask => {
            let metadata = fields.metadata(reader, "metadata");
            let id = fields.required(reader, "id", id)?;
            Some(Request::CancelTask(CancelTask { id, metadata }))
        }
        Operation::SubscribeToTask => {
            let id = fields.required(reader, "id", id)?;
            Some(Request::SubscribeToTask(SubscribeToTask { id }))
        }
        Operation::CreatePushConfig => set_push(reader, fields).map(Request::CreatePushConfig),
        Operation::GetPushConfig => {
            // 0.3 means the first where no config is named.
            let required = !reader.is_v03();
            let (task_id, config_id) = task_and_config(reader, fields, required)?;
            Some(Request::GetPushConfig(GetPushConfig { task_id, config_id }))
        }
        Operation::ListPushConfigs => {
            let by_id = !fields.has("taskId") && (fields.has("id") || reader.is_v03());
            let task_id = fields.required(reader, if by_id { "id" } else { "taskId" }, id);
            Some(Request::ListPushConfigs(ListPushConfigs {
                // Protobuf has no absent number here: 0 stands for it.
                page_size: fields
                    .number(reader, "pageSize", 0, MAX_PAGE)
                    .filter(|n| *n > 0),
                page_token: fields.text(reader, "pageToken"),
                task_id: task_id?,
            }))
        }
        Operation::DeletePushConfig => {
            let (task_id, config_id) = task_and_config(reader, fields, true)?;
            let config_id = config_id?;
            Some(Request::DeletePushConfig(DeletePushConfig {
                task_id,
                config_id,
            }))
        }
        Operation::GetExtendedAgentCard => Some(Request::GetExtendedAgentCard),
    }
}

fn send(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<SendMessage> {
    // The message's name in 0.3's protobuf.
    fields.alias("message", "request");
    let message = fields.required(reader, "message", message);
    let configuration = fields.optional(reader, "configuration", send_configuration);
    let metadata = fields.metadata(reader, "metadata");
    Some(SendMessage {
        message: message?,
        configuration: configuration.unwrap_or_default(),
        metadata,
    })
}

fn send_configuration(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<SendConfiguration> {
    let mut fields = reader.open(at, value)?;
    // Of 1.0, of 0.3's JSON and of 0.3's protobuf. What is wrong with it is told under the name
    // that the client gave it.
    let push_names = [
        "taskPushNotificationConfig",
        "pushNotificationConfig",
        "pushNotification",
    ];
    let push_name = push_names.into_iter().find(|name| fields.has(name));
    let blocking = fields.optional(reader, "blocking", super::read::boolean);
    let at_once = fields.optional(reader, "returnImmediately", super::read::boolean);
    Some(SendConfiguration {
        accepted_output_modes: fields.list(reader, "acceptedOutputModes", string),
        push_config: push_name.and_then(|name| fields.optional(reader, name, push_config)),
        history_length: history_length(reader, &mut fields),
        return_immediately: at_once.unwrap_or(blocking == Some(false)),
    })
}

fn history_length(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<u32> {
    fields.number(reader, "historyLength", 0, MAX_HISTORY)
}

fn list_tasks(reader: &mut Reader, fields: &mut Fields<'_>) -> ListTasks {
    ListTasks {
        context_id: fields.id(reader, "contextId"),
        // Protobuf's zero asks for no state in particular.
        state: fields
            .optional(reader, "status", state)
            .filter(|s| *s != TaskState::Unspecified),
        status_after: fields.optional(reader, "statusTimestampAfter", timestamp),
        page_size: fields.number(reader, "pageSize", 1, MAX_PAGE),
        page_token: fields.text(reader, "pageToken"),
        history_length: history_length(reader, fields),
        include_artifacts: fields.flag(reader, "includeArtifacts"),
    }
}

/// A task's id and a config's: `{id, pushNotificationConfigId}` in 0.3, `{taskId, id}` in 1.0.
/// Either is taken under either version; only a lone `id` depends on it.
fn task_and_config(
    reader: &mut Reader,
    fields: &mut Fields<'_>,
    config_required: bool,
) -> Option<(TaskId, Option<PushConfigId>)> {
    const LONG: &str = "pushNotificationConfigId";

    let same = fields.peek("taskId").is_some() && fields.peek("taskId") == fields.peek("id");
    let (task, config) = match (fields.has("taskId"), fields.has(LONG)) {
        (true, true) => ("taskId", LONG),
        (false, true) => ("id", LONG),
        (true, false) if reader.is_v03() && same => ("taskId", LONG),
        (true, false) if reader.is_v03() && !fields.has("id") => ("taskId", LONG),
        (true, false) => ("taskId", "id"),
        (false, false) if reader.is_v03() => ("id", LONG),
        (false, false) => ("taskId", "id"),
    };
    let task_id = fields.required(reader, task, id);
    if config_required {
        let config_id = fields.required(reader, config, id);
        Some((task_id?, Some(config_id?)))
    } else {
        let config_id = fields.id(reader, config);
        Some((task_id?, config_id))
    }
}

/// A task's push config: nested in 0.3, flat in 1.0.
pub(super) fn set_push_config(
    reader: &mut Reader,
    at: &At<'_>,
    value: Value,
) -> Option<SetPushConfig> {
    let mut fields = reader.open(at, value)?;
    set_push(reader, &mut fields)
}

fn set_push(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<SetPushConfig> {
    // 0.3's protobuf names the task in a path and has one wrapping more.
    for name in ["parent", "name"] {
        if let Some(task) = fields.peek(name).and_then(task_in_path) {
            let task = task.to_owned();
            fields.set_default("taskId", task);
        }
    }
    if let Some(config) = fields.take("config") {
        let task_id = fields.take("taskId");
        let at = fields.member("config");
        let mut inner = reader.open(&at, config)?;
        if let Some(task_id) = task_id {
            inner.set_default("taskId", task_id);
        } else if let Some(task) = inner.peek("name").and_then(task_in_path) {
            let task = task.to_owned();
            inner.set_default("taskId", task);
        }
        return set_push_unwrapped(reader, &mut inner);
    }
    set_push_unwrapped(reader, fields)
}

fn set_push_unwrapped(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<SetPushConfig> {
    let task_id = fields.required(reader, "taskId", id);
    let nested = fields.has("pushNotificationConfig") || reader.is_v03() && !fields.has("url");
    let config = if nested {
        fields.required(reader, "pushNotificationConfig", push_config)
    } else {
        push_fields(reader, fields)
    };
    Some(SetPushConfig {
        task_id: task_id?,
        config: config?,
    })
}

/// The id in `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{config}`.
fn task_in_path(path: &str) -> Option<&str> {
    path.strip_prefix("tasks/")?
        .split('/')
        .next()
        .filter(|id| !id.is_empty())
}

pub(super) fn push_config(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<PushConfig> {
    let mut fields = reader.open(at, value)?;
    push_fields(reader, &mut fields)
}

fn push_fields(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<PushConfig> {
    let url = fields.required(reader, "url", string);
    Some(PushConfig {
        id: fields.id(reader, "id"),
        token: fields.text(reader, "token").map(Secret::new),
        authentication: fields
            .optional(reader, "authentication", authentication)
            .filter(|auth| !auth.schemes.is_empty() || auth.credentials.is_some()),
        url: url?,
    })
}

/// 0.3 has a list of schemes, 1.0 one; a list goes into the one with commas between.
fn authentication(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<PushAuthentication> {
    let mut fields = reader.open(at, value)?;
    let credentials = fields.text(reader, "credentials").map(Secret::new);
    let mut named = fields.list(reader, "schemes", string);
    named.extend(fields.text(reader, "scheme"));
    let split = named
        .iter()
        .flat_map(|names| names.split(','))
        .map(str::trim);
    let schemes: Vec<String> = split
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if reader.is_request() && schemes.is_empty() && credentials.is_some() {
        return fields.missing(reader, if reader.is_v03() { "schemes" } else { "scheme" });
    }
    Some(PushAuthentication {
        schemes,
        credentials,
    })
}
