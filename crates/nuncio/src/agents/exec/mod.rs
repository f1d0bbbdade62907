//! The agent that is a command: it runs once for each turn.
//!
//! The command is started directly, never by a shell, with the arguments it was configured with
//! and no others. What a caller says reaches it by standard input alone; of its environment the
//! caller chooses `NUNCIO_CONTEXT_ID`, and `NUNCIO_TASK_ID` is there too. nuncio's own settings
//! and keys (`NUNCIO_…`) are taken out of it, all else is inherited: a command needs its `PATH`,
//! its locale and keys of its own, and which those are is not for us to guess.
//!
//! | the command | the task |
//! |---|---|
//! | starts | is at work |
//! | writes a line to standard output | has a chunk more of its artifact `output` |
//! | ends with status 0 | is completed; without an artifact, if nothing was written |
//! | ends otherwise | is failed, with the status and the end of standard error as the reason |
//! | can't be started | is failed, saying so |
//!
//! A line of more than [`LONGEST_CHUNK`] bytes comes in several chunks. None of the chunks is
//! marked as the last, since a line does not tell whether another follows; the end of the task
//! tells. A cancel sends SIGTERM to the command and all it started, and SIGKILL after a grace time.
//!
//! With [`ExecOptions::json`] the command gets the whole turn and answers with anything an agent
//! can say: see [`protocol`].
//!
//! A long-lived command that serves all turns was rejected: a crash would take all tasks with it,
//! and isolation between callers would be the command's to get right.

mod dialogue;
mod lines;
mod process;
mod protocol;
#[cfg(test)]
mod tests;

use super::{card, skill};
use nuncio_core::{AgentCard, Artifact, ArtifactId, Part};
use nuncio_server::{Agent, AgentError, Turn, TurnResult, async_trait};
use process::{Exit, Output, Process};
use std::{io, path::Path, time::Duration};

/// The most bytes of output in one chunk.
const LONGEST_CHUNK: usize = 64 << 10;

/// How a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecOptions {
    /// Whether it speaks JSON.
    pub(crate) json: bool,
    /// How long it may take to end after SIGTERM. Should be less than the server's cancel grace.
    pub(crate) term_grace: Duration,
}

/// Runs a command for each turn; see the module's head.
#[derive(Debug, Clone)]
pub(crate) struct Exec {
    command: Vec<String>,
    options: ExecOptions,
}

impl Exec {
    /// An agent that runs `command`: the program, then its arguments.
    pub(crate) fn new(command: Vec<String>, options: ExecOptions) -> Self {
        Self { command, options }
    }

    /// What its card says.
    pub(crate) fn card(&self) -> AgentCard {
        let name = self.name();
        let about = format!("Runs {name} for each message.");
        // A command that gets the whole message decides by itself what it can take.
        let mode = if self.options.json {
            "*/*"
        } else {
            "text/plain"
        };
        let skill = skill(name, &about, &["command"], &["hello"]);
        card(name, &about, mode, skill)
    }

    /// The program's name, without the folder it is in.
    fn name(&self) -> &str {
        let program = self.command.first().map_or("", String::as_str);
        Path::new(program)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("command")
    }

    fn spawn(&self, turn: &Turn, longest_piece: usize) -> Result<Process, AgentError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(AgentError::failed("No command is configured."));
        };
        let variables = [
            ("NUNCIO_TASK_ID", turn.task_id().as_str()),
            ("NUNCIO_CONTEXT_ID", turn.context_id().as_str()),
        ];
        Process::spawn(program, arguments, &variables, longest_piece).map_err(|error| {
            tracing::error!(task = %turn.task_id(), program, %error, "the command did not start");
            let name = self.name();
            AgentError::failed(match error.kind() {
                io::ErrorKind::NotFound => format!("The command {name} was not found."),
                io::ErrorKind::PermissionDenied => format!("The command {name} may not be run."),
                _ => format!("The command {name} could not be started."),
            })
        })
    }

    async fn run_plain(&self, turn: Turn) -> TurnResult {
        let mut process = self.spawn(&turn, LONGEST_CHUNK)?;
        process.write(turn.message().text().as_bytes());
        process.close_stdin();
        turn.working().await?;
        let mut chunks = Chunks::new();
        let exit = loop {
            tokio::select! {
                biased;
                () = turn.canceled() => {
                    process.terminate(self.options.term_grace).await;
                    return turn.cancel();
                }
                output = process.next() => match output {
                    Output::Piece(piece) => {
                        chunks.send(&turn, Part::text(piece.into_text())).await?;
                    }
                    Output::Ended(exit) => break exit,
                },
            }
        };
        process.end().await;
        check(&turn, exit, &process)?;
        turn.complete()
    }
}

#[async_trait]
impl Agent for Exec {
    async fn run(&self, turn: Turn) -> TurnResult {
        if self.options.json {
            dialogue::run(self, turn).await
        } else {
            self.run_plain(turn).await
        }
    }
}

/// The artifact that a turn's output becomes.
#[derive(Debug)]
struct Chunks {
    artifact: ArtifactId,
    begun: bool,
}

impl Chunks {
    fn new() -> Self {
        Self {
            artifact: ArtifactId::new(new_id()).expect("a UUID is a valid id"),
            begun: false,
        }
    }

    async fn send(&mut self, turn: &Turn, part: Part) -> Result<(), AgentError> {
        let mut artifact = Artifact::new(self.artifact.clone(), vec![part]);
        let append = std::mem::replace(&mut self.begun, true);
        if !append {
            artifact = artifact.named("output");
        }
        turn.artifact_update(artifact, append, false).await
    }
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Makes a command's failure the turn's.
fn check(turn: &Turn, exit: Exit, process: &Process) -> Result<(), AgentError> {
    if let Some(failure) = exit.failure() {
        return Err(with_stderr(failure, process));
    }
    let stderr = process.stderr();
    if !stderr.is_empty() {
        tracing::debug!(task = %turn.task_id(), stderr, "the command wrote to standard error");
    }
    Ok(())
}

/// A failure's reason, with what the command said about it.
fn with_stderr(mut reason: String, process: &Process) -> AgentError {
    let stderr = process.stderr();
    if !stderr.is_empty() {
        reason.push_str(if stderr.contains('\n') { ":\n" } else { ": " });
        reason.push_str(&stderr);
    }
    AgentError::failed(reason)
}
