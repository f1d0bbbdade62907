//! The command line. Every number has a bound, so that no run can go on for ever.

use std::{net::SocketAddr, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand, value_parser};

/// Closed-loop load for one A2A server on loopback; prints one line of JSON.
#[derive(Debug, Parser)]
#[command(name = "a2aload", about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Messages whose answer is a completed task.
    Send(SendArgs),
    /// Reads of one task.
    Get(GetArgs),
    /// Page 1 of the list of tasks, over and over, then a walk through the pages.
    List(ListArgs),
    /// Streams of some chunks each.
    Stream(StreamArgs),
    /// One task, many followers.
    Fanout(FanoutArgs),
    /// Connections that have been used once and are held open.
    Idle(IdleArgs),
}

impl Command {
    pub(crate) fn target(&self) -> &TargetArgs {
        match self {
            Self::Send(args) => &args.target,
            Self::Get(args) => &args.target,
            Self::List(args) => &args.target,
            Self::Stream(args) => &args.target,
            Self::Fanout(args) => &args.target,
            Self::Idle(args) => &args.target,
        }
    }
}

/// Who is asked, and in which words.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Where the server is: http://127.0.0.1:PORT/path.
    #[arg(long)]
    pub(crate) url: Url,
    /// The server's processes; found by the port where not given.
    #[arg(long, value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Comes back in the output.
    #[arg(long, default_value = "")]
    pub(crate) label: String,
    /// Speaks A2A 0.3 instead of 1.0.
    #[arg(long, conflicts_with = "rest")]
    pub(crate) v03: bool,
    /// Speaks HTTP+JSON instead of JSON-RPC.
    #[arg(long)]
    pub(crate) rest: bool,
}

/// How many at once, and for how long.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LoopArgs {
    /// Connections, each with one request under way.
    #[arg(short, long = "connections", default_value_t = 16, value_parser = value_parser!(u64).range(1..=1024))]
    pub(crate) connections: u64,
    /// How long, in seconds.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=120))]
    secs: u64,
    /// Ends after so many requests, if that is sooner.
    #[arg(long, value_parser = value_parser!(u64).range(1..=10_000_000))]
    pub(crate) n: Option<u64>,
}

impl LoopArgs {
    pub(crate) fn span(self) -> Duration {
        Duration::from_secs(self.secs)
    }
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    pub(crate) load: LoopArgs,
    /// The text of the messages.
    #[arg(long, default_value = TEXT)]
    pub(crate) text: String,
    /// Begins to count at the first request.
    #[arg(long)]
    pub(crate) no_warm: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    pub(crate) load: LoopArgs,
    /// The text of the message that makes the task.
    #[arg(long, default_value = TEXT)]
    pub(crate) text: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Reads of page 1.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) n: u64,
    /// Tasks on a page.
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u64).range(1..=100))]
    pub(crate) page_size: u64,
    /// Tasks that the list must say it has; not looked at where not given.
    #[arg(long)]
    pub(crate) total: Option<u64>,
    /// Pages of the walk.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(0..=100_000))]
    pub(crate) walk: u64,
    /// How long page 1 is read, and then the pages are walked, at most, in seconds.
    #[arg(long, default_value_t = 15, value_parser = value_parser!(u64).range(1..=120))]
    pub(crate) secs: u64,
}

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    pub(crate) load: LoopArgs,
    /// Chunks of a stream.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) chunks: u64,
}

#[derive(Debug, Args)]
pub(crate) struct FanoutArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Followers.
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) subs: u64,
    /// Chunks.
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) events: u64,
    /// The agent's pause before its first chunk, for followers to gather, in milliseconds.
    #[arg(long, default_value_t = 5000, value_parser = value_parser!(u64).range(500..=60_000))]
    pub(crate) start_ms: u64,
    /// The agent's pause between two chunks, in milliseconds.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u64).range(0..=1000))]
    pub(crate) interval_ms: u64,
}

#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Connections that are held open.
    #[arg(short, long, default_value_t = 1000, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) connections: u64,
}

const TEXT: &str = "The quick brown fox jumps over the lazy dog, sixty-four bytes ok.";

/// A plain HTTP URL on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
}

/// Why a URL is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("it must begin with http://")]
    Scheme,
    #[error("it must name an address and a port: http://127.0.0.1:PORT/path")]
    Address,
    #[error("load goes to loopback only")]
    NotLoopback,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text.strip_prefix("http://").ok_or(UrlError::Scheme)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let authority = match authority.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => authority.to_owned(),
        };
        let address: SocketAddr = authority.parse().map_err(|_| UrlError::Address)?;
        if !address.ip().is_loopback() {
            return Err(UrlError::NotLoopback);
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self {
            address,
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_url_is_on_loopback() {
        let url = |text: &str| {
            text.parse::<Url>()
                .map(|url| (url.address.port(), url.path))
        };
        assert_eq!(url("http://localhost:80").unwrap(), (80, "/".into()));
        assert_eq!(url("http://127.0.0.1:81/a/b").unwrap(), (81, "/a/b".into()));
        assert_eq!(url("http://[::1]:82/").unwrap(), (82, "/".into()));
        for refused in [
            "http://10.0.0.1:80/",
            "https://127.0.0.1:80/",
            "http://127.0.0.1/",
            "",
        ] {
            assert!(url(refused).is_err(), "{refused}");
        }
    }
}
