//! A running command: its process group, its pipes, its end.
//!
//! Invariants:
//! - the command and all it started are one process group, and no way out of here leaves one of
//!   them alive: [`Process::end`] and [`Process::terminate`] kill the group, and so does dropping
//!   a [`Process`], which is what happens at a deadline, a forced cancel or a shutdown. (What a
//!   command takes out of its group by `setsid` is the command's own affair.)
//! - memory is bounded: a piece of output, the tail of standard error, what is queued for standard
//!   input. Output that nobody takes stays in the pipe, and the command waits;
//! - a pipe that outlives the command, since something it left behind has it open, holds nothing
//!   up for longer than [`DRAIN`].
//!
//! Killing the group before reading the rest was rejected: what a shell's `> >(tee log)` has not
//! passed on when the shell ends would be lost.

use super::lines::{Lines, Piece};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    env, io,
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{Instant, sleep_until, timeout},
};

/// How long the pipes may stay open after the command has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// How much is read of a pipe after the command has ended, where it does not end: more than the
/// pipe and its reader hold.
const DRAIN_BYTES: u64 = 96 << 10;
/// How long a command that has given its answer may take to end by itself.
const LINGER: Duration = Duration::from_secs(2);
/// As much of standard error as is kept, from its end.
const STDERR_BYTES: usize = 8 << 10;

/// What a command does next.
#[derive(Debug)]
pub(super) enum Output {
    Piece(Piece),
    Ended(Exit),
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exit(ExitStatus);

impl Exit {
    /// Why this is a failure, if it is one.
    pub(super) fn failure(self) -> Option<String> {
        match (self.0.code(), self.0.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("exit status {code}")),
            (None, Some(signal)) => Some(format!("killed by signal {signal}")),
            (None, None) => Some("ended in an unknown way".to_owned()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Process {
    // Dropped first: the group is killed while its leader still holds its number.
    group: Group,
    child: Child,
    stdin: Input,
    stdout: Lines<ChildStdout>,
    stderr: Tail<ChildStderr>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    exit: Exit,
    deadline: Instant,
    /// What has been read of each pipe when enough of it has been.
    stdout_enough: u64,
    stderr_enough: u64,
}

impl Process {
    /// Starts a command. What it inherits of the environment is all but nuncio's own settings
    /// and keys, the variables `NUNCIO_…`; `variables` are set instead.
    pub(super) fn spawn(
        program: &str,
        arguments: &[String],
        variables: &[(&str, &str)],
        longest_piece: usize,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"NUNCIO_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = Group::of(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        Ok(Self {
            group,
            child,
            stdin: Input::new(stdin),
            stdout: Lines::new(stdout, longest_piece),
            stderr: Tail::new(stderr),
            ended: None,
        })
    }

    /// Queues bytes for standard input.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.stdin.queue(bytes);
    }

    /// Closes standard input once what is queued has been written.
    pub(super) fn close_stdin(&mut self) {
        self.stdin.closing = true;
    }

    /// Whether standard input is open and takes more at once.
    pub(super) fn is_listening(&self) -> bool {
        self.ended.is_none() && self.stdin.is_idle()
    }

    /// The end of what the command said on standard error.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits for what the command does next. Loses nothing where it is dropped while waiting.
    pub(super) async fn next(&mut self) -> Output {
        loop {
            let (reads_stdout, reads_stderr) = self.reads();
            if let Some(ended) = &self.ended
                && !(reads_stdout || reads_stderr)
            {
                return Output::Ended(ended.exit);
            }
            // In this order: a flood of output does not hide the command's end, one of complaints
            // does not hide the output, and time is up only when there is nothing to read.
            tokio::select! {
                biased;
                status = self.child.wait(), if self.ended.is_none() => self.note_end(status),
                () = self.stdin.advance(), if self.stdin.has_work() => {}
                piece = self.stdout.next(), if reads_stdout => {
                    if let Some(piece) = piece {
                        return Output::Piece(piece);
                    }
                }
                () = self.stderr.fill(), if reads_stderr => {}
                exit = drained(self.ended.as_ref()) => return Output::Ended(exit),
            }
        }
    }

    fn note_end(&mut self, status: io::Result<ExitStatus>) {
        let exit = Exit(status.unwrap_or_else(|error| {
            // Nobody else waits for it, so this can't happen; if it does, it is no success.
            tracing::error!(%error, "the command's end could not be seen");
            ExitStatus::from_raw(-1)
        }));
        self.ended = Some(Ended {
            exit,
            deadline: Instant::now() + DRAIN,
            stdout_enough: self.stdout.read() + DRAIN_BYTES,
            stderr_enough: self.stderr.read + DRAIN_BYTES,
        });
    }

    /// Whether there is more to be read of standard output and of standard error.
    fn reads(&self) -> (bool, bool) {
        let (mut stdout, mut stderr) = (!self.stdout.ended(), !self.stderr.ended());
        if let Some(ended) = &self.ended {
            stdout &= self.stdout.read() < ended.stdout_enough;
            stderr &= self.stderr.read < ended.stderr_enough;
        }
        (stdout, stderr)
    }

