//! From command line arguments to a client.

use super::{
    Client, ClientError, Target,
    credentials::{Credentials, KeyPlace, same_server},
    discover::{self, Found, Source},
    http::Http,
    within,
};
use http::{Uri, uri::Authority};
use nuncio_core::{AgentCard, ProtocolVersion};
use std::{
    net::IpAddr,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

/// How long a card may take.
const CARD_WITHIN: Duration = Duration::from_secs(30);

/// Arguments of every command that calls a server.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ConnectArgs {
    /// An API key, sent as the agent's card says it takes one.
    #[arg(
        long,
        value_name = "KEY",
        env = "NUNCIO_API_KEY",
        hide_env_values = true
    )]
    pub(crate) api_key: Option<String>,
    /// A header for every request, as 'Name: value'; can be given several times.
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
}

/// A version of the protocol, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// A2A 0.3.
    #[value(name = "0.3")]
    V0_3,
    /// A2A 1.0.
    #[value(name = "1.0")]
    V1_0,
}

impl From<Protocol> for ProtocolVersion {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::V0_3 => Self::V0_3,
            Protocol::V1_0 => Self::V1_0,
        }
    }
}

/// An agent that was found: clients for it can be made.
#[derive(Debug)]
pub(crate) struct Connection {
    http: Arc<Http>,
    credentials: Credentials,
    agent: Agent,
}

#[derive(Debug)]
enum Agent {
    /// The user named the endpoint.
    Endpoint(Uri),
    /// Its card does.
    Card {
        card: Box<AgentCard>,
        address: Option<Uri>,
    },
}

impl ConnectArgs {
    /// Looks for the card that belongs to a URL.
    ///
    /// # Errors
    /// Where there is none, or it can't be had.
    pub(crate) async fn find(
        &self,
        url: &str,
        version: Option<ProtocolVersion>,
    ) -> Result<Found, ClientError> {
        let source = Source::parse(url)?;
        let credentials = self.credentials()?;
        let http = Http::new();
        within(
            CARD_WITHIN,
            discover::find(&http, &source, &credentials, version),
        )
        .await
    }

    /// Finds the agent at a URL.
    ///
    /// # Errors
    /// Where there is none.
    pub(crate) async fn connect(&self, url: &str) -> Result<Connection, ClientError> {
        let credentials = self.credentials()?;
        let source = Source::parse(url)?;
        let http = Http::new();
        let found = within(
            CARD_WITHIN,
            discover::find(&http, &source, &credentials, None),
        )
        .await?;
        let card = Box::new(found.card()?);
        let agent = Agent::Card {
            card,
            address: found.address,
        };
        Ok(Connection {
            http: Arc::new(http),
            credentials,
            agent,
        })
    }

    /// Takes an endpoint as it is, without a card.
    ///
    /// # Errors
    /// Where it is no URL.
    pub(crate) fn endpoint(&self, url: &str) -> Result<Connection, ClientError> {
        let agent = Agent::Endpoint(discover::address(url)?);
        Ok(Connection {
            http: Arc::new(Http::new()),
            credentials: self.credentials()?,
            agent,
        })
    }

    fn credentials(&self) -> Result<Credentials, ClientError> {
        // A variable that is set to nothing is not set.
        let key = self.api_key.as_deref().filter(|key| !key.is_empty());
        Credentials::new(key, &self.headers)
    }
}

impl Connection {
    /// A client for a version, or for the newest there is.
    ///
    /// # Errors
    /// Where the card names no interface that can be called, or one to which the user's
    /// credentials must not go.
    pub(crate) fn client(&self, version: Option<ProtocolVersion>) -> Result<Client, ClientError> {
        let (target, place, streams) = match &self.agent {
            Agent::Endpoint(url) => {
                let version = version.unwrap_or(ProtocolVersion::V1_0);
                (
                    Target {
                        url: url.clone(),
                        version,
                        tenant: None,
                    },
                    KeyPlace::Bearer,
                    None,
                )
            }
            Agent::Card { card, address } => {
                let mut target = discover::choose(card, version)?;
                if let Some(address) = address {
                    target.url = reachable(address, target.url);
                    self.check(address, &target.url)?;
                }
                (target, KeyPlace::of(card), card.capabilities.streaming)
            }
        };
        Ok(Client {
            http: Arc::clone(&self.http),
            target,
            credentials: self.credentials.clone(),
            place,
            streams,
            next_id: AtomicI64::new(1),
        })
    }

    /// Credentials are for the server that the user named.
    fn check(&self, named: &Uri, endpoint: &Uri) -> Result<(), ClientError> {
        if self.credentials.is_empty() || same_server(named, endpoint) {
            return Ok(());
        }
        Err(ClientError::Usage(format!(
            "the card at {named} names an endpoint on another server, and credentials are not \
             sent there on its word: if they are for it, say --endpoint {endpoint}"
        )))
    }
}

/// The endpoint, with the card's host where its own is the address that means "all addresses":
/// what a server that was not told its name puts in its card, and nowhere one can connect to.
fn reachable(card: &Uri, endpoint: Uri) -> Uri {
    let host = endpoint.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if !bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
        return endpoint;
    }
    let port = endpoint
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let authority = format!("{}{port}", card.host().unwrap_or_default()).parse::<Authority>();
    let mut parts = endpoint.clone().into_parts();
    parts.authority = authority.ok();
    Uri::from_parts(parts).unwrap_or(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_core::{AgentInterface, ProtocolBinding};

    fn connection(key: Option<&str>, card_at: Option<&str>, endpoint: &str) -> Connection {
        let interface =
            AgentInterface::new(endpoint, ProtocolBinding::JsonRpc, ProtocolVersion::V1_0);
        let card = AgentCard {
            interfaces: vec![interface],
            ..AgentCard::default()
        };
        Connection {
            http: Arc::new(Http::new()),
            credentials: Credentials::new(key, &[]).unwrap(),
            agent: Agent::Card {
                card: Box::new(card),
                address: card_at.map(|at| at.parse().unwrap()),
            },
        }
    }

    #[test]
    fn a_card_cannot_have_credentials_sent_elsewhere() {
        let card = Some("https://a.example/.well-known/agent-card.json");
        let client = |key, endpoint| connection(key, card, endpoint).client(None).map(|_| ());
        assert!(client(Some("k"), "https://a.example/rpc").is_ok());
        assert!(client(None, "https://b.example/rpc").is_ok());
        for endpoint in [
            "https://b.example/rpc",
            "http://a.example/rpc",
            "https://a.example:1/",
        ] {
            let error = client(Some("k"), endpoint).unwrap_err().to_string();
            assert!(error.contains(&format!("--endpoint {endpoint}")), "{error}");
        }
        // A file is the user's own word.
        assert!(
            connection(Some("k"), None, "https://b.example/")
                .client(None)
                .is_ok()
        );
    }

    #[test]
    fn all_addresses_are_where_the_card_is() {
        let of = |card: &str, endpoint: &str| {
            reachable(&card.parse().unwrap(), endpoint.parse().unwrap()).to_string()
        };
        assert_eq!(
            of("http://10.0.0.5:8080/x", "http://0.0.0.0:8080/"),
            "http://10.0.0.5:8080/"
        );
        assert_eq!(
            of("http://[::1]:1/x", "http://[::]:2/rpc"),
            "http://[::1]:2/rpc"
        );
        assert_eq!(
            of("http://a.example/x", "http://b.example/rpc"),
            "http://b.example/rpc"
        );
    }
}
