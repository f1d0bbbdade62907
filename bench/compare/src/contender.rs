//! Who takes part.

use std::fmt;

use clap::ValueEnum;

/// A server as it is built and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Make {
    /// nuncio, tasks in memory.
    NuncioMemory,
    /// nuncio, tasks in SQLite, every answer durable (`synchronous = full`).
    NuncioSqlite,
    /// The official Rust SDK's server, tasks in memory.
    PeerA2aLf,
    /// Bare axum, nothing kept: the limit.
    Floor,
}

impl fmt::Display for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NuncioMemory => "nuncio, memory",
            Self::NuncioSqlite => "nuncio, SQLite FULL",
            Self::PeerA2aLf => "a2a-server-lf, memory",
            Self::Floor => "bare axum",
        })
    }
}

/// A server and the shape of its runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) make: Make,
    pub(crate) threads: u64,
}

impl Contender {
    /// A name for lines and labels.
    pub(crate) fn name(self) -> String {
        format!("{}, {} threads", self.make, self.threads)
    }

    /// The path that JSON-RPC is under.
    pub(crate) fn path(self) -> &'static str {
        match self.make {
            Make::PeerA2aLf => "/jsonrpc",
            _ => "/",
        }
    }
}
