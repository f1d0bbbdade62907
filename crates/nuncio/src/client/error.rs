//! What can go wrong between this client and a server.

use nuncio_core::wire::{DecodeError, jsonrpc::RemoteError};
use std::time::Duration;

/// Why a call came to nothing. No text of it holds a credential.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// What the caller asked for can't be done.
    #[error("{0}")]
    Usage(String),
    /// Nobody answers there.
    #[error("can't reach {address}: {reason}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why not.
        reason: String,
    },
    /// Somebody answers there, but not as an A2A server does.
    #[error("{address} does not answer as an A2A server does: {reason}")]
    NotA2a {
        /// Where.
        address: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The connection ended before the answer did.
    #[error("the connection ended before the answer was whole: {0}")]
    Broken(String),
    /// The server wants credentials, or others.
    #[error("{address} answered HTTP {status}: credentials are {problem}{challenge}")]
    Unauthorized {
        /// Where.
        address: String,
        /// 401 or 403.
        status: u16,
        /// `missing` or `not accepted`.
        problem: &'static str,
        /// What `WWW-Authenticate` says, in parentheses; empty where it says nothing.
        challenge: String,
    },
    /// The server answered an error.
    #[error("the server answered an error: {0}")]
    Remote(#[from] RemoteError),
    /// No answer in time.
    #[error("there was no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl ClientError {
    /// An answer that can't be read.
    pub(crate) fn unreadable(address: &impl ToString, error: &DecodeError) -> Self {
        Self::NotA2a {
            address: address.to_string(),
            reason: error.to_string(),
        }
    }
}
