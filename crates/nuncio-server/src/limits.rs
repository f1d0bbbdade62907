//! Every limit of the server, in one place. Memory is bounded by these, not by what clients do.

use std::time::Duration;

/// Limits, with defaults that suit one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body, in bytes.
    pub body_bytes: usize,
    /// Deepest nesting of a JSON body.
    pub depth: usize,
    /// Most parts in a message.
    pub parts: usize,
    /// Most streams open at once, over all callers.
    pub streams: usize,
    /// Most turns running at once, over all callers.
    pub turns: usize,
    /// Longest that a send waits before it answers with the task as it stands.
    pub send_wait: Duration,
    /// How long a stream waits for the agent's first word. Then it begins with the task as
    /// submitted, so that its reader knows what to cancel or resume; an agent's bare message
    /// that comes later completes that task.
    pub first_event: Duration,
    /// Longest that a turn may run before its task fails.
    pub turn: Duration,
    /// How long a canceled agent may take to end by itself.
    pub cancel_grace: Duration,
    /// Most updates of one turn.
    pub turn_updates: u64,
    /// Most bytes of updates of one turn, as stored.
    pub turn_bytes: u64,
    /// Updates that may wait for the store before the agent has to wait for it.
    pub uncommitted_updates: usize,
    /// Updates of a running task kept in memory for its followers; older ones are read from the
    /// store.
    pub recent_updates: usize,
    /// The same in bytes.
    pub recent_bytes: usize,
    /// Silence on a stream after which a comment is sent.
    pub keep_alive: Duration,
    /// Time without an event after which a subscription is closed.
    pub stream_idle: Duration,
    /// Longest that the headers of a request may take to arrive.
    pub header_read: Duration,
    /// Longest that a body may take to arrive.
    pub body_read: Duration,
    /// How long a lease outlives its node's last heartbeat.
    pub lease: Duration,
    /// How long a retry under an idempotency key is recognised.
    pub idempotency_window: Duration,
    /// How long running turns may go on once the server is told to stop.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 8 << 20,
            depth: 64,
            parts: 256,
            streams: 10_000,
            turns: 10_000,
            send_wait: Duration::from_secs(300),
            first_event: Duration::from_secs(1),
            turn: Duration::from_secs(3600),
            cancel_grace: Duration::from_secs(5),
            turn_updates: 1_000_000,
            turn_bytes: 256 << 20,
            uncommitted_updates: 1024,
            recent_updates: 1024,
            recent_bytes: 4 << 20,
            keep_alive: Duration::from_secs(15),
            stream_idle: Duration::from_secs(1800),
            header_read: Duration::from_secs(15),
            body_read: Duration::from_secs(30),
            lease: Duration::from_secs(30),
            idempotency_window: Duration::from_secs(86_400),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
