//! From what the user typed to an agent's card, and from the card to the address to call.
//!
//! A card is at `BASE/.well-known/agent-card.json`; agents from before 0.3 have it at
//! `agent.json` beside that. An address or a file name that ends in `.json` is a card itself.
//! API keys are held back until a card is refused without one: most cards are for everybody.

use super::{
    ClientError,
    credentials::{Credentials, KeyPlace, is_loopback},
    http::{self as transport, Http},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use nuncio_core::{AgentCard, AgentInterface, ProtocolBinding, ProtocolVersion, wire};
use serde_json::Value;
use std::path::PathBuf;

/// Where a card is, below an agent's base address; the second is the older place.
const PLACES: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
/// The largest card that is read.
const MAX_CARD_BYTES: usize = 4 << 20;

/// Where to look for a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Below this address.
    Base(Uri),
    /// At this address.
    Address(Uri),
    /// In this file.
    File(PathBuf),
}

/// A card as it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Byte for byte as it came.
    pub(crate) raw: String,
    /// As JSON.
    pub(crate) json: Value,
    /// Where it came from, unless that was a file.
    pub(crate) address: Option<Uri>,
    /// The same for people.
    pub(crate) place: String,
}

/// Where to call an agent, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The JSON-RPC endpoint.
    pub(crate) url: Uri,
    /// The version to speak there.
    pub(crate) version: ProtocolVersion,
    /// The tenant to name in requests.
    pub(crate) tenant: Option<String>,
}

/// Reads an address. One without a scheme is `http` on the own machine and `https` elsewhere.
///
/// # Errors
/// Where it is none, is neither http nor https, or holds a password.
pub(crate) fn address(text: &str) -> Result<Uri, ClientError> {
    let usage = |text: String| ClientError::Usage(text);
    let whole = if text.contains("://") {
        text.to_owned()
    } else {
        let authority = text.split('/').next().unwrap_or_default();
        let host = match authority
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((host, _port)) => host,
            None => authority.split(':').next().unwrap_or_default(),
        };
        let scheme = if is_loopback(host) { "http" } else { "https" };
        format!("{scheme}://{text}")
    };
    let uri: Uri = whole
        .parse()
        .map_err(|error| usage(format!("{text:?} is no URL: {error}")))?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        let text = "a URL must not hold a user name or password: use --api-key or --header";
        return Err(usage(text.into()));
    }
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(uri),
        _ => Err(usage(format!("{text:?} is no http or https URL"))),
    }
}

impl Source {
    /// What the user means.
    ///
    /// # Errors
    /// See [`address`].
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::File(path.into()));
        }
        if !text.contains("://") && PathBuf::from(text).is_file() {
            return Ok(Self::File(text.into()));
        }
        let uri = address(text)?;
        Ok(if uri.path().ends_with(".json") {
            Self::Address(uri)
        } else {
            Self::Base(uri)
        })
    }
}

/// The addresses at which a base's card may be, in the order in which to try them.
fn places(base: &Uri) -> Vec<Uri> {
    let server = transport::server_of(base);
    let below = base.path().trim_end_matches('/');
    PLACES
        .iter()
        .filter_map(|place| format!("{server}{below}{place}").parse().ok())
        .collect()
}

/// Finds a card. With a version it is asked for in that version's form.
///
/// # Errors
/// Where there is none, or it can't be had.
pub(crate) async fn find(
    http: &Http,
    source: &Source,
    credentials: &Credentials,
    version: Option<ProtocolVersion>,
) -> Result<Found, ClientError> {
    let addresses = match source {
        Source::File(path) => {
            let place = path.display().to_string();
            let raw = std::fs::read_to_string(path)
                .map_err(|error| ClientError::Usage(format!("{place}: {error}")))?;
            let json = parse(&place, &raw)?;
            return Ok(Found {
                raw,
                json,
                address: None,
                place,
            });
        }
        Source::Address(address) => vec![address.clone()],
        Source::Base(base) => places(base),
    };
    let mut first = None;
    for address in addresses {
        match fetch(http, &address, credentials, version).await {
            // The place is not known there, or something else is.
            Err(error @ ClientError::NotA2a { .. }) => first = first.or(Some(error)),
            answer => return answer,
        }
    }
    Err(first.unwrap_or_else(|| ClientError::Usage("there is nowhere to look for a card".into())))
}

