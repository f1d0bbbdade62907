//! The method table: the eleven operations of A2A, and how every binding and version names them.
//!
//! This is the only list. Routers, the client commands, `nuncio map`, the mapping page and its
//! test read it; nothing else in the project spells a method.

use crate::ProtocolVersion;

/// What a client can ask for (A2A 1.0 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Send a message, wait for the outcome.
    SendMessage,
    /// Send a message, follow the outcome as a stream.
    SendStreamingMessage,
    /// Look at a task.
    GetTask,
    /// List the caller's tasks.
    ListTasks,
    /// Ask for a task to be canceled.
    CancelTask,
    /// Follow a task that exists (0.3: resubscribe).
    SubscribeToTask,
    /// Set a push notification config.
    CreatePushConfig,
    /// Look at a push notification config.
    GetPushConfig,
    /// List a task's push notification configs.
    ListPushConfigs,
    /// Delete a push notification config.
    DeletePushConfig,
    /// Get the card shown to authenticated callers.
    GetExtendedAgentCard,
}

/// An HTTP method of a REST route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// GET
    Get,
    /// POST
    Post,
    /// DELETE
    Delete,
}

/// One route of the HTTP+JSON binding. `{id}` stands for the task's id, `{config}` for the
/// config's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestRoute {
    /// The methods it answers; the first is the one the specification's text names.
    pub methods: &'static [HttpMethod],
    /// The path below the interface's URL.
    pub path: &'static str,
}

struct Row {
    slash: &'static str,
    pascal: &'static str,
    rest_v03: RestRoute,
    rest_v1: RestRoute,
    grpc_v03: &'static str,
    grpc_v1: &'static str,
}

const GET: &[HttpMethod] = &[HttpMethod::Get];
const POST: &[HttpMethod] = &[HttpMethod::Post];
const DELETE: &[HttpMethod] = &[HttpMethod::Delete];
/// The text of 1.0 says POST, its protobuf annotation GET.
const POST_OR_GET: &[HttpMethod] = &[HttpMethod::Post, HttpMethod::Get];

const fn route(methods: &'static [HttpMethod], path: &'static str) -> RestRoute {
    RestRoute { methods, path }
}

