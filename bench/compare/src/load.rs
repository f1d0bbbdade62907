//! Runs of `a2aload`.

use std::{io, path::PathBuf, process::Command, time::Instant};

use serde_json::{Value, json};

use crate::{
    args::Args,
    contender::Contender,
    kind::{Kind, number},
    server::Server,
};

/// Connections that make the tasks of a list.
const FILLERS: u64 = 64;
/// Longest that this may take, in seconds.
const FILL_SECS: u64 = 120;

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("can't run {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error("{name}: {said}")]
    Failed { name: String, said: String },
    #[error("{name}: made {made} of {asked} tasks: {line}")]
    NotFilled {
        name: String,
        made: f64,
        asked: u64,
        line: Value,
    },
}

/// What one run said.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) contender: Contender,
    pub(crate) kind: Kind,
    /// The line, and which round and server it is of.
    pub(crate) raw: Value,
    /// Processors that neither the server nor the generator had, on average.
    pub(crate) others: f64,
}

/// The generator.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    args: &'a Args,
}

impl<'a> Load<'a> {
    pub(crate) fn new(args: &'a Args) -> Self {
        Self { args }
    }

    pub(crate) fn run(
        &self,
        kind: Kind,
        round: usize,
        server: &Server,
    ) -> Result<Sample, LoadError> {
        let began = Instant::now();
        let mut raw = self.call(server, &kind.arguments(self.args))?;
        let span = began.elapsed().as_secs_f64();
        let others = number(&raw, "other_cpu_s") / span;
        if let Value::Object(fields) = &mut raw {
            fields.insert("round".to_owned(), json!(round + 1));
            fields.insert(
                "server".to_owned(),
                json!(server.contender.make.to_string()),
            );
            fields.insert("threads".to_owned(), json!(server.contender.threads));
        }
        Ok(Sample {
            contender: server.contender,
            kind,
            raw,
            others,
        })
    }

    /// Sends until the server has the tasks that a list is of.
    pub(crate) fn fill(&self, server: &Server) -> Result<(), LoadError> {
        let (asked, fillers) = (self.args.tasks, FILLERS.to_string());
        let (count, secs) = (asked.to_string(), FILL_SECS.to_string());
        let flags = [
            "send",
            "--no-warm",
            "-c",
            &fillers,
            "--n",
            &count,
            "--secs",
            &secs,
        ];
        let line = self.call(server, &flags.map(ToOwned::to_owned))?;
        let (name, made) = (server.contender.name(), number(&line, "ok"));
        if made as u64 == asked {
            return Ok(());
        }
        Err(LoadError::NotFilled {
            name,
            made,
            asked,
            line,
        })
    }

    fn call(&self, server: &Server, arguments: &[String]) -> Result<Value, LoadError> {
        let program = self.args.bin.join("a2aload");
        let mut command = Command::new(&program);
        command.args(arguments).args(["--url", &server.url]);
        command.args(["--pid", &server.pid().to_string()]);
        command.args(["--label", &server.contender.name()]);
        let output = command
            .output()
            .map_err(|source| LoadError::Start { program, source })?;
        let failed = |said: &[u8]| LoadError::Failed {
            name: server.contender.name(),
            said: String::from_utf8_lossy(said).trim().to_owned(),
        };
        if !output.status.success() {
            return Err(failed(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).map_err(|_| failed(&output.stdout))
    }
}
