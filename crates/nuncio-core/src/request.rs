//! What an operation takes and what it answers, free of any version's spelling.

use crate::{
    AgentCard, ContextId, Message, Metadata, Operation, PushConfig, PushConfigId, Task, TaskId,
    TaskState, Timestamp,
};

/// A decoded request: one of the eleven operations with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Send and wait.
    SendMessage(SendMessage),
    /// Send and follow.
    SendStreamingMessage(SendMessage),
    /// Look at a task.
    GetTask(GetTask),
    /// List tasks.
    ListTasks(ListTasks),
    /// Cancel a task.
    CancelTask(CancelTask),
    /// Follow a task.
    SubscribeToTask(SubscribeToTask),
    /// Set a push config.
    CreatePushConfig(SetPushConfig),
    /// Look at a push config.
    GetPushConfig(GetPushConfig),
    /// List push configs.
    ListPushConfigs(ListPushConfigs),
    /// Delete a push config.
    DeletePushConfig(DeletePushConfig),
    /// Get the extended card.
    GetExtendedAgentCard,
}

impl Request {
    /// The operation it asks for.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Self::SendMessage(_) => Operation::SendMessage,
            Self::SendStreamingMessage(_) => Operation::SendStreamingMessage,
            Self::GetTask(_) => Operation::GetTask,
            Self::ListTasks(_) => Operation::ListTasks,
            Self::CancelTask(_) => Operation::CancelTask,
            Self::SubscribeToTask(_) => Operation::SubscribeToTask,
            Self::CreatePushConfig(_) => Operation::CreatePushConfig,
            Self::GetPushConfig(_) => Operation::GetPushConfig,
            Self::ListPushConfigs(_) => Operation::ListPushConfigs,
            Self::DeletePushConfig(_) => Operation::DeletePushConfig,
            Self::GetExtendedAgentCard => Operation::GetExtendedAgentCard,
        }
    }
}

/// Parameters of [`Operation::SendMessage`] and [`Operation::SendStreamingMessage`].
#[derive(Debug, Clone, PartialEq)]
pub struct SendMessage {
    /// The message.
    pub message: Message,
    /// How to answer.
    pub configuration: SendConfiguration,
    /// Facts about the request, passed to the agent.
    pub metadata: Metadata,
}

/// How a send is to be answered (A2A 1.0 §3.2.2).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SendConfiguration {
    /// Media types the caller can use; empty for any.
    pub accepted_output_modes: Vec<String>,
    /// A push config to set on the task before it runs.
    pub push_config: Option<PushConfig>,
    /// The last so many messages of history in the answer.
    pub history_length: Option<u32>,
    /// Whether to answer as soon as the task exists, not when it rests.
    pub return_immediately: bool,
}

/// Parameters of [`Operation::GetTask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetTask {
    /// The task.
    pub id: TaskId,
    /// The last so many messages of history in the answer.
    pub history_length: Option<u32>,
}

/// Parameters of [`Operation::ListTasks`] (A2A 1.0 §3.1.4).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListTasks {
    /// Only this context's.
    pub context_id: Option<ContextId>,
    /// Only those in this state.
    pub state: Option<TaskState>,
    /// Only those whose status is at least as new as this.
    pub status_after: Option<Timestamp>,
    /// At most so many, 1 to 100.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// The last so many messages of each task's history.
    pub history_length: Option<u32>,
    /// Whether artifacts are shown.
    pub include_artifacts: bool,
}

/// Parameters of [`Operation::CancelTask`].
#[derive(Debug, Clone, PartialEq)]
pub struct CancelTask {
    /// The task.
    pub id: TaskId,
    /// Facts about the request.
    pub metadata: Metadata,
}

/// Parameters of [`Operation::SubscribeToTask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeToTask {
    /// The task.
    pub id: TaskId,
}

/// Parameters of [`Operation::CreatePushConfig`], and a config in an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SetPushConfig {
    /// The task.
    pub task_id: TaskId,
    /// Its config.
    pub config: PushConfig,
}

/// Parameters of [`Operation::GetPushConfig`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetPushConfig {
    /// The task.
    pub task_id: TaskId,
    /// The config; in 0.3 the first where none is named.
    pub config_id: Option<PushConfigId>,
}

/// Parameters of [`Operation::ListPushConfigs`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPushConfigs {
    /// The task.
    pub task_id: TaskId,
    /// At most so many.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub page_token: Option<String>,
}

/// Parameters of [`Operation::DeletePushConfig`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletePushConfig {
    /// The task.
    pub task_id: TaskId,
    /// The config.
    pub config_id: PushConfigId,
}

/// One page of [`Operation::ListTasks`].
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    /// Newest status first.
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty at the end.
    pub next_page_token: String,
    /// The page size in force.
    pub page_size: u32,
    /// How many tasks the filter fits in all.
    pub total_size: u64,
}

/// What a unary operation answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Response {
    /// A send that became a task.
    SentTask(Task),
    /// A send that was answered by a bare message.
    SentMessage(Message),
    /// A task.
    Task(Task),
    /// A page of tasks.
    TaskPage(TaskPage),
    /// A push config.
    PushConfig(SetPushConfig),
    /// A page of push configs.
    PushConfigs {
        /// The configs.
        configs: Vec<SetPushConfig>,
        /// Where the next page begins; empty at the end.
        next_page_token: String,
    },
    /// A push config is gone.
    PushConfigDeleted,
    /// A card.
    Card(Box<AgentCard>),
}
