//! How the program ends, for scripts to rely on.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | done; of a task: completed, or it waits for its user |
//! | 1 | the operation failed: the server answered an error, or the task failed, was rejected or canceled |
//! | 2 | wrong usage or configuration |
//! | 3 | the server can't be reached, or does not speak A2A as this program does |
//! | 4 | the server wants credentials, or does not accept those it got |
//! | 5 | it took longer than was allowed |
//!
//! 2 is what clap ends with, and 3 to 5 are what the a2a-cli specification reserves for these.
//! That specification has 0 for a task that failed; here it is 1, so that `nuncio send … && next`
//! does not go on with an answer that is none.

use crate::client::{ClientError, text};
use std::{io, process::ExitCode};

/// The codes, as `--help` shows them.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done, or the task waits for its user
  1  the server answered an error, or the task failed, was rejected or canceled
  2  wrong usage or configuration
  3  the server can't be reached or does not speak A2A
  4  credentials are missing or not accepted
  5  it took longer than --timeout";

/// Why a command failed: a code for scripts and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(crate) struct CommandError {
    exit: Exit,
    text: String,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The operation failed.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No server, or none that speaks A2A.
    Unreachable = 3,
    /// Credentials are missing or not accepted.
    Unauthorized = 4,
    /// It took too long.
    TimedOut = 5,
}

impl CommandError {
    /// A failure of this kind. What a server says may be in the text: it is made harmless.
    pub(crate) fn new(exit: Exit, text: impl AsRef<str>) -> Self {
        let text = text::one_line(text.as_ref());
        Self { exit, text }
    }

    /// Wrong usage or configuration.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            text: text.into(),
        }
    }

    /// What was to be printed could not be.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self::new(Exit::Failed, format!("can't write the output: {error}"))
    }

    /// What the process ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        let exit = match error {
            ClientError::Usage(_) => Exit::Usage,
            ClientError::Unreachable { .. }
            | ClientError::NotA2a { .. }
            | ClientError::Broken(_) => Exit::Unreachable,
            ClientError::Unauthorized { .. } => Exit::Unauthorized,
            ClientError::TimedOut(_) => Exit::TimedOut,
            ClientError::Remote(_) => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_core::wire::jsonrpc::RemoteError;

    #[test]
    fn what_a_server_says_cannot_steer_the_terminal() {
        let remote = RemoteError {
            code: -32001,
            message: "a\u{1b}[2J\nb".into(),
            data: None,
        };
        let error = CommandError::from(ClientError::Remote(remote));
        assert_eq!(error.exit, Exit::Failed);
        assert!(!error.to_string().contains(['\u{1b}', '\n']), "{error}");
    }
}
