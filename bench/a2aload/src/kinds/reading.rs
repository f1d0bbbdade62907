//! What a stream is to carry, and what it does carry.

use std::fmt;

use memchr::memmem;

use super::{Failure, quote};
use crate::{requests::IdMark, sse::EventKind};

/// Events that a stream's shape shows; of longer ones it is the beginning.
const LETTERS: usize = 64;

/// The texts of the chunks that the agent was asked for, made once for all streams of a run.
#[derive(Debug)]
pub(super) struct Script(Vec<String>);

impl Script {
    pub(super) fn new(chunks: u64) -> Self {
        Self((0..chunks).map(|i| format!("\"chunk {i}\"")).collect())
    }
}

/// What is wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// An event without the id of the request.
    Id,
    /// A chunk lost, doubled or out of its place.
    Chunk,
    /// An error, or what no stream carries.
    Event,
    /// Events after the end.
    Late,
    /// No end.
    Cut,
    /// An end before all chunks.
    Short,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "an event of another request",
            Self::Chunk => "a chunk that is not the next one",
            Self::Event => "an event that has no place in it",
            Self::Late => "events after the end",
            Self::Cut => "no end",
            Self::Short => "an end before all chunks",
        })
    }
}

/// One stream as it is read: every chunk once and in order, then the end, each with the id of the
/// request. A finished task in place of the chunks is no stream.
#[derive(Debug)]
pub(super) struct Reading<'s> {
    script: &'s Script,
    id: IdMark,
    chunks: usize,
    ended: bool,
    wrong: Option<Wrong>,
    /// The first event that is wrong.
    said: String,
    /// The events, a letter each.
    pub(super) letters: String,
}

impl<'s> Reading<'s> {
    pub(super) fn new(script: &'s Script, id: IdMark) -> Self {
        Self {
            script,
            id,
            chunks: 0,
            ended: false,
            wrong: None,
            said: String::new(),
            letters: String::new(),
        }
    }

    pub(super) fn add(&mut self, data: &[u8]) -> EventKind {
        let event = EventKind::of(data);
        if self.wrong.is_none()
            && let Some(wrong) = self.fault(event, data)
        {
            self.wrong = Some(wrong);
            self.said = quote(data);
        }
        self.chunks += usize::from(event == EventKind::Artifact);
        self.ended |= event.is_end();
        if self.letters.len() < LETTERS {
            self.letters.push(event.letter());
        }
        event
    }

    fn fault(&self, event: EventKind, data: &[u8]) -> Option<Wrong> {
        let has = |mark: &String| memmem::find(data, mark.as_bytes()).is_some();
        if self.ended {
            Some(Wrong::Late)
        } else if !self.id.is_in(data) {
            Some(Wrong::Id)
        } else {
            match event {
                EventKind::Artifact if !self.script.0.get(self.chunks).is_some_and(has) => {
                    Some(Wrong::Chunk)
                }
                EventKind::Error | EventKind::Message | EventKind::Other => Some(Wrong::Event),
                _ => None,
            }
        }
    }

    /// Whether the stream, now that it is over, was as asked for.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let short = || (self.chunks < self.script.0.len()).then_some(Wrong::Short);
        let cut = || (!self.ended).then_some(Wrong::Cut);
        match self.wrong.or_else(cut).or_else(short) {
            None => Ok(()),
            Some(what) => Err(Failure::Stream {
                what,
                letters: self.letters.clone(),
                said: self.said.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str =
        r#"{"id":7,"result":{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}}"#;
    const TASK: &str = r#"{"id":7,"result":{"task":{"status":{"state":"TASK_STATE_COMPLETED"}}}}"#;

    fn chunk(id: u64, i: u64) -> String {
        format!(r#"{{"id":{id},"result":{{"artifactUpdate":{{"text":"chunk {i}"}}}}}}"#)
    }

    fn wrong(events: &[&str]) -> Option<Wrong> {
        let script = Script::new(2);
        let mut reading = Reading::new(&script, IdMark::rpc(7));
        for event in events {
            reading.add(event.as_bytes());
        }
        match reading.check() {
            Err(Failure::Stream { what, .. }) => Some(what),
            _ => None,
        }
    }

    #[test]
    fn a_stream_has_all_its_chunks_in_order_and_an_end() {
        let (first, second, other) = (&*chunk(7, 0), &*chunk(7, 1), &*chunk(8, 1));
        for (events, fault) in [
            (&[first, second, END][..], None),
            (&[first, END], Some(Wrong::Short)),
            (&[first, second], Some(Wrong::Cut)),
            (&[second, first, END], Some(Wrong::Chunk)),
            (&[first, first, END], Some(Wrong::Chunk)),
            (&[first, second, second, END], Some(Wrong::Chunk)),
            (&[first, other, END], Some(Wrong::Id)),
            (&[first, second, END, END], Some(Wrong::Late)),
            (&[first, r#"{"id":7,"error":{}}"#], Some(Wrong::Event)),
            (&[TASK], Some(Wrong::Short)),
            (&[], Some(Wrong::Cut)),
        ] {
            assert_eq!(wrong(events), fault, "{events:?}");
        }
    }
}
