//! What the codecs and the model promise, seen from outside the crate.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "json!(…) reads better without an ampersand"
)]

#[expect(unreachable_pub, reason = "the fuzz targets share it")]
mod exercise;
mod golden;
mod jsonrpc;
mod laws;
mod refusals;
mod samples;
mod schema;
mod smoke;
mod strategies;
mod task_log;
mod tolerance;
