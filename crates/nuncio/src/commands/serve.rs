//! `nuncio serve`: the configuration becomes a running server.

use crate::{
    agents,
    config::{
        AgentKind, AuthMode, AuthOverrides, Config, ExecOverrides, LogFormat, Overrides, StoreKind,
        TransportKind,
    },
    exit::CommandError,
};
use nuncio_core::{AgentCard, AgentProvider};
use nuncio_server::{Agent, ApiKeys, Auth, KeyFile, Server};
use nuncio_store::{MemoryStore, SqliteOptions, SqliteStore, Store};
use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

/// Arguments of `nuncio serve`. Each has a configuration key, and so a `NUNCIO_…` variable.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ServeArgs {
    /// The configuration file; `nuncio init` writes one.
    #[arg(long, value_name = "FILE", env = "NUNCIO_CONFIG")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The folder of everything nuncio keeps.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where tasks live: memory or sqlite:PATH.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// The agent to serve.
    #[arg(long, value_enum)]
    agent: Option<AgentKind>,
    /// Serves a command: it runs once for each turn, with the message's text on its standard
    /// input. All that follows is the command, so this comes last.
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true)]
    exec: Option<Vec<String>>,
    /// The command gets the whole turn as JSON and answers in JSON, an event a line.
    #[arg(long)]
    json: bool,
    /// How much of the protocol runs.
    #[arg(long, value_enum)]
    transport: Option<TransportKind>,
    /// Where clients reach the server, as its card says it.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Listens beyond loopback although everybody is let in.
    #[arg(long)]
    dangerously_serve_everybody: bool,
}

impl ServeArgs {
    /// The configuration with these arguments laid over it.
    pub(crate) fn config(&self) -> Result<Config, CommandError> {
        let agent = self
            .agent
            .or(self.exec.is_some().then_some(AgentKind::Exec));
        let exec = ExecOverrides {
            command: self.exec.clone(),
            json: self.json.then_some(true),
        };
        let auth = AuthOverrides {
            dangerously_serve_everybody: true,
        };
        let flags = Overrides {
            listen: self.listen,
            base_url: self.base_url.clone(),
            data: self.data.clone(),
            store: self.store.clone(),
            agent,
            transport: self.transport,
            exec: Some(exec),
            auth: self.dangerously_serve_everybody.then_some(auth),
        };
        Config::load(self.config.as_deref(), &flags)
    }
}

/// Serves until told to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<(), CommandError> {
    let config = args.config()?;
    start_log(&config)?;
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    if config.threads > 0 {
        threads.worker_threads(config.threads);
    }
    let runtime = threads.enable_all().build().map_err(failed)?;
    let outcome = runtime.block_on(serve(config));
    // What an agent left on a blocking thread does not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve(config: Config) -> Result<(), CommandError> {
    let (store, stored_in) = open_store(&config)?;
    let auth = auth(&config)?;
    let (agent, card, described) = agent(&config);
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        CommandError::usage(format!("can't listen on {}: {error}", config.listen))
    })?;
    let address = listener.local_addr().map_err(failed)?;
    let anonymous = auth.is_anonymous();
    let mut server = Server::builder(agent)
        .card(card)
        .card_form(config.card_form())
        .streaming(config.card.streaming)
        .store(store)
        .auth(auth)
        .transport(config.transport())
        .limits(config.limits())
        .retention(config.retention())
        .idempotent_message_ids(config.idempotency.message_ids);
    if !config.base_url.is_empty() {
        server = server.base_url(&config.base_url);
    }
    if config.auth.dangerously_serve_everybody {
        server = server.dangerously_serve_everybody();
    }
    let ready = || announce(&config, address, &stored_in, &described, anonymous);
    server
        .serve_on(listener, ready, stop_signal()?)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => CommandError::usage(format!(
                "{error}. Make a key with nuncio keys add NAME, or say \
                 --dangerously-serve-everybody"
            )),
            _ => failed(error),
        })
}

fn failed(error: impl Into<io::Error>) -> CommandError {
    CommandError::usage(error.into().to_string())
}

