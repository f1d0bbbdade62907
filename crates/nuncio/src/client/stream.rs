//! A stream of a task's events, as a server sends it.

use super::{
    ClientError, MAX_ANSWER_BYTES, read_reply,
    sse::{Parser, SseEvent},
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use nuncio_core::{Event, ProtocolVersion, wire};
use std::collections::VecDeque;

/// A stream. It ends where the connection does: whether the task had come to rest by then is for
/// the reader to say.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: Option<Incoming>,
    parser: Parser,
    ready: VecDeque<SseEvent>,
    whole: Option<Streamed>,
    version: ProtocolVersion,
    request: i64,
    address: String,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Streamed {
    /// What it says.
    pub(crate) event: Event,
    /// The result as it came, in one line.
    pub(crate) raw: String,
    /// What to reconnect with to go on after it.
    pub(crate) id: Option<String>,
}

impl EventStream {
    /// The events in a body, as replies to a request.
    pub(super) fn new(
        body: Incoming,
        version: ProtocolVersion,
        request: i64,
        address: String,
    ) -> Self {
        let (ready, parser) = (VecDeque::new(), Parser::new(MAX_ANSWER_BYTES));
        Self {
            body: Some(body),
            parser,
            ready,
            whole: None,
            version,
            request,
            address,
        }
    }

    /// One event, which is all there is.
    pub(super) fn of(
        event: Streamed,
        version: ProtocolVersion,
        request: i64,
        address: String,
    ) -> Self {
        let (ready, parser) = (VecDeque::new(), Parser::new(0));
        Self {
            body: None,
            parser,
            ready,
            whole: Some(event),
            version,
            request,
            address,
        }
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`ClientError::Remote`] where the server ends the stream with an error, and
    /// [`ClientError::Broken`] where the connection breaks.
    pub(crate) async fn next(&mut self) -> Result<Option<Streamed>, ClientError> {
        if let Some(whole) = self.whole.take() {
            return Ok(Some(whole));
        }
        loop {
            while let Some(event) = self.ready.pop_front() {
                // Some servers of 0.3 end a stream with a word of OpenAI's.
                if !event.data.is_empty() && event.data != "[DONE]" {
                    return self.decode(event).map(Some);
                }
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            match body.frame().await {
                None => self.body = None,
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        let taken = self.parser.push(bytes, &mut self.ready);
                        taken.map_err(|error| ClientError::NotA2a {
                            address: self.address.clone(),
                            reason: error.to_string(),
                        })?;
                    }
                }
                Some(Err(error)) => {
                    self.body = None;
                    return Err(ClientError::Broken(error.to_string()));
                }
            }
        }
    }

    fn decode(&self, event: SseEvent) -> Result<Streamed, ClientError> {
        let (result, raw) = read_reply(&self.address, self.request, event.data.as_bytes())?;
        let id = event.id;
        let event = wire::decode_event(self.version, result)
            .map_err(|error| ClientError::unreadable(&self.address, &error))?;
        Ok(Streamed { event, raw, id })
    }
}

/// The data of the first event in a body; `None` where it ends without one.
///
/// # Errors
/// Where it breaks, or is larger than `limit`.
pub(crate) async fn first_event(
    mut body: Incoming,
    limit: usize,
) -> Result<Option<String>, ClientError> {
    let mut parser = Parser::new(limit);
    let mut ready = VecDeque::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::Broken(error.to_string()))?;
        if let Some(bytes) = frame.data_ref() {
            let taken = parser.push(bytes, &mut ready);
            taken.map_err(|error| ClientError::Broken(error.to_string()))?;
        }
        let data = ready
            .drain(..)
            .map(|event| event.data)
            .find(|data| !data.is_empty());
        if data.is_some() {
            return Ok(data);
        }
    }
    Ok(None)
}
