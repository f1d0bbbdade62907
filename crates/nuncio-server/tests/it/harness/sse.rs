//! A stream as its client sees it: frame by frame, nothing interpreted away.

use super::{
    http::{Connection, Head},
    peer::{RpcError, error_of},
};
use nuncio_server::core::{Event, ProtocolVersion, StatusUpdate, Task, wire};
use serde_json::Value;

/// One frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// The event's id.
    pub(crate) id: Option<u64>,
    /// The lines, as they came.
    pub(crate) lines: Vec<String>,
    /// What `data` says.
    pub(crate) json: Value,
    version: ProtocolVersion,
}

impl Frame {
    /// The event, which this must be.
    pub(crate) fn event(&self) -> Event {
        let result = self
            .json
            .get("result")
            .unwrap_or_else(|| panic!("no result: {}", self.json));
        wire::decode_event(self.version, result.clone()).expect("an event can be read")
    }

    pub(crate) fn task(&self) -> Task {
        match self.event() {
            Event::Task(task) => task,
            other => panic!("not a task: {other:?}"),
        }
    }

    pub(crate) fn status(&self) -> StatusUpdate {
        match self.event() {
            Event::Status(update) => update,
            other => panic!("not a status: {other:?}"),
        }
    }

    pub(crate) fn error(&self) -> RpcError {
        error_of(&self.json).unwrap_or_else(|| panic!("not an error: {}", self.json))
    }

    /// The event in a few words: `task submitted`, `status working`, `artifact hello`,
    /// `message hi`.
    pub(crate) fn brief(&self) -> String {
        match self.event() {
            Event::Task(task) => format!("task {:?}", task.status.state),
            Event::Message(message) => format!("message {}", message.text()),
            Event::Status(update) => match update.status.message {
                Some(message) => format!("status {:?} {}", update.status.state, message.text()),
                None => format!("status {:?}", update.status.state),
            },
            Event::Artifact(update) => {
                let texts = update
                    .artifact
                    .parts
                    .iter()
                    .filter_map(|part| part.as_text());
                format!("artifact {}", texts.collect::<Vec<_>>().join("|"))
            }
        }
    }
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct Sse {
    pub(crate) head: Head,
    connection: Connection,
    version: ProtocolVersion,
    text: String,
    /// How many comments came.
    pub(crate) comments: usize,
}

impl Sse {
    pub(crate) fn new(head: Head, connection: Connection, version: ProtocolVersion) -> Self {
        Self {
            head,
            connection,
            version,
            text: String::new(),
            comments: 0,
        }
    }

    /// The next frame; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let block = self.next_block().await?;
            if let Some(frame) = self.read(&block) {
                return Some(frame);
            }
        }
    }

    /// The next frame, which must come.
    pub(crate) async fn frame(&mut self) -> Frame {
        self.next().await.expect("the stream goes on")
    }

    /// All that comes until the end.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// All that comes until the end, in a few words each.
    pub(crate) async fn briefs(&mut self) -> Vec<String> {
        self.rest().await.iter().map(Frame::brief).collect()
    }

    /// Waits for a comment, before which no frame may come.
    pub(crate) async fn comment(&mut self) {
        let before = self.comments;
        while self.comments == before {
            let block = self.next_block().await.expect("the stream goes on");
            assert_eq!(
                self.read(&block),
                None,
                "a frame came where silence was expected"
            );
        }
    }

    /// Goes away without a goodbye.
    pub(crate) fn reset(self) {
        self.connection.reset();
    }

    async fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let block = self.text[..at].to_owned();
                self.text.drain(..at + 2);
                return Some(block);
            }
            let Some(piece) = self.connection.read_piece().await else {
                assert_eq!(self.text, "", "the stream ended within a frame");
                return None;
            };
            self.text
                .push_str(std::str::from_utf8(&piece).expect("frames are UTF-8"));
        }
    }

    fn read(&mut self, block: &str) -> Option<Frame> {
        let lines: Vec<String> = block.split('\n').map(str::to_owned).collect();
        let (mut id, mut data) = (None, None);
        for line in &lines {
            if line.starts_with(':') {
                self.comments += 1;
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.parse().expect("an event's id is a number"));
            } else if let Some(text) = line.strip_prefix("data: ") {
                assert_eq!(data, None, "data is one line: {block}");
                data = Some(text);
            } else {
                panic!("no line of a frame: {line:?}");
            }
        }
        let json = serde_json::from_str(data?).expect("data is JSON");
        Some(Frame {
            id,
            lines,
            json,
            version: self.version,
        })
    }
}
