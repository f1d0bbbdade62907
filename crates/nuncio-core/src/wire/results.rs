//! Reading what a server answered, on the client's side.

use super::content::{event, task};
use super::params::set_push_config;
use super::read::{At, Fields, Reader, list, whole};
use crate::{Event, Operation, Response, TaskPage};
use serde_json::Value;

/// The `result` of a unary operation.
pub(super) fn response(
    reader: &mut Reader,
    at: &At<'_>,
    operation: Operation,
    value: Value,
) -> Option<Response> {
    match operation {
        Operation::SendMessage => match event(reader, at, value)? {
            Event::Task(task) => Some(Response::SentTask(task)),
            Event::Message(message) => Some(Response::SentMessage(message)),
            Event::Status(_) | Event::Artifact(_) => {
                reader.fault(at, "must be a task or a message, not an update of one")
            }
        },
        Operation::GetTask | Operation::CancelTask => task(reader, at, value).map(Response::Task),
        Operation::ListTasks => {
            let mut fields = reader.open(at, value)?;
            task_page(reader, &mut fields).map(Response::TaskPage)
        }
        Operation::CreatePushConfig | Operation::GetPushConfig => {
            set_push_config(reader, at, value).map(Response::PushConfig)
        }
        Operation::ListPushConfigs => match value {
            Value::Array(_) => {
                let configs = list(reader, at, value, set_push_config)?;
                Some(Response::PushConfigs {
                    configs,
                    next_page_token: String::new(),
                })
            }
            value => {
                let mut fields = reader.open(at, value)?;
                Some(Response::PushConfigs {
                    configs: fields.list(reader, "configs", set_push_config),
                    next_page_token: fields.text(reader, "nextPageToken").unwrap_or_default(),
                })
            }
        },
        Operation::DeletePushConfig => Some(Response::PushConfigDeleted),
        Operation::GetExtendedAgentCard => {
            super::card::read(reader, at, value).map(|card| Response::Card(Box::new(card)))
        }
        Operation::SendStreamingMessage | Operation::SubscribeToTask => {
            reader.fault(at, "must be a stream of events, not one answer")
        }
    }
}

/// A page of tasks. Protobuf's JSON leaves empty members out.
fn task_page(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<TaskPage> {
    let tasks = fields.list(reader, "tasks", task);
    let next_page_token = fields.text(reader, "nextPageToken").unwrap_or_default();
    let page_size = fields.number(reader, "pageSize", 0, u32::MAX).unwrap_or(0);
    let total_size = match fields.take("totalSize") {
        None => 0,
        Some(value) => match whole(&value).and_then(|n| u64::try_from(n).ok()) {
            Some(size) => size,
            None => return reader.fault(&fields.member("totalSize"), "must be a whole number"),
        },
    };
    Some(TaskPage {
        tasks,
        next_page_token,
        page_size,
        total_size,
    })
}
