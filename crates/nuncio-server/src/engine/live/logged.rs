//! A committed entry, as the followers of a task read it.

use bytes::Bytes;
use nuncio_core::{Event, LogEvent, ProtocolVersion, Task, wire};
use nuncio_store::{Entry, StoreError};
use std::sync::OnceLock;

/// A committed entry, as followers read it: encoded once for each version.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) seq: u64,
    /// The newest message that had been handed to a turn when this was reported.
    pub(super) taken: u64,
    pub(super) body: Bytes,
    shown: Shown,
    v03: OnceLock<Option<Bytes>>,
}

/// What an entry is to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Not shown: a user's message, which streams do not carry.
    No,
    /// The task as created.
    Created,
    /// An update.
    Update,
    /// The status that ends a turn.
    Final,
}

impl Shown {
    fn of(event: &LogEvent) -> Self {
        match event {
            LogEvent::Created(_) => Self::Created,
            LogEvent::Message(_) => Self::No,
            LogEvent::Status(update) if update.status.state.is_final() => Self::Final,
            LogEvent::Status(_) | LogEvent::Artifact(_) => Self::Update,
        }
    }
}

impl Logged {
    pub(super) fn of(seq: u64, taken: u64, event: &LogEvent) -> Self {
        Self {
            seq,
            taken,
            body: Bytes::from(wire::stored::encode_event(event)),
            shown: Shown::of(event),
            v03: OnceLock::new(),
        }
    }

    /// An entry read back from the store. `taken` is asked only for one that ends a turn.
    pub(super) fn from_entry(
        entry: Entry,
        taken: impl FnOnce(u64) -> u64,
    ) -> Result<Self, StoreError> {
        let Entry { seq, body } = entry;
        // Most of a long log is chunks of artifacts, which need not be decoded to be known.
        let shown = if body.starts_with(br#"{"artifactUpdate":"#) {
            Shown::Update
        } else {
            Shown::of(&decode(&body)?)
        };
        let taken = if shown == Shown::Final {
            taken(seq)
        } else {
            u64::MAX
        };
        Ok(Self {
            seq,
            taken,
            body,
            shown,
            v03: OnceLock::new(),
        })
    }

    pub(crate) fn shown(&self) -> Shown {
        self.shown
    }

    /// Whether this ends the turn that answers the message in entry `message`.
    pub(crate) fn concludes(&self, message: u64) -> bool {
        self.shown == Shown::Final && self.seq > message && self.taken >= message
    }

    /// The task as created, where this is that entry.
    pub(crate) fn created(&self) -> Option<Task> {
        match decode(&self.body) {
            Ok(LogEvent::Created(task)) => Some(task),
            _ => None,
        }
    }

    /// The event as a stream of this version carries it; `None` where streams don't.
    pub(crate) fn event(&self, version: ProtocolVersion) -> Option<Bytes> {
        match (self.shown, version) {
            (Shown::No, _) => None,
            (_, ProtocolVersion::V1_0) => Some(self.body.clone()),
            (_, ProtocolVersion::V0_3) => self
                .v03
                .get_or_init(|| {
                    let event = match decode(&self.body).ok()? {
                        LogEvent::Created(task) => Event::Task(task),
                        LogEvent::Status(update) => Event::Status(update),
                        LogEvent::Artifact(update) => Event::Artifact(update),
                        LogEvent::Message(_) => return None,
                    };
                    Some(wire::encode_event(version, &event).into())
                })
                .clone(),
        }
    }
}

/// Reads an entry of the log.
pub(crate) fn decode(body: &[u8]) -> Result<LogEvent, StoreError> {
    wire::stored::decode_event(body)
        .map_err(|e| StoreError::Unavailable(format!("an entry of the log can't be read: {e}")))
}
