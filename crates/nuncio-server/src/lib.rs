//! An A2A server as a library.
//!
//! Write an [`Agent`], give it to a [`Server`]: it then speaks A2A 0.3 and 1.0, keeps every task
//! and every event in a [`store`], lets followers resume where they were, and shows
//! nobody what is not theirs.
//!
//! ```no_run
//! use nuncio_server::{Agent, Server, Turn, TurnResult, async_trait};
//!
//! struct Echo;
//!
//! #[async_trait]
//! impl Agent for Echo {
//!     async fn run(&self, turn: Turn) -> TurnResult {
//!         turn.text_artifact("echo", turn.message().text()).await?;
//!         turn.complete()
//!     }
//! }
//!
//! # async fn run() -> std::io::Result<()> {
//! Server::builder(Echo).name("echo").serve("127.0.0.1:8080").await
//! # }
//! ```
//!
//! Mounted into an application of one's own, a server is an [`axum::Router`]
//! ([`Server::router`]) and a [`Runtime`] to hold on to ([`Server::start`]).

mod agent;
mod auth;
mod binding;
#[expect(dead_code, reason = "the courier is being built")]
mod courier;
mod engine;
mod keys;
mod limits;
mod modes;
mod runtime;
mod serve;
mod server;
mod transport;
mod turn;

pub use agent::{Agent, AgentError};
pub use async_trait::async_trait;
pub use auth::{ApiKeys, Auth, Authenticator, InvalidCredentials};
pub use keys::{KeyEntry, KeyFile};
pub use limits::Limits;
pub use nuncio_core as core;
pub use nuncio_store as store;
pub use runtime::{RetentionPolicy, Runtime};
pub use serve::serve;
pub use server::{Server, ServerBuilder};
pub use transport::Transport;
pub use turn::{Chunks, Outcome, Turn, TurnResult, Update};
