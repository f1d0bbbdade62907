//! The agent card: what an agent says of itself.

use crate::{Metadata, ProtocolVersion};
use std::collections::BTreeMap;

/// An agent's card, free of any version's spelling (A2A 1.0 §4.4.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentCard {
    /// The agent's name.
    pub name: String,
    /// What it does, for people.
    pub description: String,
    /// The agent's own version.
    pub version: String,
    /// Where and how it can be reached, most preferred first. Never empty on the wire.
    pub interfaces: Vec<AgentInterface>,
    /// Who runs it.
    pub provider: Option<AgentProvider>,
    /// Where its documentation is.
    pub documentation_url: Option<String>,
    /// Its picture.
    pub icon_url: Option<String>,
    /// What it can do of the protocol.
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by name.
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of them a caller needs: one of these alternatives.
    pub security: Vec<SecurityRequirement>,
    /// Media types it takes.
    pub default_input_modes: Vec<String>,
    /// Media types it produces.
    pub default_output_modes: Vec<String>,
    /// What it is good at.
    pub skills: Vec<AgentSkill>,
    /// Signatures over the card.
    pub signatures: Vec<CardSignature>,
}

/// One way to reach an agent (A2A 1.0 §4.4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    /// The address.
    pub url: String,
    /// How requests are carried.
    pub binding: ProtocolBinding,
    /// The version spoken there, such as `1.0`. Text, since other agents may speak versions
    /// this crate does not know.
    pub version: String,
    /// The tenant to name in requests.
    pub tenant: Option<String>,
}

impl AgentInterface {
    /// An interface of a version that this crate speaks.
    #[must_use]
    pub fn new(url: impl Into<String>, binding: ProtocolBinding, version: ProtocolVersion) -> Self {
        Self {
            url: url.into(),
            binding,
            version: version.as_str().to_owned(),
            tenant: None,
        }
    }
}

/// How requests are carried.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProtocolBinding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// HTTP+JSON, also called REST.
    HttpJson,
    /// gRPC.
    Grpc,
    /// A binding of somebody else's.
    Other(String),
}

impl ProtocolBinding {
    /// As cards write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for ProtocolBinding {
    fn from(name: &str) -> Self {
        match name {
            "JSONRPC" => Self::JsonRpc,
            "HTTP+JSON" => Self::HttpJson,
            "GRPC" => Self::Grpc,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Who runs an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProvider {
    /// The organization's name.
    pub organization: String,
    /// Its address.
    pub url: String,
}

/// What an agent can do of the protocol (A2A 1.0 §4.4.3). `None`: it does not say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentCapabilities {
    /// Streams.
    pub streaming: Option<bool>,
    /// Push notifications.
    pub push_notifications: Option<bool>,
    /// Whether there is an extended card (0.3: `supportsAuthenticatedExtendedCard` of the card).
    pub extended_card: Option<bool>,
    /// 0.3 only: whether state transitions are kept in the history.
    pub state_transition_history: Option<bool>,
    /// Extensions it supports.
    pub extensions: Vec<AgentExtension>,
}

/// An extension that an agent supports (A2A 1.0 §4.4.4).
#[derive(Debug, Clone, PartialEq)]
pub struct AgentExtension {
    /// What it is called.
    pub uri: String,
    /// How the agent uses it.
    pub description: Option<String>,
    /// Whether callers must activate it.
    pub required: bool,
    /// Its settings.
    pub params: Metadata,
}

/// Something an agent is good at (A2A 1.0 §4.4.5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSkill {
    /// Unique within the card.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Things one might say to use it.
    pub examples: Vec<String>,
    /// Media types it takes, where they differ from the card's.
    pub input_modes: Vec<String>,
    /// Media types it produces, where they differ from the card's.
    pub output_modes: Vec<String>,
    /// What a caller needs to use it.
    pub security: Vec<SecurityRequirement>,
}

/// Schemes that must all be satisfied together, each with the scopes it needs.
pub type SecurityRequirement = BTreeMap<String, Vec<String>>;

/// A way to authenticate (A2A 1.0 §4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A key in a header, a query parameter or a cookie.
    ApiKey {
        /// For people.
        description: Option<String>,
        /// `header`, `query` or `cookie`.
        location: String,
        /// The header's, parameter's or cookie's name.
        name: String,
    },
    /// An HTTP authentication scheme.
    Http {
        /// For people.
        description: Option<String>,
        /// The scheme, such as `Bearer`.
        scheme: String,
        /// What a bearer token looks like, such as `JWT`.
        bearer_format: Option<String>,
    },
    /// OAuth 2.
    OAuth2 {
        /// For people.
        description: Option<String>,
        /// The flows offered.
        flows: Box<OAuthFlows>,
        /// RFC 8414 metadata.
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// For people.
        description: Option<String>,
        /// The discovery document.
        url: String,
    },
    /// Mutual TLS.
    MutualTls {
        /// For people.
        description: Option<String>,
    },
}

/// The OAuth flows offered. 1.0 writes the first that is set, in the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthFlows {
    /// Authorization code.
    pub authorization_code: Option<OAuthFlow>,
    /// Client credentials.
    pub client_credentials: Option<OAuthFlow>,
    /// Device code (1.0 only).
    pub device_code: Option<OAuthFlow>,
    /// Implicit (deprecated).
    pub implicit: Option<OAuthFlow>,
    /// Password (deprecated).
    pub password: Option<OAuthFlow>,
}

/// One OAuth flow; which addresses it has depends on which flow it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthFlow {
    /// Where the user authorizes.
    pub authorization_url: Option<String>,
    /// Where a device asks for its code.
    pub device_authorization_url: Option<String>,
    /// Where tokens come from.
    pub token_url: Option<String>,
    /// Where they are refreshed.
    pub refresh_url: Option<String>,
    /// The scopes, and what each allows.
    pub scopes: BTreeMap<String, String>,
    /// Whether PKCE is needed.
    pub pkce_required: bool,
}

/// A JSON Web Signature over the card (A2A 1.0 §8.4).
#[derive(Debug, Clone, PartialEq)]
pub struct CardSignature {
    /// The protected header, base64url.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// The unprotected header.
    pub header: Metadata,
}
