//! Bindings: how requests come in and answers go out.

mod card;
mod dispatch;
mod jsonrpc;
mod sse;

pub(crate) use card::CardDocument;

use crate::server::Inner;
use axum::{
    Router,
    routing::{get, post},
};
use std::sync::Arc;

/// The routes of a server.
pub(crate) fn router(inner: Arc<Inner>) -> Router {
    Router::new()
        .route("/", post(jsonrpc::handle))
        .route("/.well-known/agent-card.json", get(card::handle))
        // Where cards were before 0.3.
        .route("/.well-known/agent.json", get(card::handle))
        .with_state(inner)
}
