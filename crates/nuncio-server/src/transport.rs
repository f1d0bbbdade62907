//! The two transports: how much of the protocol a server runs.

/// How much of the protocol a server runs.
///
/// | | `Inline` | `Evented` |
/// |---|---|---|
/// | send, get, list, cancel | yes | yes |
/// | stream | to the caller who sent the message | the same, with event ids to resume from |
/// | resubscribe | unsupported (-32004) | yes |
/// | push notifications | not supported (-32003) | where they are turned on |
/// | extended card | unsupported (-32004) | where one is configured |
///
/// `Evented` needs its [`Runtime`](crate::Runtime). Where that is not running, the server answers
/// as `Inline` does: nothing is half-enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// The plain one: the connection that sends a message is the one that follows it.
    Inline,
    /// The full one: anybody entitled follows a task's log, now or later.
    #[default]
    Evented,
}
