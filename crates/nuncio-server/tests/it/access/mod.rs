//! Who gets in, and what they get to see.

mod authenticators;
mod credentials;
mod fail_closed;
mod foreign;
mod identity;
mod rotation;

use crate::harness::{Answer, House, Peer, Script, World};
use nuncio_server::{ApiKeys, Auth, KeyFile};
use std::path::PathBuf;
use tempfile::TempDir;

/// A key file of a test's own.
#[derive(Debug)]
struct Keys(TempDir);

impl Keys {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder can be made"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("keys.json")
    }

    /// Makes a key for a name.
    fn add(&self, name: &str) -> String {
        let key = KeyFile::add(&self.path(), name).expect("a key can be added");
        key.expose().to_owned()
    }

    fn auth(&self) -> Auth {
        let file = KeyFile::open(self.path()).expect("the file can be read");
        Auth::api_keys(ApiKeys::new(file))
    }

    /// Serves an agent to those who have a key.
    fn guard(&self, world: World, agent: Script) -> House {
        let auth = self.auth();
        House::with(world, agent, |setting| {
            setting.build(|builder| builder.auth(auth))
        })
    }
}

/// The client with a key.
fn holding(peer: &Peer, key: &str) -> Peer {
    peer.with("Authorization", &format!("Bearer {key}"))
}

/// All that a client can tell one answer from another by: not when it came.
fn told(answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    answer.head.headers.retain(|(name, _)| name != "date");
    answer
}