fn start_log(config: &Config) -> Result<(), CommandError> {
    let filter = EnvFilter::try_new(&config.log.filter)
        .map_err(|error| CommandError::usage(format!("log.filter is wrong: {error}")))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match config.log.format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

fn open_store(config: &Config) -> Result<(Arc<dyn Store>, String), CommandError> {
    match config.store()? {
        StoreKind::Memory => {
            let text = "tasks are kept in memory and lost when it stops".into();
            Ok((Arc::new(MemoryStore::new()), text))
        }
        StoreKind::Sqlite(path) => {
            let options = SqliteOptions {
                synchronous: config.synchronous(),
                ..Default::default()
            };
            let store = SqliteStore::open(&path, &options)
                .map_err(|error| CommandError::usage(error.to_string()))?;
            Ok((
                Arc::new(store),
                format!("tasks are kept in {}", path.display()),
            ))
        }
    }
}

fn auth(config: &Config) -> Result<Auth, CommandError> {
    let keys = KeyFile::open(config.keys()).map_err(failed)?;
    let anonymous = match config.auth.mode {
        AuthMode::Anonymous => true,
        AuthMode::ApiKeys => false,
        AuthMode::Auto => keys.is_empty(),
    };
    if anonymous {
        return Ok(Auth::Anonymous);
    }
    let header = config.auth.key_header.parse().map_err(|_| {
        let text = format!(
            "auth.key_header {:?} is no header name",
            config.auth.key_header
        );
        CommandError::usage(text)
    })?;
    Ok(Auth::api_keys(ApiKeys::new(keys).in_header(header)))
}

fn agent(config: &Config) -> (Arc<dyn Agent>, AgentCard, String) {
    let (agent, mut card, described): (Arc<dyn Agent>, _, _) = match config.agent {
        AgentKind::Echo => (
            Arc::new(agents::Echo),
            agents::Echo::card(),
            "echo".to_owned(),
        ),
        AgentKind::Tck => (Arc::new(agents::Tck), agents::Tck::card(), "tck".to_owned()),
        AgentKind::Bench => (
            Arc::new(agents::Bench),
            agents::Bench::card(),
            "bench".to_owned(),
        ),
        AgentKind::Exec => {
            let exec = agents::Exec::new(
                config.exec.command.clone(),
                agents::ExecOptions {
                    json: config.exec.json,
                    term_grace: Duration::from_millis(config.exec.term_grace_ms),
                },
            );
            let card = exec.card();
            (
                Arc::new(exec),
                card,
                format!("exec {}", config.exec.command.join(" ")),
            )
        }
    };
    let section = &config.card;
    let lay_over = |field: &mut String, text: &String| {
        if !text.is_empty() {
            field.clone_from(text);
        }
    };
    lay_over(&mut card.name, &section.name);
    lay_over(&mut card.description, &section.description);
    lay_over(&mut card.version, &section.version);
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    card.documentation_url = given(&section.documentation_url).or(card.documentation_url);
    card.icon_url = given(&section.icon_url).or(card.icon_url);
    if let (Some(organization), Some(url)) = (
        given(&section.provider_organization),
        given(&section.provider_url),
    ) {
        card.provider = Some(AgentProvider { organization, url });
    }
    (agent, card, described)
}

/// Says where the server is and how to talk to it. The first line is for scripts.
fn announce(
    config: &Config,
    address: SocketAddr,
    stored_in: &str,
    agent: &str,
    anonymous: bool,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on http://{address}")?;
    writeln!(out, "agent: {agent}")?;
    writeln!(out, "{stored_in}")?;
    let key = if anonymous {
        writeln!(
            out,
            "anybody who reaches it is let in; nuncio keys add NAME changes that"
        )?;
        ""
    } else {
        writeln!(out, "callers need an API key ({})", config.keys().display())?;
        " -H \"Authorization: Bearer $NUNCIO_API_KEY\""
    };
    writeln!(
        out,
        "try: curl -s http://{address}/ -H 'Content-Type: application/json'{key} -d \
         '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{{\"message\":\
         {{\"kind\":\"message\",\"messageId\":\"m1\",\"role\":\"user\",\"parts\":[{{\"kind\":\"text\",\
         \"text\":\"hello\"}}]}}}}}}'"
    )?;
    out.flush()
}

/// Resolves when the process is told to stop.
fn stop_signal() -> Result<impl Future<Output = ()>, CommandError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}
