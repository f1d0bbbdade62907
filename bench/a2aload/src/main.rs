//! `a2aload`: a closed-loop load generator for one A2A server on loopback.
//!
//! Each of some connections sends a request, waits for its whole answer, and sends the next. All
//! of them share one thread, so that the generator takes at most one processor and the rest is the
//! server's. HTTP/1.1 is spoken by hand over kept-alive sockets, since a client library would cost
//! more than a fast server does. Every message has an id of its own and every answer is checked:
//! an answer that is fast and wrong counts as an error.
//!
//! A run is bounded in time and in count, goes to loopback only, and prints one line of JSON.
//! Server CPU is what `/proc` says of its process, so it is true also where the generator is what
//! limits the rate.

mod args;
mod http;
mod kinds;
mod proc;
mod report;
mod requests;
mod sse;
mod stats;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use kinds::{RunError, Session};
use report::Report;

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("a2aload: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: &Command) -> Result<Report, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let session = Session::new(command.target())?;
    runtime.map_err(RunError::Runtime)?.block_on(async {
        match command {
            Command::Send(args) => kinds::send::run(&session, args).await,
            Command::Get(args) => kinds::get::run(&session, args).await,
            Command::List(args) => kinds::list::run(&session, args).await,
            Command::Stream(args) => kinds::stream::run(&session, args).await,
            Command::Fanout(args) => kinds::fanout::run(&session, args).await,
            Command::Idle(args) => kinds::idle::run(&session, args).await,
        }
    })
}
