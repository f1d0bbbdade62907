//! The configuration: the reference file, a file of the user's, the environment, flags.

use crate::exit::CommandError;
use figment::{
    Figment, Metadata, Profile, Provider,
    providers::{Format, Serialized, Toml},
    value::{Dict, Value},
};
use nuncio_core::wire::card::CardForm;
use nuncio_server::{Limits, RetentionPolicy, Transport};
use nuncio_store::Synchronous;
use serde::{Deserialize, Serialize};
use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// The commented configuration: what `nuncio init` writes and every start loads first.
pub(crate) const REFERENCE: &str = include_str!("nuncio.toml");

/// All that can be configured. The reference says what each key means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) base_url: String,
    pub(crate) data: PathBuf,
    pub(crate) store: String,
    pub(crate) agent: AgentKind,
    pub(crate) transport: TransportKind,
    pub(crate) threads: usize,
    pub(crate) card: CardSection,
    pub(crate) exec: ExecSection,
    pub(crate) auth: AuthSection,
    pub(crate) sqlite: SqliteSection,
    pub(crate) limits: LimitsSection,
    pub(crate) idempotency: IdempotencySection,
    pub(crate) retention: RetentionSection,
    pub(crate) log: LogSection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentKind {
    Echo,
    Exec,
    Tck,
    Bench,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    Evented,
    Inline,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CardSection {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) documentation_url: String,
    pub(crate) icon_url: String,
    pub(crate) provider_organization: String,
    pub(crate) provider_url: String,
    pub(crate) versions: CardVersions,
    pub(crate) streaming: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CardVersions {
    #[serde(rename = "both")]
    Both,
    #[serde(rename = "1.0")]
    V1_0,
    #[serde(rename = "0.3")]
    V0_3,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecSection {
    pub(crate) command: Vec<String>,
    pub(crate) json: bool,
    pub(crate) term_grace_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthSection {
    pub(crate) mode: AuthMode,
    pub(crate) keys: PathBuf,
    pub(crate) key_header: String,
    pub(crate) dangerously_serve_everybody: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuthMode {
    Auto,
    ApiKeys,
    Anonymous,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqliteSection {
    pub(crate) synchronous: SynchronousKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SynchronousKind {
    Full,
    Normal,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsSection {
    body_bytes: usize,
    depth: usize,
    parts: usize,
    streams: usize,
    turns: usize,
    send_wait_ms: u64,
    first_event_ms: u64,
    turn_ms: u64,
    cancel_grace_ms: u64,
    turn_updates: u64,
    turn_bytes: u64,
    uncommitted_updates: usize,
    recent_updates: usize,
    recent_bytes: usize,
    keep_alive_ms: u64,
    stream_idle_ms: u64,
    header_read_ms: u64,
    body_read_ms: u64,
    lease_ms: u64,
    shutdown_grace_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdempotencySection {
    window_ms: u64,
    pub(crate) message_ids: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetentionSection {
    tasks_hours: u64,
    logs_hours: u64,
    max_finished: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSection {
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What flags say; `None` where a flag is not given.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Overrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<AgentKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<TransportKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exec: Option<ExecOverrides>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<AuthOverrides>,
}

/// What flags say of `[exec]`.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct ExecOverrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<bool>,
}

/// What flags say of `[auth]`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AuthOverrides {
    pub(crate) dangerously_serve_everybody: bool,
}

impl Config {
    /// Loads what is in effect.
    ///
    /// # Errors
    /// Where a file can't be read, a key is unknown, or a value does not fit; it names the key
    /// and where it came from.
    pub(crate) fn load(file: Option<&Path>, flags: &Overrides) -> Result<Self, CommandError> {
        let reference: Dict = Figment::from(Toml::string(REFERENCE))
            .extract()
            .map_err(wrong)?;
        let mut figment = Figment::from(Toml::string(REFERENCE));
        if let Some(file) = file {
            if !file.is_file() {
                let text = format!("there is no configuration file {}", file.display());
                return Err(CommandError::usage(text));
            }
            figment = figment.merge(Toml::file_exact(file));
        }
        let config: Self = figment
            .merge(Environment::new(&reference))
            .merge(Serialized::defaults(flags))
            .extract()
            .map_err(wrong)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), CommandError> {
        let limits = &self.limits;
        let complaint = if self.agent == AgentKind::Exec && self.exec.command.is_empty() {
            "agent is exec but exec.command is empty: say which command, as --exec COMMAND… or \
             exec.command"
        } else if !(1..=120).contains(&limits.depth) {
            "limits.depth must be 1 to 120"
        } else if limits.parts == 0 || limits.body_bytes == 0 {
            "limits.parts and limits.body_bytes must be at least 1"
        } else if limits.streams == 0 || limits.turns == 0 || limits.uncommitted_updates == 0 {
            "limits.streams, limits.turns and limits.uncommitted_updates must be at least 1"
        } else if limits.lease_ms < 300 || limits.keep_alive_ms == 0 {
            "limits.lease_ms must be at least 300 and limits.keep_alive_ms at least 1"
        } else if self.exec.term_grace_ms >= limits.cancel_grace_ms {
            "exec.term_grace_ms must be less than limits.cancel_grace_ms"
        } else if self.card.provider_organization.is_empty() != self.card.provider_url.is_empty() {
            "card.provider_organization and card.provider_url go together"
        } else {
            return Ok(());
        };
        Err(wrong(complaint))
    }

    /// The data folder in effect.
    pub(crate) fn data(&self) -> PathBuf {
        if !self.data.as_os_str().is_empty() {
            return self.data.clone();
        }
        let absolute = |name: &str| {
            env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        absolute("XDG_DATA_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
            .map_or_else(
                || PathBuf::from("nuncio-data"),
                |folder| folder.join("nuncio"),
            )
    }

    /// The file of API keys in effect.
    pub(crate) fn keys(&self) -> PathBuf {
        if self.auth.keys.as_os_str().is_empty() {
            self.data().join("keys.json")
        } else {
            self.auth.keys.clone()
        }
    }

    /// The store in effect.
    ///
    /// # Errors
    /// Where it is of no known kind.
    pub(crate) fn store(&self) -> Result<StoreKind, CommandError> {
        match self.store.split_once(':') {
            None if self.store.is_empty() => Ok(StoreKind::Sqlite(self.data().join("nuncio.db"))),
            None if self.store == "memory" => Ok(StoreKind::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(StoreKind::Sqlite(path.into())),
            _ => Err(CommandError::usage(format!(
                "store {:?} is of no known kind: say memory or sqlite:PATH",
                self.store
            ))),
        }
    }

    /// The transport in effect.
    pub(crate) fn transport(&self) -> Transport {
        match self.transport {
            TransportKind::Evented => Transport::Evented,
            TransportKind::Inline => Transport::Inline,
        }
    }

    /// The card's form in effect.
    pub(crate) fn card_form(&self) -> CardForm {
        match self.card.versions {
            CardVersions::Both => CardForm::Both,
            CardVersions::V1_0 => CardForm::V1_0,
            CardVersions::V0_3 => CardForm::V0_3,
        }
    }

    /// How safely SQLite writes.
    pub(crate) fn synchronous(&self) -> Synchronous {
        match self.sqlite.synchronous {
            SynchronousKind::Full => Synchronous::Full,
            SynchronousKind::Normal => Synchronous::Normal,
        }
    }

    /// The server's limits.
    pub(crate) fn limits(&self) -> Limits {
        let ms = Duration::from_millis;
        let l = &self.limits;
        Limits {
            body_bytes: l.body_bytes,
            depth: l.depth,
            parts: l.parts,
            streams: l.streams,
            turns: l.turns,
            send_wait: ms(l.send_wait_ms),
            first_event: ms(l.first_event_ms),
            turn: ms(l.turn_ms),
            cancel_grace: ms(l.cancel_grace_ms),
            turn_updates: l.turn_updates,
            turn_bytes: l.turn_bytes,
            uncommitted_updates: l.uncommitted_updates,
            recent_updates: l.recent_updates,
            recent_bytes: l.recent_bytes,
            keep_alive: ms(l.keep_alive_ms),
            stream_idle: ms(l.stream_idle_ms),
            header_read: ms(l.header_read_ms),
            body_read: ms(l.body_read_ms),
            lease: ms(l.lease_ms),
            idempotency_window: ms(self.idempotency.window_ms),
            shutdown_grace: ms(l.shutdown_grace_ms),
        }
    }

    /// How long finished tasks are kept.
    pub(crate) fn retention(&self) -> RetentionPolicy {
        let hours = |n: u64| (n > 0).then(|| Duration::from_secs(n.saturating_mul(3600)));
        RetentionPolicy {
            tasks: hours(self.retention.tasks_hours),
            logs: hours(self.retention.logs_hours),
            max_finished: Some(self.retention.max_finished).filter(|n| *n > 0),
        }
    }
}

fn wrong(error: impl std::fmt::Display) -> CommandError {
    CommandError::usage(format!("the configuration is wrong: {error}"))
}

/// Where tasks live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite(PathBuf),
}

/// The `NUNCIO_…` variables that name a key of the reference. An underscore stands both for a
/// dot and for itself, so it is the keys that are looked for among the variables. Text keys take
/// a variable's value as it is (`1.0` is no number there); the others read it as a TOML value.
struct Environment(Dict);

impl Environment {
    fn new(reference: &Dict) -> Self {
        Self(variables("NUNCIO", reference))
    }
}

fn variables(prefix: &str, reference: &Dict) -> Dict {
    let mut found = Dict::new();
    for (name, default) in reference {
        let variable = format!("{prefix}_{}", name.to_ascii_uppercase());
        let value = match default {
            Value::Dict(_, inner) => Some(Value::from(variables(&variable, inner))),
            Value::String(..) => env::var(&variable).ok().map(Value::from),
            _ => env::var(&variable).ok().map(toml_value),
        };
        if let Some(value) = value {
            found.insert(name.clone(), value);
        }
    }
    found
}

/// A text read as a TOML value. What is none stays text, and is refused where its key's type is
/// known.
fn toml_value(text: String) -> Value {
    let read = Figment::from(Toml::string(&format!("value = {text}"))).extract_inner("value");
    read.unwrap_or_else(|_| Value::from(text))
}

impl Provider for Environment {
    fn metadata(&self) -> Metadata {
        Metadata::named("NUNCIO_ environment variable(s)")
            .interpolater(|_, keys| format!("NUNCIO_{}", keys.join("_").to_ascii_uppercase()))
    }

    fn data(&self) -> Result<figment::value::Map<Profile, Dict>, figment::Error> {
        Ok([(Profile::Default, self.0.clone())].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use figment::Jail;

    #[test]
    fn the_reference_is_the_default() {
        let config = Config::load(None, &Overrides::default()).unwrap();
        assert_eq!(config.limits(), Limits::default());
        assert_eq!(config.retention(), RetentionPolicy::default());
        assert_eq!(config.transport(), Transport::default());
    }

    #[test]
    #[expect(clippy::result_large_err, reason = "the jail's signature")]
    fn every_key_can_be_set_by_a_variable() {
        Jail::expect_with(|jail| {
            let reference: Dict = Figment::from(Toml::string(REFERENCE)).extract()?;
            set_all(jail, "NUNCIO", &reference);
            assert_eq!(Environment::new(&reference).0, reference);
            Ok(())
        });
    }

    fn set_all(jail: &mut Jail, prefix: &str, dict: &Dict) {
        for (name, value) in dict {
            let variable = format!("{prefix}_{}", name.to_ascii_uppercase());
            let text = match value {
                Value::Dict(_, inner) => {
                    set_all(jail, &variable, inner);
                    continue;
                }
                Value::String(_, text) => text.clone(),
                Value::Bool(_, on) => on.to_string(),
                Value::Num(..) => value.to_i128().expect("all numbers are whole").to_string(),
                _ => "[]".into(),
            };
            jail.set_env(variable, text);
        }
    }

    #[test]
    #[expect(clippy::result_large_err, reason = "the jail's signature")]
    fn variables_reach_every_section() {
        Jail::expect_with(|jail| {
            jail.set_env("NUNCIO_CARD_VERSIONS", "1.0");
            jail.set_env("NUNCIO_LIMITS_BODY_BYTES", "77");
            jail.set_env("NUNCIO_LISTEN", "127.0.0.1:0");
            jail.set_env("NUNCIO_EXEC_COMMAND", r#"["cat", "-u"]"#);
            jail.set_env("NUNCIO_BASE_URL", "https://agent.example/");
            jail.set_env("NUNCIO_API_KEY", "not a key of the configuration");
            let config = Config::load(None, &Overrides::default()).unwrap();
            assert_eq!(config.limits().body_bytes, 77);
            assert_eq!(config.listen.port(), 0);
            assert_eq!(config.exec.command, ["cat", "-u"]);
            assert_eq!(config.base_url, "https://agent.example/");
            Ok(())
        });
    }

    #[test]
    #[expect(clippy::result_large_err, reason = "the jail's signature")]
    fn a_file_then_the_environment_then_flags() {
        Jail::expect_with(|jail| {
            jail.create_file("n.toml", "agent = \"tck\"\nthreads = 1\nstore = \"memory\"")?;
            jail.set_env("NUNCIO_THREADS", "2");
            jail.set_env("NUNCIO_STORE", "sqlite:a.db");
            let flags = Overrides {
                store: Some("sqlite:b.db".into()),
                ..Overrides::default()
            };
            let config = Config::load(Some(Path::new("n.toml")), &flags).unwrap();
            assert_eq!(config.agent, AgentKind::Tck);
            assert_eq!(config.threads, 2);
            assert_eq!(config.store().unwrap(), StoreKind::Sqlite("b.db".into()));
            Ok(())
        });
    }

    #[test]
    #[expect(clippy::result_large_err, reason = "the jail's signature")]
    fn what_is_wrong_is_named() {
        Jail::expect_with(|jail| {
            for (text, named) in [
                ("lisen = 1", "lisen"),
                ("[limits]\nbody_bytes = \"many\"", "body_bytes"),
                ("[limits]\ndepth = 4000", "limits.depth"),
                ("agent = \"exec\"", "exec.command"),
                ("agent = \"robot\"", "robot"),
            ] {
                jail.create_file("n.toml", text)?;
                let error = Config::load(Some(Path::new("n.toml")), &Overrides::default())
                    .unwrap_err()
                    .to_string();
                assert!(error.contains(named), "{error} names {named}");
            }
            Ok(())
        });
    }
}
