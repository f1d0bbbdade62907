//! What A2A talks about, and how each published version of the protocol spells it.
//!
//! This crate holds the version-neutral model ([`Task`], [`Message`], [`Part`], [`Artifact`],
//! [`AgentCard`]), the rules that make a task out of its log ([`Task::apply`], [`TaskState`]),
//! the one table of the eleven operations ([`Operation`]), and the codecs of A2A 0.3 and 1.0
//! ([`wire`]). It does no I/O and knows no runtime: everything here is a pure function, which is
//! what lets the codecs be fuzzed and the state machine be property-tested.
//!
//! Nothing outside [`wire`] knows how a version writes a thing down, and nothing in [`wire`]
//! decides what a server does.

mod artifact;
mod card;
mod error;
mod event;
mod ids;
mod message;
mod metadata;
mod operation;
mod part;
mod principal;
mod push;
mod request;
mod state;
mod task;
mod time;
mod version;
pub mod wire;

pub use artifact::Artifact;
pub use card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    CardSignature, OAuthFlow, OAuthFlows, ProtocolBinding, SecurityRequirement, SecurityScheme,
};
pub use error::{ErrorKind, FieldViolation, GrpcCode, ProtocolError};
pub use event::{ArtifactUpdate, Event, LogEvent, StatusUpdate};
pub use ids::{ArtifactId, ContextId, IdError, MAX_ID_BYTES, MessageId, PushConfigId, TaskId};
pub use message::{Message, Role};
pub use metadata::Metadata;
pub use operation::{HttpMethod, Operation, RestRoute};
pub use part::{Part, PartContent};
pub use principal::{Owner, Principal};
pub use push::{PushAuthentication, PushConfig, Secret};
pub use request::{
    CancelTask, DeletePushConfig, GetPushConfig, GetTask, ListPushConfigs, ListTasks, Request,
    Response, SendConfiguration, SendMessage, SetPushConfig, SubscribeToTask, TaskPage,
};
pub use state::TaskState;
pub use task::{Fault, Task, TaskOutline, TaskStatus, TaskView};
pub use time::{Timestamp, TimestampError};
pub use version::{ProtocolVersion, UnsupportedVersion};
