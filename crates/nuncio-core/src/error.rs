//! The protocol's errors, with their spelling on every binding.

use std::fmt;

/// Which error it is. One table gives each its code on every binding (A2A 1.0 §5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The body is no JSON, or nested deeper than the server reads.
    ParseError,
    /// JSON, but no JSON-RPC request.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// The parameters don't fit the method.
    InvalidParams,
    /// The server failed; the cause stays inside.
    Internal,
    /// No such task, or not the caller's.
    TaskNotFound,
    /// The task has ended and can't be canceled.
    TaskNotCancelable,
    /// Push notifications are off.
    PushNotificationNotSupported,
    /// The operation is off, or not possible for this task.
    UnsupportedOperation,
    /// A media type the agent does not take or can't produce.
    ContentTypeNotSupported,
    /// The agent broke the protocol.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedAgentCardNotConfigured,
    /// A required extension was not activated.
    ExtensionSupportRequired,
    /// The requested protocol version is not spoken here.
    VersionNotSupported,
}

/// A gRPC status code, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum GrpcCode {
    /// INVALID_ARGUMENT
    InvalidArgument = 3,
    /// NOT_FOUND
    NotFound = 5,
    /// FAILED_PRECONDITION
    FailedPrecondition = 9,
    /// UNIMPLEMENTED
    Unimplemented = 12,
    /// INTERNAL
    Internal = 13,
}

struct Row {
    code: i32,
    http: u16,
    grpc: GrpcCode,
    reason: Option<&'static str>,
    message: &'static str,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
    ];

    const fn row(self) -> Row {
        use GrpcCode::{FailedPrecondition, InvalidArgument, NotFound, Unimplemented};
        const fn row(
            code: i32,
            http: u16,
            grpc: GrpcCode,
            reason: Option<&'static str>,
            message: &'static str,
        ) -> Row {
            Row {
                code,
                http,
                grpc,
                reason,
                message,
            }
        }
        match self {
            Self::ParseError => row(-32700, 400, InvalidArgument, None, "Invalid JSON payload"),
            Self::InvalidRequest => row(
                -32600,
                400,
                InvalidArgument,
                None,
                "Request payload validation error",
            ),
            Self::MethodNotFound => row(-32601, 404, Unimplemented, None, "Method not found"),
            Self::InvalidParams => row(-32602, 400, InvalidArgument, None, "Invalid parameters"),
            Self::Internal => row(-32603, 500, GrpcCode::Internal, None, "Internal error"),
            Self::TaskNotFound => row(
                -32001,
                404,
                NotFound,
                Some("TASK_NOT_FOUND"),
                "Task not found",
            ),
            Self::TaskNotCancelable => row(
                -32002,
                400,
                FailedPrecondition,
                Some("TASK_NOT_CANCELABLE"),
                "Task cannot be canceled",
            ),
            Self::PushNotificationNotSupported => row(
                -32003,
                400,
                FailedPrecondition,
                Some("PUSH_NOTIFICATION_NOT_SUPPORTED"),
                "Push Notification is not supported",
            ),
            Self::UnsupportedOperation => row(
                -32004,
                400,
                FailedPrecondition,
                Some("UNSUPPORTED_OPERATION"),
                "This operation is not supported",
            ),
            Self::ContentTypeNotSupported => row(
                -32005,
                400,
                InvalidArgument,
                Some("CONTENT_TYPE_NOT_SUPPORTED"),
                "Incompatible content types",
            ),
            Self::InvalidAgentResponse => row(
                -32006,
                500,
                GrpcCode::Internal,
                Some("INVALID_AGENT_RESPONSE"),
                "Invalid agent response",
            ),
            Self::ExtendedAgentCardNotConfigured => row(
                -32007,
                400,
                FailedPrecondition,
                Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
                "Authenticated Extended Card is not configured",
            ),
            Self::ExtensionSupportRequired => row(
                -32008,
                400,
                FailedPrecondition,
                Some("EXTENSION_SUPPORT_REQUIRED"),
                "A required extension was not activated",
            ),
            Self::VersionNotSupported => row(
                -32009,
                400,
                FailedPrecondition,
                Some("VERSION_NOT_SUPPORTED"),
                "The requested protocol version is not supported",
            ),
        }
    }

    /// The JSON-RPC error code.
    #[must_use]
    pub const fn code(self) -> i32 {
        self.row().code
    }

    /// The HTTP status on the HTTP+JSON binding.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().http
    }

    /// The gRPC status.
    #[must_use]
    pub const fn grpc(self) -> GrpcCode {
        self.row().grpc
    }

    /// The `reason` of its `google.rpc.ErrorInfo`; `None` for errors of JSON-RPC itself.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        self.row().reason
    }

    /// The message where nothing more is said.
    #[must_use]
    pub const fn default_message(self) -> &'static str {
        self.row().message
    }

    /// The kind that has this JSON-RPC code.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A field of a request that can't be taken, and why (`google.rpc.BadRequest.FieldViolation`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path from the parameters' root, such as `message.parts[0].text`.
    pub field: String,
    /// What is wrong and what would be right.
    pub description: String,
}

/// An error as a client sees it. What caused it inside the server is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// Which error.
    pub kind: ErrorKind,
    /// One sentence for the caller.
    pub message: String,
    /// The fields at fault, for `InvalidParams`.
    pub violations: Vec<FieldViolation>,
    /// A machine-readable word for refusals that have one, such as
    /// `refused_webhook_private_address`.
    pub refusal: Option<&'static str>,
}

impl ProtocolError {
    /// The error with its standard message.
    #[must_use]
    pub fn new(kind: ErrorKind) -> Self {
        Self::with_message(kind, kind.default_message())
    }

    /// The error with a message of its own, which must be fit for the caller's eyes.
    #[must_use]
    pub fn with_message(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            violations: Vec::new(),
            refusal: None,
        }
    }

    /// `InvalidParams` that names one field.
    #[must_use]
    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let violation = FieldViolation {
            field: field.into(),
            description: description.into(),
        };
        Self {
            message: format!("{}: {}", violation.field, violation.description),
            violations: vec![violation],
            ..Self::new(ErrorKind::InvalidParams)
        }
    }

    /// Adds the word for a refusal.
    #[must_use]
    pub fn refused(mut self, word: &'static str) -> Self {
        self.refusal = Some(word);
        self
    }

    /// What a missing task and somebody else's answer, byte for byte.
    #[must_use]
    pub fn task_not_found() -> Self {
        Self::new(ErrorKind::TaskNotFound)
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind.code())
    }
}

impl std::error::Error for ProtocolError {}

impl From<crate::UnsupportedVersion> for ProtocolError {
    fn from(error: crate::UnsupportedVersion) -> Self {
        Self::with_message(ErrorKind::VersionNotSupported, error.to_string())
    }
}
