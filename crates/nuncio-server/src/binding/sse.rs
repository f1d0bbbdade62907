//! Streams as Server-Sent Events: a follower of a log, frame by frame.
//!
//! Frames are made when the connection has room for them, so a slow client holds back its own
//! follower and nothing else. The bytes of an event are shared between all streams of a version;
//! what a stream adds is the request's id around them and the event's number before them.

use super::{dispatch::refusal, jsonrpc::failure};
use crate::{
    engine::{EngineError, Follower, Logged, Shown, Step},
    server::Inner,
    transport::Transport,
};
use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use nuncio_core::{
    Event, ProtocolError, ProtocolVersion, Task, TaskView,
    wire::{
        self,
        jsonrpc::{self, RequestId},
    },
};
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};

/// Frames are joined to pieces of about this size.
const PIECE_BYTES: usize = 32 << 10;
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

struct Stream {
    follower: Follower,
    version: ProtocolVersion,
    id: RequestId,
    prefix: Vec<u8>,
    view: TaskView,
    numbered: bool,
    ready: VecDeque<Arc<Logged>>,
    keep_alive: Duration,
    idle: Duration,
    last_event: Instant,
    stopping: watch::Receiver<bool>,
    over: bool,
    _room: OwnedSemaphorePermit,
}

/// What a stream says next.
enum Said {
    Piece(Vec<u8>),
    Failed(EngineError),
    Nothing,
}

/// Answers with a stream, or with an error that is known before its first event.
pub(super) async fn respond(
    inner: &Inner,
    id: RequestId,
    version: ProtocolVersion,
    follower: Follower,
    view: TaskView,
    room: OwnedSemaphorePermit,
) -> Response {
    let mut prefix = Vec::with_capacity(64);
    jsonrpc::write_success_prefix(&id, &mut prefix);
    let limits = inner.engine.limits();
    let mut stream = Stream {
        follower,
        version,
        id,
        prefix,
        view,
        // An inline stream can't be resumed, so it has no places to resume from.
        numbered: inner.transport() == Transport::Evented,
        ready: VecDeque::new(),
        keep_alive: limits.keep_alive,
        idle: limits.stream_idle,
        last_event: Instant::now(),
        stopping: inner.stopping.subscribe(),
        over: false,
        _room: room,
    };
    let first = match stream.say().await {
        Said::Piece(piece) => piece,
        Said::Failed(error) => return failure(&stream.id, &refusal(error, version)),
        Said::Nothing => Vec::new(),
    };
    let rest = futures_util::stream::unfold((stream, Some(first)), |(mut stream, first)| async {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(Bytes::from(first)), (stream, None)));
        }
        if stream.over {
            return None;
        }
        let piece = match stream.say().await {
            Said::Piece(piece) => piece,
            Said::Failed(error) => {
                stream.over = true;
                error_frame(&stream.id, &refusal(error, stream.version).error)
            }
            Said::Nothing => return None,
        };
        Some((Ok(Bytes::from(piece)), (stream, None)))
    });
    event_stream(Body::from_stream(rest))
}

/// Answers with an error as the only frame of a stream.
pub(super) fn refuse(id: &RequestId, error: &ProtocolError) -> Response {
    event_stream(Body::from(error_frame(id, error)))
}

fn event_stream(body: Body) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Proxies that would hold small frames back are told not to.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

fn error_frame(id: &RequestId, error: &ProtocolError) -> Vec<u8> {
    let mut frame = b"data: ".to_vec();
    frame.extend(jsonrpc::failure(id, error));
    frame.extend_from_slice(b"\n\n");
    frame
}

impl Stream {
    /// The next piece: frames, or a comment where there is nothing to say for a while.
    async fn say(&mut self) -> Said {
        if self.ready.is_empty() {
            let quiet_until = Instant::now() + self.keep_alive;
            let idle_until = self.last_event + self.idle;
            // In this order: however long the client has not listened, it hears what there is to
            // hear before its stream is closed for silence.
            let step = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping) => return Said::Nothing,
                step = self.follower.next() => step,
                () = tokio::time::sleep_until(quiet_until.min(idle_until)) => {
                    if Instant::now() >= idle_until {
                        return Said::Nothing;
                    }
                    return Said::Piece(KEEP_ALIVE.to_vec());
                }
            };
            self.last_event = Instant::now();
            match step {
                Ok(Some(Step::Entries(entries))) => self.ready.extend(entries),
                Ok(Some(Step::Snapshot(task, seq))) => {
                    let event = Event::Task(task.view(self.view));
                    return Said::Piece(self.own_frame(Some(seq), &event));
                }
                Ok(Some(Step::Reply(message))) => {
                    let event = Event::Message((*message).clone());
                    return Said::Piece(self.own_frame(None, &event));
                }
                Ok(None) => return Said::Nothing,
                Err(error) => return Said::Failed(error.into()),
            }
        }
        let mut piece = Vec::with_capacity(1024);
        while let Some(entry) = self.ready.pop_front() {
            self.frame(&entry, &mut piece);
            if piece.len() >= PIECE_BYTES {
                break;
            }
        }
        Said::Piece(piece)
    }

    fn frame(&self, entry: &Logged, piece: &mut Vec<u8>) {
        let Some(event) = entry.event(self.version) else {
            return;
        };
        if entry.shown() == Shown::Created
            && self.view != TaskView::WHOLE
            && let Some(task) = entry.created()
        {
            let event = Event::Task(Task::view(&task, self.view));
            piece.extend(self.own_frame(Some(entry.seq), &event));
            return;
        }
        self.write_frame(Some(entry.seq), &event, piece);
    }

    fn own_frame(&self, seq: Option<u64>, event: &Event) -> Vec<u8> {
        let mut piece = Vec::with_capacity(1024);
        self.write_frame(seq, &wire::encode_event(self.version, event), &mut piece);
        piece
    }

    fn write_frame(&self, seq: Option<u64>, event: &[u8], piece: &mut Vec<u8>) {
        if let Some(seq) = seq.filter(|_| self.numbered) {
            piece.extend_from_slice(b"id: ");
            piece.extend_from_slice(seq.to_string().as_bytes());
            piece.push(b'\n');
        }
        piece.extend_from_slice(b"data: ");
        piece.extend_from_slice(&self.prefix);
        piece.extend_from_slice(event);
        piece.extend_from_slice(b"}\n\n");
    }
}
