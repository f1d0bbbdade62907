//! What all tests stand on: a server on a socket of its own, scripted agents, clients.

mod agents;
mod http;
mod peer;
mod server;
mod sse;
mod stores;

pub(crate) use agents::{Gate, Script, counted, script};
pub(crate) use http::{Answer, Connection, request};
pub(crate) use peer::{Dialect, Peer, asking, error_of, send, text_message};
pub(crate) use server::{House, Mounted, Setting, State};
pub(crate) use sse::Frame;
pub(crate) use stores::{FailingStore, StoreKind};

use std::time::Duration;

/// Long enough that only a hang gets there.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a scenario runs in: a kind of store, and how the client speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World {
    pub(crate) store: StoreKind,
    pub(crate) dialect: Dialect,
}

impl World {
    /// Both stores, and for each both versions in their own spelling; in memory also in the
    /// other version's.
    pub(crate) const ALL: [Self; 6] = [
        Self::new(StoreKind::Memory, Dialect::V0_3),
        Self::new(StoreKind::Memory, Dialect::V1_0),
        Self::new(StoreKind::Memory, Dialect::V0_3_PASCAL),
        Self::new(StoreKind::Memory, Dialect::V1_0_SLASH),
        Self::new(StoreKind::Sqlite, Dialect::V0_3),
        Self::new(StoreKind::Sqlite, Dialect::V1_0),
    ];

    const fn new(store: StoreKind, dialect: Dialect) -> Self {
        Self { store, dialect }
    }
}

/// Runs a scenario in every world. Where it fails, the world's name is the last line printed.
pub(crate) async fn everywhere(scenario: impl AsyncFn(World)) {
    for world in World::ALL {
        eprintln!("in {world:?}");
        Box::pin(scenario(world)).await;
    }
}

/// Waits until something holds, looking again and again.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("never came: {what}"))
}
