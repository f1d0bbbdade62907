//! The peer: an agent on the official Rust SDK's server crate, `a2a-server-lf`, with its store in
//! memory. JSON-RPC is at `/jsonrpc` and HTTP+JSON at `/rest`.
//!
//! It is written as the SDK's own example is, but for `TCP_NODELAY`, which the example leaves off
//! and without which its streams are ten times slower; see `contract::serve`.

use std::{io, sync::Arc};

use a2a::{
    A2AError, AgentCapabilities, AgentCard, AgentInterface, Artifact, Part, StreamResponse,
    TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC, Task, TaskArtifactUpdateEvent,
    TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore, StaticAgentCard,
};
use contract::Ask;
use futures_util::stream::{self, BoxStream};

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

#[derive(Debug)]
struct Echo;

impl AgentExecutor for Echo {
    fn execute(&self, context: ExecutorContext) -> Events {
        let text = context
            .message
            .as_ref()
            .and_then(a2a::Message::text)
            .unwrap_or_default();
        match Ask::of(text) {
            Ask::Echo(text) => {
                let echo = artifact(&context, format!("echo: {text}"), false, true);
                Box::pin(stream::iter([
                    Ok(status(&context, TaskState::Working)),
                    Ok(echo),
                    Ok(status(&context, TaskState::Completed)),
                ]))
            }
            Ask::Stream { chunks } => Box::pin(async_stream::stream! {
                yield Ok(StreamResponse::Task(begun(&context)));
                for i in 0..chunks {
                    yield Ok(artifact(&context, format!("chunk {i}"), i > 0, i + 1 == chunks));
                }
                yield Ok(status(&context, TaskState::Completed));
            }),
            Ask::Fanout { chunks, start, gap } => Box::pin(async_stream::stream! {
                yield Ok(status(&context, TaskState::Working));
                tokio::time::sleep(start).await;
                for i in 0..chunks {
                    if i > 0 && !gap.is_zero() {
                        tokio::time::sleep(gap).await;
                    }
                    yield Ok(artifact(&context, format!("chunk {i}"), i > 0, i + 1 == chunks));
                }
                yield Ok(status(&context, TaskState::Completed));
            }),
        }
    }

    fn cancel(&self, context: ExecutorContext) -> Events {
        Box::pin(stream::iter([Ok(status(&context, TaskState::Canceled))]))
    }
}

fn now(state: TaskState) -> TaskStatus {
    TaskStatus {
        state,
        message: None,
        timestamp: Some(chrono::Utc::now()),
    }
}

fn begun(context: &ExecutorContext) -> Task {
    Task {
        id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        status: now(TaskState::Working),
        artifacts: None,
        history: context.message.clone().map(|message| vec![message]),
        metadata: None,
    }
}

fn status(context: &ExecutorContext, state: TaskState) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        status: now(state),
        metadata: None,
    })
}

fn artifact(context: &ExecutorContext, text: String, append: bool, last: bool) -> StreamResponse {
    StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
        task_id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        artifact: Artifact {
            artifact_id: "out".into(),
            name: Some("out".into()),
            description: None,
            parts: vec![Part::text(text)],
            metadata: None,
            extensions: None,
        },
        append: Some(append),
        last_chunk: Some(last),
        metadata: None,
    })
}

fn card(base: &str) -> AgentCard {
    AgentCard {
        name: "echo".into(),
        description: "echo".into(),
        version: "1".into(),
        supported_interfaces: vec![
            AgentInterface::new(format!("{base}/jsonrpc"), TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(format!("{base}/rest"), TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extensions: None,
            extended_agent_card: None,
        },
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: Vec::new(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = contract::listen().await?;
    let card = card(&format!("http://{}", listener.local_addr()?));
    let handler = Arc::new(DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()));
    let app = axum::Router::new()
        .nest(
            "/jsonrpc",
            a2a_server::jsonrpc::jsonrpc_router(handler.clone()),
        )
        .nest("/rest", a2a_server::rest::rest_router(handler))
        .merge(a2a_server::agent_card::agent_card_router(Arc::new(
            StaticAgentCard::new(card),
        )));
    contract::serve(listener, app).await
}
