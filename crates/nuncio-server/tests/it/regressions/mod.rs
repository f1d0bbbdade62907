//! Each of these is a bug that was found in another A2A server. None may exist here.
//!
//! Not here because it is not built yet: push notifications, signed cards, rate limits. A task of
//! another user is looked at from every side in `access`.

mod edges;
mod lifecycle;
mod streams;
