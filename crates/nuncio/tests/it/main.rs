//! The program, from outside: real processes, real sockets, real kills.

mod cli;
mod crash;
mod harness;
mod mapping;
mod readme;
