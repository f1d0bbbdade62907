//! A turn of a command that speaks JSON, as [`protocol`] has it.
//!
//! A message is taken from the task only when all that came before it has been written, so at
//! most one waits here, and none is taken once the command has asked for something: what comes
//! then is an answer, which a command on its way out would not read. It stays with the task and
//! becomes the next turn.

use super::{
    Chunks, Exec, check,
    lines::Piece,
    process::{Exit, Output, Process},
    protocol::{self, LONGEST_LINE, Names, Report},
    with_stderr,
};
use nuncio_core::{Message, Part, TaskState, Timestamp};
use nuncio_server::{AgentError, Turn, TurnResult, Update};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long a command may be silent before the task is said to be at work. Until then the answer
/// may become a bare message; after it there is a task, which callers can follow and cancel.
const SILENCE: Duration = Duration::from_secs(1);

/// What a line leads to.
enum Next {
    GoOn,
    /// The command asked for something: it is told no more.
    Asked,
    /// A message is the whole answer.
    Answer(Message),
    /// The task has ended.
    Done,
}

enum Heard {
    Message,
    Cancel,
}

/// Runs a turn.
pub(super) async fn run(exec: &Exec, mut turn: Turn) -> TurnResult {
    let grace = exec.options.term_grace;
    let mut process = exec.spawn(&turn, LONGEST_LINE)?;
    process.write(&protocol::first_line(&turn).map_err(unwritable)?);
    let mut dialogue = Dialogue::new();
    let silent_until = Instant::now() + SILENCE;
    let exit = loop {
        // Says no once standard input is closed.
        let listens = process.is_listening();
        tokio::select! {
            biased;
            heard = hear(&mut turn, listens) => match heard {
                Heard::Message => process.write(&protocol::next_line(&turn).map_err(unwritable)?),
                Heard::Cancel => {
                    process.terminate(grace).await;
                    return turn.cancel();
                }
            },
            output = process.next() => match output {
                Output::Ended(exit) => break exit,
                Output::Piece(piece) => match dialogue.take(&turn, piece).await {
                    Ok(Next::GoOn) => {}
                    Ok(Next::Asked) => process.close_stdin(),
                    Ok(Next::Answer(message)) => {
                        process.dismiss(grace).await;
                        return dialogue.answer(turn, message);
                    }
                    Ok(Next::Done) => {
                        process.dismiss(grace).await;
                        return turn.leave();
                    }
                    Err(error) => {
                        process.terminate(grace).await;
                        return Err(match error {
                            AgentError::Failed(reason) => with_stderr(reason, &process),
                            other => other,
                        });
                    }
                },
            },
            () = sleep_until(silent_until), if dialogue.is_silent() => {
                dialogue.spoken_for = true;
                turn.working().await?;
            }
        }
    };
    process.end().await;
    dialogue.end(turn, exit, &process)
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` passes on")]
fn unwritable(error: serde_json::Error) -> AgentError {
    tracing::error!(%error, "a message could not be written as JSON");
    AgentError::failed("The command could not be told of the message.")
}

/// Waits for a message, where one is to be taken, or for a cancel.
async fn hear(turn: &mut Turn, listens: bool) -> Heard {
    if listens && turn.next_message().await.is_ok() {
        return Heard::Message;
    }
    turn.canceled().await;
    Heard::Cancel
}

/// What a command has said so far.
#[derive(Debug)]
struct Dialogue {
    chunks: Chunks,
    lines: u64,
    /// Whether the command has reported anything.
    reported: bool,
    /// Whether the task was said to be at work because the command said nothing.
    spoken_for: bool,
    /// The state last reported.
    state: Option<TaskState>,
}

impl Dialogue {
    fn new() -> Self {
        Self {
            chunks: Chunks::new(),
            lines: 0,
            reported: false,
            spoken_for: false,
            state: None,
        }
    }

    fn is_silent(&self) -> bool {
        !self.reported && !self.spoken_for
    }

    /// Does what a line says.
    async fn take(&mut self, turn: &Turn, piece: Piece) -> Result<Next, AgentError> {
        self.lines += 1;
        if !piece.ends_line {
            return Err(self.unreadable(format!("is longer than {LONGEST_LINE} bytes")));
        }
        let names = Names {
            task: turn.task_id(),
            context: turn.context_id(),
        };
        let report = match protocol::read(&piece.bytes, names) {
            Ok(Some(Report::Message(message))) => return Ok(Next::Answer(message)),
            Ok(Some(report)) => report,
            Ok(None) => return Ok(Next::GoOn),
            Err(invalid) => return Err(self.unreadable(invalid)),
        };
        self.reported = true;
        let said = |text| Some(turn.agent_message(vec![Part::text(text)]));
        let state = match report {
            Report::Status(mut update) => {
                update.status.timestamp = Some(Timestamp::now());
                let state = update.status.state;
                turn.emit(Update::Status(update)).await?;
                state
            }
            Report::Ask(question) => {
                turn.status(TaskState::InputRequired, said(question))
                    .await?;
                TaskState::InputRequired
            }
            Report::Progress(text) => {
                turn.status(TaskState::Working, said(text)).await?;
                TaskState::Working
            }
            Report::Artifact(update) => {
                turn.emit(Update::Artifact(update)).await?;
                return Ok(Next::GoOn);
            }
            Report::Chunk(part) => {
                self.chunks.send(turn, part).await?;
                return Ok(Next::GoOn);
            }
            Report::Message(_) => return Ok(Next::GoOn),
        };
        self.state = Some(state);
        Ok(match state {
            state if state.is_terminal() => Next::Done,
            state if state.is_interrupted() => Next::Asked,
            _ => Next::GoOn,
        })
    }

    fn unreadable(&self, what: impl std::fmt::Display) -> AgentError {
        AgentError::failed(format!(
            "line {} of the command's output: {what}",
            self.lines
        ))
    }

    fn answer(&self, turn: Turn, message: Message) -> TurnResult {
        if self.spoken_for && !self.reported {
            // The caller was given a task meanwhile.
            return turn.end(TaskState::Completed, Some(message));
        }
        turn.reply_with(message)
    }

    /// Ends the turn of a command that has ended without a last word.
    fn end(&self, turn: Turn, exit: Exit, process: &Process) -> TurnResult {
        if self.state.is_some_and(TaskState::is_interrupted) {
            if let Some(failure) = exit.failure() {
                let task = turn.task_id();
                tracing::warn!(%task, failure, "the command asked for something, then failed");
            }
            return turn.leave();
        }
        check(&turn, exit, process)?;
        turn.complete()
    }
}
