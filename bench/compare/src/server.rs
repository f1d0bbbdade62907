//! A server process, from its start on a free port to its end.

use std::{
    env,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    args::Args,
    contender::{Contender, Make},
};

/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(20);

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("can't start {program}: {source}")]
    Start { program: PathBuf, source: io::Error },
    #[error("no folder for its files: {0}")]
    Folder(io::Error),
    #[error("{0} did not say where it listens: {1}")]
    Silent(String, String),
}

/// A running server, killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) contender: Contender,
    pub(crate) url: String,
    child: Child,
    // Removed with the server.
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start(args: &Args, contender: Contender) -> Result<Self, ServerError> {
        let beside = args.out.parent().unwrap_or(&args.out);
        let folder = tempfile::Builder::new()
            .prefix("server-")
            .tempdir_in(beside);
        let folder = folder.map_err(ServerError::Folder)?;
        let log = folder.path().join("stderr");
        let stderr = File::create(&log).map_err(ServerError::Folder)?;
        let program = match contender.make {
            Make::NuncioMemory | Make::NuncioSqlite => args.nuncio.clone(),
            Make::PeerA2aLf => args.bin.join("peer-a2a-lf"),
            Make::Floor => args.bin.join("floor"),
        };
        let mut command = Command::new(&program);
        // What the caller's environment says must not decide what is measured.
        let settings = env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|name| name.to_string_lossy().starts_with("NUNCIO_")) {
            command.env_remove(name);
        }
        command.env_remove("PORT").env_remove("NAGLE");
        if matches!(contender.make, Make::NuncioMemory | Make::NuncioSqlite) {
            let store = match contender.make {
                Make::NuncioMemory => "memory".to_owned(),
                _ => format!("sqlite:{}", folder.path().join("nuncio.db").display()),
            };
            command
                .args([
                    "serve",
                    "--agent",
                    "bench",
                    "--listen",
                    "127.0.0.1:0",
                    "--store",
                    &store,
                ])
                .arg("--data")
                .arg(folder.path())
                .env("NUNCIO_SQLITE_SYNCHRONOUS", "full")
                .env("NUNCIO_THREADS", contender.threads.to_string());
        } else {
            command.env("TOKIO_WORKER_THREADS", contender.threads.to_string());
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn();
        let child = child.map_err(|source| ServerError::Start { program, source })?;
        let mut server = Self {
            contender,
            url: String::new(),
            child,
            _folder: folder,
        };
        match server.address() {
            Some(address) => server.url = format!("{address}{}", contender.path()),
            None => {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                return Err(ServerError::Silent(contender.name(), said));
            }
        }
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the first line says. The rest is read too, so that the server never waits for us.
    fn address(&mut self) -> Option<String> {
        let (tell, told) = mpsc::channel();
        let mut out = BufReader::new(self.child.stdout.take()?);
        thread::spawn(move || {
            let mut line = String::new();
            let read = out.read_line(&mut line);
            // Nobody waits any more where it took too long.
            let _ = tell.send(read.is_ok().then_some(line));
            let _ = io::copy(&mut out.by_ref(), &mut io::sink());
        });
        let line = told.recv_timeout(START).ok()??;
        Some(line.trim().strip_prefix("listening on ")?.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that ended by itself is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
