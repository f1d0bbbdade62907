//! What the caller proves itself with, and to whom.
//!
//! Credentials go to the server that the caller named, and to no other: a card can name an
//! endpoint anywhere, and a key sent there on the card's word would be given away. They are
//! marked as sensitive, and no text of this program holds them.

use super::ClientError;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use nuncio_core::{AgentCard, Secret, SecurityScheme};

/// Headers that the connection is made of.
const NOT_TO_BE_SET: [HeaderName; 3] = [
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
];

/// What a request proves who sent it with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credentials {
    key: Option<Secret>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Where a server takes an API key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum KeyPlace {
    /// `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// A header of its own.
    Header(HeaderName),
}

impl Credentials {
    /// A key, and headers as `Name: value`.
    ///
    /// # Errors
    /// Where a header or the key is none. The text does not repeat it.
    pub(crate) fn new(key: Option<&str>, headers: &[String]) -> Result<Self, ClientError> {
        let usage = |text: &str| ClientError::Usage(text.to_owned());
        if key.is_some_and(|key| HeaderValue::from_str(key).is_err() || key.trim().is_empty()) {
            return Err(usage(
                "the API key is empty or holds characters that no key has",
            ));
        }
        let headers = headers.iter().map(|text| {
            let wanted = || usage("a --header is not of the form 'Name: value'");
            let (name, value) = text.split_once(':').ok_or_else(wanted)?;
            let name: HeaderName = name.trim().parse().map_err(|_| wanted())?;
            if NOT_TO_BE_SET.contains(&name) {
                return Err(usage(&format!("the header {name} can't be set")));
            }
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| wanted())?;
            value.set_sensitive(true);
            Ok((name, value))
        });
        let key = key.map(|key| Secret::new(key.trim()));
        Ok(Self {
            key,
            headers: headers.collect::<Result<_, _>>()?,
        })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.key.is_none() && self.headers.is_empty()
    }

    /// Whether there is a key.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// All but the key.
    pub(crate) fn without_key(&self) -> Self {
        Self {
            key: None,
            headers: self.headers.clone(),
        }
    }

    /// Puts them on a request. A header of the caller's takes the place of the program's own.
    pub(crate) fn apply(&self, place: &KeyPlace, headers: &mut HeaderMap) {
        if let Some(key) = &self.key {
            let (name, text) = match place {
                KeyPlace::Bearer => (header::AUTHORIZATION, format!("Bearer {}", key.expose())),
                KeyPlace::Header(name) => (name.clone(), key.expose().to_owned()),
            };
            // It was looked at when it was taken.
            if let Ok(mut value) = HeaderValue::from_str(&text) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        for (name, _) in &self.headers {
            headers.remove(name);
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
    }
}

impl KeyPlace {
    /// Where a card says that its agent takes keys: a bearer token where it takes one or does
    /// not say, else the header that it names.
    pub(crate) fn of(card: &AgentCard) -> Self {
        let mut own = None;
        for scheme in card.security_schemes.values() {
            match scheme {
                SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => {
                    return Self::Bearer;
                }
                SecurityScheme::ApiKey { location, name, .. } if location == "header" => {
                    own = own.or_else(|| name.parse().ok());
                }
                _ => {}
            }
        }
        let reserved = [header::HOST, header::CONTENT_TYPE, header::ACCEPT];
        match own {
            Some(name) if !NOT_TO_BE_SET.contains(&name) && !reserved.contains(&name) => {
                Self::Header(name)
            }
            _ => Self::Bearer,
        }
    }
}

/// Whether two addresses are the same server's: scheme, host and port. The names of the own
/// machine are one and the same.
pub(crate) fn same_server(a: &Uri, b: &Uri) -> bool {
    let host = |uri: &Uri| {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        if is_loopback(&host) {
            "localhost".to_owned()
        } else {
            host
        }
    };
    a.scheme_str() == b.scheme_str() && host(a) == host(b) && port(a) == port(b)
}

/// Whether a host, as an address has it, is the own machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn port(uri: &Uri) -> u16 {
    let default = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    uri.port_u16().unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn a_server_is_told_apart_by_scheme_host_and_port() {
        for (a, b, same) in [
            ("https://a.example", "https://A.example:443/rpc", true),
            ("http://localhost:8080", "http://127.0.0.1:8080/", true),
            ("http://[::1]:8080", "http://localhost:8080/", true),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://a.example:8443", false),
            ("https://a.example", "https://a.example.evil.example", false),
            ("http://127.0.0.1:1", "http://127.0.0.1:2", false),
        ] {
            assert_eq!(same_server(&uri(a), &uri(b)), same, "{a} and {b}");
        }
    }

    #[test]
    fn a_key_goes_where_the_card_says() {
        let key = |name: &str| SecurityScheme::ApiKey {
            description: None,
            location: "header".into(),
            name: name.into(),
        };
        let bearer = SecurityScheme::Http {
            description: None,
            scheme: "bearer".into(),
            bearer_format: None,
        };
        let card = |schemes: Vec<SecurityScheme>| AgentCard {
            security_schemes: (0..).map(|n: u8| n.to_string()).zip(schemes).collect(),
            ..AgentCard::default()
        };
        let own = KeyPlace::Header(HeaderName::from_static("x-api-key"));
        assert_eq!(KeyPlace::of(&card(vec![])), KeyPlace::Bearer);
        assert_eq!(KeyPlace::of(&card(vec![key("X-API-Key")])), own);
        assert_eq!(
            KeyPlace::of(&card(vec![key("X-API-Key"), bearer])),
            KeyPlace::Bearer
        );
        assert_eq!(
            KeyPlace::of(&card(vec![key("Transfer-Encoding")])),
            KeyPlace::Bearer
        );
        assert_eq!(
            KeyPlace::of(&card(vec![key("no header")])),
            KeyPlace::Bearer
        );
    }

    #[test]
    fn secrets_are_not_in_texts() {
        let given = [
            "Authorization: Basic hunter2".to_owned(),
            "X-A: hunter2".to_owned(),
        ];
        let credentials = Credentials::new(Some("hunter2"), &given).unwrap();
        assert!(!format!("{credentials:?}").contains("hunter2"));
        let mut headers = HeaderMap::new();
        credentials.apply(&KeyPlace::Bearer, &mut headers);
        assert_eq!(headers[header::AUTHORIZATION], "Basic hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
        for wrong in [
            "hunter2",
            "hunter2 x: y",
            "Content-Length: hunter2",
            "A: hunter2\u{1}",
        ] {
            let error = Credentials::new(None, &[wrong.to_owned()])
                .unwrap_err()
                .to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = Credentials::new(Some("hunter2\n"), &[])
            .unwrap_err()
            .to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
