//! `compare`: the same load to several servers in turn, and a table of medians and ratios.
//!
//! Rounds are interleaved (A B C, B C A, …), each on a server started for it, so that what the
//! machine does besides falls on all of them alike; what is told is the median over the rounds.
//! Only lists keep one server for all rounds, since its tasks take long to make. `bench/run`
//! builds all that this runs.

mod args;
mod contender;
mod kind;
mod load;
mod server;
mod summary;

use std::{
    fs::{self, File},
    io::{self, Write},
    process::ExitCode,
};

use args::Args;
use clap::Parser;
use contender::Contender;
use kind::Kind;
use load::{Load, LoadError, Sample};
use server::{Server, ServerError};

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
enum CompareError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("can't keep results: {0}")]
    Results(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), CompareError> {
    if let Some(folder) = args.out.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut bench = Bench {
        args,
        raw: File::create(&args.out)?,
        samples: Vec::new(),
    };
    for kind in args.kinds() {
        let contenders: Vec<_> = args
            .contenders()
            .into_iter()
            .filter(|contender| kind.is_for(*contender))
            .collect();
        match kind {
            Kind::List => bench.lists(&contenders)?,
            _ => bench.rounds(kind, &contenders)?,
        }
        print!("{}", summary::table(kind, &bench.samples));
    }
    print!("{}", summary::aims(&bench.samples));
    eprintln!("every run, a line each: {}", args.out.display());
    Ok(())
}

/// A comparison under way.
struct Bench<'a> {
    args: &'a Args,
    raw: File,
    samples: Vec<Sample>,
}

impl Bench<'_> {
    fn rounds(&mut self, kind: Kind, contenders: &[Contender]) -> Result<(), CompareError> {
        for round in 0..self.args.rounds {
            for contender in turned(contenders, round) {
                let server = Server::start(self.args, *contender)?;
                self.measure(kind, round, &server)?;
            }
        }
        Ok(())
    }

    /// Fills every server with tasks first.
    fn lists(&mut self, contenders: &[Contender]) -> Result<(), CompareError> {
        let mut servers = Vec::new();
        for contender in contenders {
            let server = Server::start(self.args, *contender)?;
            eprintln!("{}: making {} tasks", contender.name(), self.args.tasks);
            Load::new(self.args).fill(&server)?;
            servers.push(server);
        }
        for round in 0..self.args.rounds {
            for server in turned(&servers, round) {
                self.measure(Kind::List, round, server)?;
            }
        }
        Ok(())
    }

    fn measure(&mut self, kind: Kind, round: usize, server: &Server) -> Result<(), CompareError> {
        let sample = Load::new(self.args).run(kind, round, server)?;
        eprintln!("round {}: {}", round + 1, summary::line(&sample));
        writeln!(self.raw, "{}", sample.raw)?;
        self.samples.push(sample);
        Ok(())
    }
}

/// All of them, beginning with another one each round.
fn turned<T>(all: &[T], round: usize) -> impl Iterator<Item = &T> {
    let start = round % all.len().max(1);
    all.iter().cycle().skip(start).take(all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another() {
        assert!(turned(&[1, 2, 3], 0).eq(&[1, 2, 3]));
        assert!(turned(&[1, 2, 3], 4).eq(&[2, 3, 1]));
        assert_eq!(turned::<u8>(&[], 4).count(), 0);
    }
}