async fn fetch(
    http: &Http,
    address: &Uri,
    credentials: &Credentials,
    version: Option<ProtocolVersion>,
) -> Result<Found, ClientError> {
    let mut response = http
        .send(request(address, &credentials.without_key(), version))
        .await?;
    if is_refusal(response.status()) && credentials.has_key() {
        response = http.send(request(address, credentials, version)).await?;
    }
    let place = address.to_string();
    check(&response, address, credentials)?;
    let body = transport::read(response.into_body(), MAX_CARD_BYTES).await?;
    let raw =
        String::from_utf8(body.into()).map_err(|_| not_a2a(&place, "the card is no UTF-8"))?;
    let json = parse(&place, &raw)?;
    Ok(Found {
        raw,
        json,
        address: Some(address.clone()),
        place,
    })
}

fn request(
    address: &Uri,
    credentials: &Credentials,
    version: Option<ProtocolVersion>,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = address.clone();
    let headers: &mut HeaderMap = request.headers_mut();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(version) = version {
        headers.insert(
            ProtocolVersion::HEADER,
            HeaderValue::from_static(version.as_str()),
        );
    }
    credentials.apply(&KeyPlace::Bearer, headers);
    request
}

/// Whether a status is about credentials.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Refuses an answer that is no success.
///
/// # Errors
/// That it is none, and what it is.
pub(crate) fn check(
    response: &Response<Incoming>,
    address: &Uri,
    credentials: &Credentials,
) -> Result<(), ClientError> {
    let status = response.status();
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    if is_refusal(status) {
        let challenge = header(header::WWW_AUTHENTICATE);
        return Err(ClientError::Unauthorized {
            address: transport::server_of(address),
            status: status.as_u16(),
            problem: if credentials.is_empty() {
                "missing"
            } else {
                "not accepted"
            },
            challenge: challenge
                .map(|text| format!(" ({text})"))
                .unwrap_or_default(),
        });
    }
    if status.is_success() {
        return Ok(());
    }
    let reason = match header(header::LOCATION) {
        Some(to) if status.is_redirection() => {
            format!("HTTP {status}, on to {to}: use that URL if it is the agent's")
        }
        _ => format!("HTTP {status}"),
    };
    Err(not_a2a(&address.to_string(), &reason))
}

fn parse(place: &str, raw: &str) -> Result<Value, ClientError> {
    let json: Value = serde_json::from_str(raw)
        .map_err(|error| not_a2a(place, &format!("the card is no JSON: {error}")))?;
    if json.is_object() {
        Ok(json)
    } else {
        Err(not_a2a(place, "the card is no JSON object"))
    }
}

fn not_a2a(address: &str, reason: &str) -> ClientError {
    ClientError::NotA2a {
        address: address.to_owned(),
        reason: reason.to_owned(),
    }
}

impl Found {
    /// The card, read.
    ///
    /// # Errors
    /// Where it is no card.
    pub(crate) fn card(&self) -> Result<AgentCard, ClientError> {
        wire::card::decode(self.json.clone())
            .map_err(|error| ClientError::unreadable(&self.place, &error))
    }
}

/// The version of an interface, if it is one that this client speaks.
pub(crate) fn version_of(interface: &AgentInterface) -> Option<ProtocolVersion> {
    match interface.version.trim() {
        "" => None,
        text => ProtocolVersion::negotiate(Some(text)).ok(),
    }
}

/// The interfaces that this client can call: JSON-RPC, of a version it speaks.
pub(crate) fn spoken(card: &AgentCard) -> impl Iterator<Item = (&AgentInterface, ProtocolVersion)> {
    let json_rpc = card
        .interfaces
        .iter()
        .filter(|i| i.binding == ProtocolBinding::JsonRpc);
    json_rpc.filter_map(|interface| Some((interface, version_of(interface)?)))
}

