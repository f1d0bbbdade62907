//! The agent card, in 0.3's form, in 1.0's, and in one that clients of both read.
//!
//! | | 0.3 | 1.0 |
//! |---|---|---|
//! | where | `url`, `preferredTransport`, `additionalInterfaces` | `supportedInterfaces` |
//! | needs | `security: [{scheme: [scopes]}]` | `securityRequirements: [{schemes: {scheme: {list: [scopes]}}}]` |
//! | scheme | `{type: "apiKey", in, name}` | `{apiKeySecurityScheme: {location, name}}` |
//! | extended card | `supportsAuthenticatedExtendedCard` | `capabilities.extendedAgentCard` |
//!
//! No member means one thing in one version and another in the other, so [`CardForm::Both`] is
//! the members of both, down to the single scheme. 0.3's address is the first interface of
//! version 0.3, and there is none where the agent does not speak 0.3.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::Card;

use super::DecodeError;
use super::read::{At, Mode, Reader};
use super::write::to_bytes;
use crate::{AgentCard, ProtocolVersion};
use serde_json::Value;

/// Which versions' clients a card is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardForm {
    /// Exactly 0.3's card; it has only the interfaces of version 0.3.
    V0_3,
    /// Exactly 1.0's card; its interfaces name their versions, 0.3 among them.
    V1_0,
    /// The members of both.
    Both,
}

impl CardForm {
    fn has_v03(self) -> bool {
        self != Self::V1_0
    }

    fn has_v1(self) -> bool {
        self != Self::V0_3
    }
}

impl From<ProtocolVersion> for CardForm {
    fn from(version: ProtocolVersion) -> Self {
        match version {
            ProtocolVersion::V0_3 => Self::V0_3,
            ProtocolVersion::V1_0 => Self::V1_0,
        }
    }
}

/// Writes a card.
#[must_use]
pub fn encode(card: &AgentCard, form: CardForm) -> Vec<u8> {
    to_bytes(&Card(card, form))
}

/// Reads a card in any of the forms.
///
/// # Errors
/// [`DecodeError`] where it has no name or no interface, or a member has the wrong type.
pub fn decode(card: Value) -> Result<AgentCard, DecodeError> {
    let mut reader = Reader::new(ProtocolVersion::V1_0, Mode::Answer);
    let card = read(&mut reader, &At::Root("card"), card);
    Ok(reader.finish_first(card)?)
}

fn is_v03(version: &str) -> bool {
    !version.is_empty() && ProtocolVersion::negotiate(Some(version)) == Ok(ProtocolVersion::V0_3)
}

/// A flow's name, and the members it has beside `refreshUrl` and `scopes`.
type FlowShape = (&'static str, &'static [&'static str]);
const AUTHORIZATION_CODE: FlowShape = ("authorizationCode", &["authorizationUrl", "tokenUrl"]);
const CLIENT_CREDENTIALS: FlowShape = ("clientCredentials", &["tokenUrl"]);
const DEVICE_CODE: FlowShape = ("deviceCode", &["deviceAuthorizationUrl", "tokenUrl"]);
const IMPLICIT: FlowShape = ("implicit", &["authorizationUrl"]);
const PASSWORD: FlowShape = ("password", &["tokenUrl"]);
