//! The program, from outside: real processes, real sockets, real kills.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod cli;
mod crash;
mod harness;
mod mapping;
mod readme;