    /// Kills what the command left behind, and the command if it still runs.
    pub(super) async fn end(&mut self) {
        self.group.signal(Signal::KILL);
        if self.child.wait().await.is_ok() {
            self.group.forget();
        }
    }

    /// Ends the command: its group is told by SIGTERM, and killed after a grace time.
    pub(super) async fn terminate(&mut self, grace: Duration) {
        self.stdin.close();
        self.group.signal(Signal::TERM);
        self.discard(grace).await;
        self.end().await;
    }

    /// Lets a command that has given its answer end; what it still says is not read.
    pub(super) async fn dismiss(&mut self, grace: Duration) {
        self.close_stdin();
        if self.discard(LINGER).await {
            self.end().await;
        } else {
            self.terminate(grace).await;
        }
    }

    /// Throws output away until the command ends; says whether it did in time.
    async fn discard(&mut self, time: Duration) -> bool {
        let ended = async { while !matches!(self.next().await, Output::Ended(_)) {} };
        timeout(time, ended).await.is_ok()
    }
}

async fn drained(ended: Option<&Ended>) -> Exit {
    match ended {
        Some(ended) => {
            sleep_until(ended.deadline).await;
            ended.exit
        }
        None => std::future::pending().await,
    }
}

/// A process group, killed when dropped.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads.
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// The group is no more, and its number may be given to another.
    fn forget(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // Fails where no process of the group is left, and that is what was wanted.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A command's standard input, and what is still to be written to it.
#[derive(Debug)]
struct Input {
    pipe: Option<ChildStdin>,
    queued: Vec<u8>,
    written: usize,
    closing: bool,
}

impl Input {
    fn new(pipe: ChildStdin) -> Self {
        Self {
            pipe: Some(pipe),
            queued: Vec::new(),
            written: 0,
            closing: false,
        }
    }

    fn queue(&mut self, bytes: &[u8]) {
        if self.pipe.is_some() && !self.closing {
            self.queued.extend_from_slice(bytes);
        }
    }

    fn is_idle(&self) -> bool {
        self.pipe.is_some() && !self.closing && self.queued.is_empty()
    }

    fn has_work(&self) -> bool {
        self.pipe.is_some() && (self.closing || !self.queued.is_empty())
    }

    fn close(&mut self) {
        self.pipe = None;
        self.queued = Vec::new();
    }

    /// Writes some of what is queued, or closes the pipe.
    async fn advance(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let rest = &self.queued[self.written..];
        if rest.is_empty() {
            return self.close();
        }
        match pipe.write(rest).await {
            Ok(written) if written > 0 => self.written += written,
            // A command need not read what it is told.
            _ => return self.close(),
        }
        if self.written == self.queued.len() {
            (self.queued, self.written) = (Vec::new(), 0);
        }
    }
}

/// The last bytes of a stream.
#[derive(Debug)]
struct Tail<R> {
    source: Option<R>,
    last: Vec<u8>,
    read: u64,
}

impl<R: AsyncRead + Unpin> Tail<R> {
    fn new(source: R) -> Self {
        Self {
            source: Some(source),
            last: Vec::new(),
            read: 0,
        }
    }

    fn ended(&self) -> bool {
        self.source.is_none()
    }

    /// Reads some.
    async fn fill(&mut self) {
        let Some(source) = &mut self.source else {
            return;
        };
        let mut buffer = [0; 2048];
        match source.read(&mut buffer).await {
            Ok(read) if read > 0 => self.keep(&buffer[..read]),
            _ => self.source = None,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.read += bytes.len() as u64;
        self.last.extend_from_slice(bytes);
        self.last
            .drain(..self.last.len().saturating_sub(STDERR_BYTES));
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.last);
        let text = text.trim_end();
        if self.read > self.last.len() as u64 {
            // The cut may have gone through a character.
            format!("…{}", text.trim_start_matches(char::REPLACEMENT_CHARACTER))
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_tail_is_the_end_and_bounded() {
        let mut tail = Tail::new(&b"short\n"[..]);
        while !tail.ended() {
            tail.fill().await;
        }
        assert_eq!(tail.text(), "short");

        let long = format!("{}the end", "é".repeat(STDERR_BYTES));
        let mut tail = Tail::new(long.as_bytes());
        while !tail.ended() {
            tail.fill().await;
            assert!(tail.last.len() <= STDERR_BYTES);
        }
        let text = tail.text();
        assert!(
            text.starts_with("…é") && text.ends_with("éthe end"),
            "{text}"
        );
    }

    #[test]
    fn failures_are_named() {
        assert_eq!(Exit(ExitStatus::from_raw(0)).failure(), None);
        let failure = |raw| Exit(ExitStatus::from_raw(raw)).failure().unwrap();
        assert_eq!(failure(3 << 8), "exit status 3");
        assert_eq!(failure(9), "killed by signal 9");
    }
}
