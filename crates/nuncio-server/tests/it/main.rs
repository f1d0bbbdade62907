//! The server as its clients see it: a real socket, real bytes, scripted agents. Each scenario
//! runs over both stores and both versions where it makes a difference.

mod access;
mod bad_input;
mod example;
mod fanout;
mod harness;
mod lifecycle;
mod regressions;
mod streams;
mod transport;