impl Operation {
    /// All eleven, in the order of the mapping page.
    pub const ALL: [Self; 11] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::CancelTask,
        Self::ListTasks,
        Self::SubscribeToTask,
        Self::GetExtendedAgentCard,
        Self::CreatePushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
    ];

    const fn row(self) -> Row {
        match self {
            Self::SendMessage => Row {
                slash: "message/send",
                pascal: "SendMessage",
                rest_v03: route(POST, "/v1/message:send"),
                rest_v1: route(POST, "/message:send"),
                grpc_v03: "SendMessage",
                grpc_v1: "SendMessage",
            },
            Self::SendStreamingMessage => Row {
                slash: "message/stream",
                pascal: "SendStreamingMessage",
                rest_v03: route(POST, "/v1/message:stream"),
                rest_v1: route(POST, "/message:stream"),
                grpc_v03: "SendStreamingMessage",
                grpc_v1: "SendStreamingMessage",
            },
            Self::GetTask => Row {
                slash: "tasks/get",
                pascal: "GetTask",
                rest_v03: route(GET, "/v1/tasks/{id}"),
                rest_v1: route(GET, "/tasks/{id}"),
                grpc_v03: "GetTask",
                grpc_v1: "GetTask",
            },
            Self::ListTasks => Row {
                slash: "tasks/list",
                pascal: "ListTasks",
                rest_v03: route(GET, "/v1/tasks"),
                rest_v1: route(GET, "/tasks"),
                grpc_v03: "ListTasks",
                grpc_v1: "ListTasks",
            },
            Self::CancelTask => Row {
                slash: "tasks/cancel",
                pascal: "CancelTask",
                rest_v03: route(POST, "/v1/tasks/{id}:cancel"),
                rest_v1: route(POST, "/tasks/{id}:cancel"),
                grpc_v03: "CancelTask",
                grpc_v1: "CancelTask",
            },
            Self::SubscribeToTask => Row {
                slash: "tasks/resubscribe",
                pascal: "SubscribeToTask",
                rest_v03: route(POST_OR_GET, "/v1/tasks/{id}:subscribe"),
                rest_v1: route(POST_OR_GET, "/tasks/{id}:subscribe"),
                grpc_v03: "TaskSubscription",
                grpc_v1: "SubscribeToTask",
            },
            Self::CreatePushConfig => Row {
                slash: "tasks/pushNotificationConfig/set",
                pascal: "CreateTaskPushNotificationConfig",
                rest_v03: route(POST, "/v1/tasks/{id}/pushNotificationConfigs"),
                rest_v1: route(POST, "/tasks/{id}/pushNotificationConfigs"),
                grpc_v03: "CreateTaskPushNotificationConfig",
                grpc_v1: "CreateTaskPushNotificationConfig",
            },
            Self::GetPushConfig => Row {
                slash: "tasks/pushNotificationConfig/get",
                pascal: "GetTaskPushNotificationConfig",
                rest_v03: route(GET, "/v1/tasks/{id}/pushNotificationConfigs/{config}"),
                rest_v1: route(GET, "/tasks/{id}/pushNotificationConfigs/{config}"),
                grpc_v03: "GetTaskPushNotificationConfig",
                grpc_v1: "GetTaskPushNotificationConfig",
            },
            Self::ListPushConfigs => Row {
                slash: "tasks/pushNotificationConfig/list",
                pascal: "ListTaskPushNotificationConfigs",
                rest_v03: route(GET, "/v1/tasks/{id}/pushNotificationConfigs"),
                rest_v1: route(GET, "/tasks/{id}/pushNotificationConfigs"),
                grpc_v03: "ListTaskPushNotificationConfig",
                grpc_v1: "ListTaskPushNotificationConfigs",
            },
            Self::DeletePushConfig => Row {
                slash: "tasks/pushNotificationConfig/delete",
                pascal: "DeleteTaskPushNotificationConfig",
                rest_v03: route(DELETE, "/v1/tasks/{id}/pushNotificationConfigs/{config}"),
                rest_v1: route(DELETE, "/tasks/{id}/pushNotificationConfigs/{config}"),
                grpc_v03: "DeleteTaskPushNotificationConfig",
                grpc_v1: "DeleteTaskPushNotificationConfig",
            },
            Self::GetExtendedAgentCard => Row {
                slash: "agent/getAuthenticatedExtendedCard",
                pascal: "GetExtendedAgentCard",
                rest_v03: route(GET, "/v1/card"),
                rest_v1: route(GET, "/extendedAgentCard"),
                grpc_v03: "GetAgentCard",
                grpc_v1: "GetExtendedAgentCard",
            },
        }
    }

    /// The 0.3 JSON-RPC name, such as `message/send`.
    #[must_use]
    pub const fn slash_name(self) -> &'static str {
        self.row().slash
    }

    /// The 1.0 JSON-RPC name, such as `SendMessage`.
    #[must_use]
    pub const fn pascal_name(self) -> &'static str {
        self.row().pascal
    }

    /// The JSON-RPC name in a version's own spelling.
    #[must_use]
    pub const fn rpc_name(self, version: ProtocolVersion) -> &'static str {
        match version {
            ProtocolVersion::V0_3 => self.slash_name(),
            ProtocolVersion::V1_0 => self.pascal_name(),
        }
    }

    /// The HTTP+JSON route in a version.
    #[must_use]
    pub const fn rest(self, version: ProtocolVersion) -> RestRoute {
        match version {
            ProtocolVersion::V0_3 => self.row().rest_v03,
            ProtocolVersion::V1_0 => self.row().rest_v1,
        }
    }

    /// The gRPC method in a version's package (`a2a.v1` for 0.3, `lf.a2a.v1` for 1.0).
    #[must_use]
    pub const fn grpc(self, version: ProtocolVersion) -> &'static str {
        match version {
            ProtocolVersion::V0_3 => self.row().grpc_v03,
            ProtocolVersion::V1_0 => self.row().grpc_v1,
        }
    }

    /// The operation a JSON-RPC method names, in either spelling: an alias behaves as the name
    /// it stands for, whatever version the request speaks.
    #[must_use]
    pub fn from_rpc_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|op| name == op.slash_name() || name == op.pascal_name())
    }

    /// Whether a success is a stream.
    #[must_use]
    pub const fn is_streaming(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}