/// Chooses where to call: the newest version there is, and of several interfaces of it the first.
/// A version that is asked for is spoken even where the card does not say that it is, since many
/// cards leave out what their servers know.
///
/// # Errors
/// Where the card has no interface that this client speaks.
pub(crate) fn choose(
    card: &AgentCard,
    wanted: Option<ProtocolVersion>,
) -> Result<Target, ClientError> {
    let chosen = match wanted {
        Some(wanted) => {
            let exact = spoken(card).find(|(_, version)| *version == wanted);
            let any = || {
                card.interfaces
                    .iter()
                    .find(|i| i.binding == ProtocolBinding::JsonRpc)
            };
            exact.or_else(|| any().map(|interface| (interface, wanted)))
        }
        // The first of the greatest.
        None => spoken(card).reduce(|best, next| if next.1 > best.1 { next } else { best }),
    };
    let Some((interface, version)) = chosen else {
        let offered = card
            .interfaces
            .iter()
            .map(|i| format!("{} {}", i.binding.as_str(), i.version));
        let offered = offered.collect::<Vec<_>>().join(", ");
        let reason = format!("it offers {offered}; this client speaks JSONRPC 0.3 and 1.0");
        return Err(not_a2a(&format!("the agent {:?}", card.name), &reason));
    };
    let url = address(&interface.url).map_err(|_| {
        not_a2a(
            &format!("the agent {:?}", card.name),
            &format!("its URL is {:?}", interface.url),
        )
    })?;
    Ok(Target {
        url,
        version,
        tenant: interface.tenant.clone().filter(|t| !t.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_types() {
        let base = |url: &str| Source::Base(url.parse().unwrap());
        let card = |url: &str| Source::Address(url.parse().unwrap());
        for (text, source) in [
            ("http://a.example", base("http://a.example/")),
            ("localhost:8080", base("http://localhost:8080")),
            ("127.0.0.1:8080/a", base("http://127.0.0.1:8080/a")),
            ("[::1]:8080", base("http://[::1]:8080")),
            ("a.example", base("https://a.example")),
            ("a.example/card.json", card("https://a.example/card.json")),
            (
                "https://a.example/x/agent.json?v=1",
                card("https://a.example/x/agent.json?v=1"),
            ),
            (
                "file:///tmp/none.json",
                Source::File("/tmp/none.json".into()),
            ),
        ] {
            assert_eq!(Source::parse(text).unwrap(), source, "{text}");
        }
        for text in [
            "",
            "ftp://a.example",
            "http://",
            "a b",
            "https://me:hunter2@a.example",
        ] {
            let error = Source::parse(text).unwrap_err();
            assert!(matches!(error, ClientError::Usage(_)), "{text}: {error}");
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn a_card_is_below_the_base() {
        let of = |base: &str| {
            let places = places(&base.parse().unwrap());
            places.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let root = [
            "https://a.example/.well-known/agent-card.json",
            "https://a.example/.well-known/agent.json",
        ];
        assert_eq!(of("https://a.example"), root);
        assert_eq!(of("https://a.example/?x=1"), root);
        assert_eq!(
            of("http://a.example:1/b/c/")[0],
            "http://a.example:1/b/c/.well-known/agent-card.json"
        );
    }

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let interfaces = interfaces
            .iter()
            .map(|(url, binding, version)| AgentInterface {
                url: (*url).to_owned(),
                binding: ProtocolBinding::from(*binding),
                version: (*version).to_owned(),
                tenant: None,
            });
        AgentCard {
            name: "a".into(),
            interfaces: interfaces.collect(),
            ..AgentCard::default()
        }
    }

    #[test]
    fn the_newest_version_is_chosen_unless_one_is_asked_for() {
        use ProtocolVersion::{V0_3, V1_0};
        let both = card(&[
            ("http://a/grpc", "GRPC", "1.0"),
            ("http://a/old", "JSONRPC", "0.3.0"),
            ("http://a/new", "JSONRPC", "1.0"),
            ("http://a/other", "JSONRPC", "1.0"),
        ]);
        let chosen = |card: &AgentCard, wanted| {
            choose(card, wanted)
                .map(|t| (t.url.path().to_owned(), t.version))
                .unwrap()
        };
        assert_eq!(chosen(&both, None), ("/new".to_owned(), V1_0));
        assert_eq!(chosen(&both, Some(V0_3)), ("/old".to_owned(), V0_3));
        let old = card(&[("http://a/old", "JSONRPC", "0.3.0")]);
        assert_eq!(chosen(&old, None), ("/old".to_owned(), V0_3));
        assert_eq!(chosen(&old, Some(V1_0)), ("/old".to_owned(), V1_0));
        let strange = card(&[
            ("http://a/x", "JSONRPC", "7.1"),
            ("http://a/y", "JSONRPC", ""),
        ]);
        assert_eq!(chosen(&strange, Some(V0_3)).0, "/x");
        let error = choose(&strange, None).unwrap_err().to_string();
        assert!(error.contains("JSONRPC 7.1"), "{error}");
        assert!(choose(&card(&[("http://a", "HTTP+JSON", "1.0")]), Some(V1_0)).is_err());
        assert!(choose(&card(&[("/rpc", "JSONRPC", "1.0")]), None).is_err());
    }
}
