//! The command line.

use std::path::PathBuf;

use clap::{Parser, value_parser};

use crate::{
    contender::{Contender, Make},
    kind::{Kind, PAGE},
};

/// Compares nuncio with the official Rust SDK's server and with bare axum.
#[derive(Debug, Parser)]
#[command(name = "bench/run", about)]
pub(crate) struct Args {
    /// A short run: fewer rounds, tasks and events. Its figures are for orientation; whatever else
    /// is given still counts.
    #[arg(long)]
    quick: bool,
    /// Rounds; what is told is their median.
    #[arg(long, default_value_t = 3, default_value_if("quick", "true", "2"), value_parser = rounds)]
    pub(crate) rounds: usize,
    /// Seconds of load a round for sends, streams and gets.
    #[arg(long, default_value_t = 3, default_value_if("quick", "true", "1"), value_parser = value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// Kinds of load, such as send,stream.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "send,stream,get,list,fanout,idle"
    )]
    kinds: Vec<Kind>,
    /// Servers.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "nuncio-memory,nuncio-sqlite,peer-a2a-lf,floor"
    )]
    servers: Vec<Make>,
    /// Worker threads of the servers; each number makes a contender of its own.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = value_parser!(u64).range(1..=64))]
    threads: Vec<u64>,
    /// Connections of sends, streams and gets.
    #[arg(short, long, default_value_t = 16, value_parser = value_parser!(u64).range(1..=1024))]
    pub(crate) connections: u64,
    /// Chunks of a stream.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) chunks: u64,
    /// Tasks that a list is of.
    #[arg(long, default_value_t = 100_000, default_value_if("quick", "true", "10000"), value_parser = value_parser!(u64).range(PAGE..=1_000_000))]
    pub(crate) tasks: u64,
    /// Followers of a fan-out.
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u64).range(1..=5000))]
    pub(crate) followers: u64,
    /// Chunks of a fan-out.
    #[arg(long, default_value_t = 5000, default_value_if("quick", "true", "500"), value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) events: u64,
    /// Connections that are held open, idle.
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) idle: u64,
    /// The nuncio program.
    #[arg(long, value_name = "FILE")]
    pub(crate) nuncio: PathBuf,
    /// Where the other programs are.
    #[arg(long, value_name = "DIR")]
    pub(crate) bin: PathBuf,
    /// Where each run's line goes. Databases are made beside it, so this is the disk measured.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

impl Args {
    /// The kinds, each once.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        once(&self.kinds)
    }

    /// Every server with every number of threads.
    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let threads = once(&self.threads);
        let each = |make| {
            threads
                .iter()
                .map(move |&threads| Contender { make, threads })
        };
        once(&self.servers).into_iter().flat_map(each).collect()
    }
}

fn once<T: Copy + PartialEq>(all: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for item in all {
        if !kept.contains(item) {
            kept.push(*item);
        }
    }
    kept
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds @ 1..=100) => Ok(rounds),
        _ => Err("1 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
        let args = parsed(&[]);
        assert_eq!((args.kinds().len(), args.contenders().len()), (6, 8));
    }

    #[test]
    fn a_quick_run_is_shorter_and_overruled() {
        let (full, quick) = (parsed(&[]), parsed(&["--quick"]));
        assert!(quick.rounds < full.rounds && quick.seconds < full.seconds);
        assert!(quick.tasks < full.tasks && quick.events < full.events);
        assert_eq!(parsed(&["--quick", "--rounds", "7"]).rounds, 7);
    }

    fn parsed(more: &[&str]) -> Args {
        let paths = ["bench/run", "--nuncio", "n", "--bin", "b", "--out", "o"];
        Args::try_parse_from(paths.iter().chain(more)).unwrap()
    }
}
