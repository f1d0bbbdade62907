//! Server-Sent Events, and what each of them is.

use bytes::{Buf, BytesMut};
use memchr::{memchr, memmem};

/// Takes the body of a stream in whatever pieces it comes, and gives each event's data.
#[derive(Debug, Default)]
pub(crate) struct EventReader {
    /// What is not a whole line yet.
    rest: BytesMut,
    data: Vec<u8>,
}

impl EventReader {
    pub(crate) fn feed(&mut self, piece: &[u8], mut on_event: impl FnMut(&[u8])) {
        self.rest.extend_from_slice(piece);
        while let Some(end) = memchr(b'\n', &self.rest) {
            let line = &self.rest[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(data) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data
                    .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            } else if line.is_empty() && !self.data.is_empty() {
                on_event(&self.data);
                self.data.clear();
            }
            self.rest.advance(end + 1);
        }
    }
}

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Error,
    Artifact,
    Status { ended: bool },
    Task { ended: bool },
    Message,
    Other,
}

impl EventKind {
    /// Decides by the marks in the text, of either version, since to parse it would cost the
    /// generator more than many a server takes to write it.
    pub(crate) fn of(data: &[u8]) -> Self {
        let has = |mark: &str| memmem::find(data, mark.as_bytes()).is_some();
        let ended = || {
            let ends = [
                "TASK_STATE_COMPLETED",
                "TASK_STATE_FAILED",
                "TASK_STATE_CANCELED",
            ];
            let ends_03 = ["\"completed\"", "\"failed\"", "\"canceled\""];
            ends.iter().chain(&ends_03).any(|mark| has(mark))
        };
        if has("\"error\"") {
            Self::Error
        } else if has("\"artifactUpdate\"") || has("\"artifact-update\"") {
            Self::Artifact
        } else if has("\"statusUpdate\"") || has("\"status-update\"") {
            Self::Status { ended: ended() }
        } else if has("\"task\"") {
            Self::Task { ended: ended() }
        } else if has("\"message\"") {
            Self::Message
        } else {
            Self::Other
        }
    }

    /// Whether a stream ends with it.
    pub(crate) fn is_end(self) -> bool {
        matches!(
            self,
            Self::Status { ended: true } | Self::Task { ended: true }
        )
    }

    /// Its letter in the shape of a stream, such as `tsaaaS`; a capital where the task has ended.
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Error => 'E',
            Self::Artifact => 'a',
            Self::Status { ended } => {
                if ended {
                    'S'
                } else {
                    's'
                }
            }
            Self::Task { ended } => {
                if ended {
                    'T'
                } else {
                    't'
                }
            }
            Self::Message => 'm',
            Self::Other => '?',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_came_in() {
        let body = b"id: 1\ndata: one\n\n: comment\n\ndata:two\r\ndata: more\r\n\r\ndata: cut";
        for size in 1..body.len() {
            let (mut reader, mut events) = (EventReader::default(), Vec::new());
            for piece in body.chunks(size) {
                reader.feed(piece, |data| events.push(data.to_vec()));
            }
            assert_eq!(events, [b"one".to_vec(), b"two\nmore".to_vec()], "{size}");
        }
    }

    #[test]
    fn both_versions_are_told_apart() {
        for (data, letter) in [
            (
                r#"{"result":{"task":{"status":{"state":"TASK_STATE_WORKING"}}}}"#,
                't',
            ),
            (
                r#"{"result":{"kind":"task","status":{"state":"completed"}}}"#,
                'T',
            ),
            (
                r#"{"result":{"statusUpdate":{"status":{"state":"TASK_STATE_FAILED"}}}}"#,
                'S',
            ),
            (
                r#"{"result":{"kind":"status-update","status":{"state":"working"}}}"#,
                's',
            ),
            (r#"{"result":{"artifactUpdate":{}}}"#, 'a'),
            (r#"{"result":{"message":{}}}"#, 'm'),
            (r#"{"error":{"code":-32603}}"#, 'E'),
            ("{}", '?'),
        ] {
            assert_eq!(EventKind::of(data.as_bytes()).letter(), letter, "{data}");
        }
    }
}
