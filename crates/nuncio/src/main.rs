//! `nuncio`: A2A server, gateway and client.

mod agents;
mod client;
mod commands;
mod config;
mod exit;

use clap::{Parser, Subcommand};
use exit::CommandError;
use std::process::ExitCode;

/// A2A server, gateway and client.
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves an agent over A2A.
    Serve(Box<commands::serve::ServeArgs>),
    /// Writes the commented configuration, with every key and its default.
    Init(commands::init::InitArgs),
    /// Says what configuration is in effect, or what is wrong with it.
    CheckConfig(Box<commands::serve::ServeArgs>),
    /// Makes, lists and revokes API keys.
    Keys(commands::keys::KeysArgs),
    /// Shows an agent's card.
    Card(commands::card::CardArgs),
    /// Sends a message to an agent.
    Send(Box<commands::send::SendArgs>),
    /// Drives every operation of an A2A server and shows what it answers.
    Map(commands::map::MapArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Serve(args) => commands::serve::run(&args),
        Command::CheckConfig(args) => commands::check_config::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Keys(args) => commands::keys::run(&args),
        Command::Card(args) => block_on(commands::card::run(args)),
        Command::Send(args) => block_on(commands::send::run(*args)),
        Command::Map(args) => block_on(commands::map::run(args)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nuncio: {error}");
            error.exit_code()
        }
    }
}

/// Runs a client command: one thread is plenty for one conversation.
fn block_on(command: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|error| CommandError::usage(error.to_string()))?
        .block_on(command)
}
