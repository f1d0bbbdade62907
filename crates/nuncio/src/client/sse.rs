//! Server-Sent Events, read as they come.
//!
//! Bytes go in however the network cut them, whole events come out: lines end with LF, CR or
//! CRLF, also where the cut is between the two. What is kept is the event that is not whole yet,
//! and no more of it than the limit. Event names mean nothing in A2A and are ignored.

use std::collections::VecDeque;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Where a reader that reconnects goes on from: the last `id` seen, if there was one.
    pub(crate) id: Option<String>,
    /// The lines of data, a line feed between them.
    pub(crate) data: String,
}

/// An event is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {0} bytes")]
pub(crate) struct Oversized(usize);

/// The reader.
#[derive(Debug)]
pub(crate) struct Parser {
    limit: usize,
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    id: Option<String>,
    /// A CR ended the line before: an LF now belongs to it.
    after_cr: bool,
    /// A byte order mark may stand before the first line.
    first_line: bool,
}

impl Parser {
    /// Reads events of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: None,
            id: None,
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes the next bytes; the events that they complete go to `ready`.
    ///
    /// # Errors
    /// Where an event is too large. Nothing after it can be read.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        ready: &mut VecDeque<SseEvent>,
    ) -> Result<(), Oversized> {
        while let Some(&next) = bytes.first() {
            if self.after_cr {
                self.after_cr = false;
                if next == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held + part.len() > self.limit {
                return Err(Oversized(self.limit));
            }
            self.line.extend_from_slice(part);
            bytes = match rest.split_first() {
                None => rest,
                Some((ending, rest)) => {
                    self.after_cr = *ending == b'\r';
                    ready.extend(self.end_line());
                    rest
                }
            };
        }
        Ok(())
    }

    /// Takes in a whole line; an empty one completes the event.
    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let data = String::from_utf8_lossy(&self.data.take()?).into_owned();
            return Some(SseEvent {
                id: self.id.clone(),
                data,
            });
        }
        let colon = line.iter().position(|b| *b == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"id" if !value.contains(&0) => {
                let id = String::from_utf8_lossy(value).into_owned();
                self.id = Some(id).filter(|id| !id.is_empty());
            }
            // Comments, which have no name, among the rest.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> SseEvent {
        SseEvent {
            id: id.map(str::to_owned),
            data: data.to_owned(),
        }
    }

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = Parser::new(1024);
        let mut ready = VecDeque::new();
        for piece in pieces {
            parser.push(piece, &mut ready).unwrap();
        }
        ready.into()
    }

    const STREAM: &str = "\u{feff}: hello\nid: 1\ndata: {\"a\":\ndata: \"é\"}\n\nevent: x\rdata:b\r\r\
                          id: 2\r\nretry: 5\r\ndata:  c\r\n\r\n: keep-alive\n\ndata\n\nid\ndata: d\n\nlost: 1\ndata: cut";

    fn expected() -> Vec<SseEvent> {
        vec![
            event(Some("1"), "{\"a\":\n\"é\"}"),
            event(Some("1"), "b"),
            event(Some("2"), " c"),
            event(Some("2"), ""),
            event(None, "d"),
        ]
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let bytes = STREAM.as_bytes();
        assert_eq!(read(&[bytes]), expected());
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), expected());
        for cut in 0..bytes.len() {
            assert_eq!(
                read(&[&bytes[..cut], &bytes[cut..]]),
                expected(),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn an_id_with_a_nul_is_ignored() {
        assert_eq!(
            read(&[b"id: 1\nid: 2\0\ndata: x\n\n"]),
            [event(Some("1"), "x")]
        );
    }

    #[test]
    fn events_are_bounded_and_streams_are_not() {
        let mut ready = VecDeque::new();
        let mut parser = Parser::new(16);
        for _ in 0..100 {
            parser
                .push(b": a comment\ndata: 0123456789\n\n", &mut ready)
                .unwrap();
        }
        assert_eq!(ready.len(), 100);
        // One endless line, and many lines of one event.
        assert_eq!(parser.push(&[b'x'; 17], &mut ready), Err(Oversized(16)));
        let mut parser = Parser::new(16);
        parser.push(b"data: 012345\n", &mut ready).unwrap();
        assert_eq!(
            parser.push(b"data: 012345\n", &mut ready),
            Err(Oversized(16))
        );
    }
}
