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

use super::DecodeError;
use super::read::{At, Fields, Mode, Read, Reader, boolean, dictionary, list, string};
use super::write::{Each, Object, object, to_bytes};
use crate::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    CardSignature, OAuthFlow, OAuthFlows, ProtocolBinding, ProtocolVersion, SecurityRequirement,
    SecurityScheme,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

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

/// What 0.3's cards say they are.
const V03_PROTOCOL: &str = "0.3.0";

fn is_v03(version: &str) -> bool {
    !version.is_empty() && ProtocolVersion::negotiate(Some(version)) == Ok(ProtocolVersion::V0_3)
}

/// A card to be written.
pub(super) struct Card<'a>(pub(super) &'a AgentCard, pub(super) CardForm);

impl Serialize for Card<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(card, form) = *self;
        let v03: Vec<&AgentInterface> = card
            .interfaces
            .iter()
            .filter(|interface| is_v03(&interface.version))
            .collect();
        let first_v03 = v03.first().copied();
        let mut o = object(serializer)?;
        // 0.3's schema asks for an address even of an agent that has none for it.
        let speaks_v03 = form == CardForm::V0_3 || form == CardForm::Both && first_v03.is_some();
        if speaks_v03 {
            o.field("protocolVersion", V03_PROTOCOL)?;
        }
        o.field("name", &card.name)?;
        o.field("description", &card.description)?;
        if speaks_v03 {
            o.field("url", first_v03.map_or("", |interface| &interface.url))?;
            o.optional("preferredTransport", first_v03.map(|i| i.binding.as_str()))?;
            o.list("additionalInterfaces", &v03, |interface| {
                V03Interface(interface)
            })?;
        }
        if form.has_v1() {
            o.field("supportedInterfaces", &Each(&card.interfaces, V1Interface))?;
        }
        o.optional("provider", card.provider.as_ref().map(Provider))?;
        o.field("version", &card.version)?;
        o.text("documentationUrl", card.documentation_url.as_ref())?;
        o.text("iconUrl", card.icon_url.as_ref())?;
        o.field("capabilities", &Capabilities(&card.capabilities, form))?;
        if !card.security_schemes.is_empty() {
            o.field("securitySchemes", &Schemes(&card.security_schemes, form))?;
        }
        security(&mut o, &card.security, form)?;
        o.field("defaultInputModes", &card.default_input_modes)?;
        o.field("defaultOutputModes", &card.default_output_modes)?;
        let skills: Vec<Skill<'_>> = card.skills.iter().map(|skill| Skill(skill, form)).collect();
        o.field("skills", &skills)?;
        if form.has_v03() {
            o.optional(
                "supportsAuthenticatedExtendedCard",
                card.capabilities.extended_card,
            )?;
        }
        o.list("signatures", &card.signatures, Signature)?;
        o.end()
    }
}

struct V1Interface<'a>(&'a AgentInterface);

impl Serialize for V1Interface<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("url", &self.0.url)?;
        o.field("protocolBinding", self.0.binding.as_str())?;
        o.field("protocolVersion", &self.0.version)?;
        o.text("tenant", self.0.tenant.as_ref())?;
        o.end()
    }
}

struct V03Interface<'a>(&'a AgentInterface);

impl Serialize for V03Interface<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("url", &self.0.url)?;
        o.field("transport", self.0.binding.as_str())?;
        o.end()
    }
}

struct Provider<'a>(&'a AgentProvider);

impl Serialize for Provider<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("organization", &self.0.organization)?;
        o.field("url", &self.0.url)?;
        o.end()
    }
}

struct Capabilities<'a>(&'a AgentCapabilities, CardForm);

impl Serialize for Capabilities<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(capabilities, form) = *self;
        let mut o = object(serializer)?;
        o.optional("streaming", capabilities.streaming)?;
        o.optional("pushNotifications", capabilities.push_notifications)?;
        if form.has_v03() {
            o.optional(
                "stateTransitionHistory",
                capabilities.state_transition_history,
            )?;
        }
        if form.has_v1() {
            o.optional("extendedAgentCard", capabilities.extended_card)?;
        }
        o.list("extensions", &capabilities.extensions, Extension)?;
        o.end()
    }
}

struct Extension<'a>(&'a AgentExtension);

impl Serialize for Extension<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("uri", &self.0.uri)?;
        o.text("description", self.0.description.as_ref())?;
        o.flag("required", self.0.required)?;
        o.metadata("params", &self.0.params)?;
        o.end()
    }
}

struct Skill<'a>(&'a AgentSkill, CardForm);

impl Serialize for Skill<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(skill, form) = *self;
        let mut o = object(serializer)?;
        o.field("id", &skill.id)?;
        o.field("name", &skill.name)?;
        o.field("description", &skill.description)?;
        o.field("tags", &skill.tags)?;
        o.strings("examples", &skill.examples)?;
        o.strings("inputModes", &skill.input_modes)?;
        o.strings("outputModes", &skill.output_modes)?;
        security(&mut o, &skill.security, form)?;
        o.end()
    }
}

fn security<M: SerializeMap>(
    o: &mut Object<M>,
    requirements: &[SecurityRequirement],
    form: CardForm,
) -> Result<(), M::Error> {
    if form.has_v03() {
        o.list("security", requirements, |requirement| requirement)?;
    }
    if form.has_v1() {
        o.list("securityRequirements", requirements, Requirement)?;
    }
    Ok(())
}

struct Requirement<'a>(&'a SecurityRequirement);

impl Serialize for Requirement<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Schemes<'a>(&'a SecurityRequirement);
        impl Serialize for Schemes<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.0.iter().map(|(name, scopes)| (name, Scopes(scopes))))
            }
        }
        struct Scopes<'a>(&'a [String]);
        impl Serialize for Scopes<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut o = object(serializer)?;
                o.field("list", self.0)?;
                o.end()
            }
        }
        let mut o = object(serializer)?;
        o.field("schemes", &Schemes(self.0))?;
        o.end()
    }
}

struct Schemes<'a>(&'a BTreeMap<String, SecurityScheme>, CardForm);

impl Serialize for Schemes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = self.1;
        serializer.collect_map(
            self.0
                .iter()
                .map(|(name, scheme)| (name, Scheme(scheme, form))),
        )
    }
}

struct Scheme<'a>(&'a SecurityScheme, CardForm);

impl Serialize for Scheme<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(scheme, form) = *self;
        let mut o = object(serializer)?;
        if form.has_v03() {
            o.field("type", names(scheme).0)?;
            scheme_members(&mut o, scheme, false)?;
        }
        if form.has_v1() {
            o.field(names(scheme).1, &V1Scheme(scheme))?;
        }
        o.end()
    }
}

struct V1Scheme<'a>(&'a SecurityScheme);

impl Serialize for V1Scheme<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        scheme_members(&mut o, self.0, true)?;
        o.end()
    }
}

/// A scheme's `type` in 0.3 and its member in 1.0.
fn names(scheme: &SecurityScheme) -> (&'static str, &'static str) {
    match scheme {
        SecurityScheme::ApiKey { .. } => ("apiKey", "apiKeySecurityScheme"),
        SecurityScheme::Http { .. } => ("http", "httpAuthSecurityScheme"),
        SecurityScheme::OAuth2 { .. } => ("oauth2", "oauth2SecurityScheme"),
        SecurityScheme::OpenIdConnect { .. } => ("openIdConnect", "openIdConnectSecurityScheme"),
        SecurityScheme::MutualTls { .. } => ("mutualTLS", "mtlsSecurityScheme"),
    }
}

fn scheme_members<M: SerializeMap>(
    o: &mut Object<M>,
    scheme: &SecurityScheme,
    v1: bool,
) -> Result<(), M::Error> {
    match scheme {
        SecurityScheme::ApiKey {
            description,
            location,
            name,
        } => {
            o.text("description", description.as_ref())?;
            o.field(if v1 { "location" } else { "in" }, location)?;
            o.field("name", name)
        }
        SecurityScheme::Http {
            description,
            scheme,
            bearer_format,
        } => {
            o.text("description", description.as_ref())?;
            o.field("scheme", scheme)?;
            o.text("bearerFormat", bearer_format.as_ref())
        }
        SecurityScheme::OAuth2 {
            description,
            flows,
            metadata_url,
        } => {
            o.text("description", description.as_ref())?;
            o.field("flows", &Flows(flows, v1))?;
            o.text("oauth2MetadataUrl", metadata_url.as_ref())
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            o.text("description", description.as_ref())?;
            o.field("openIdConnectUrl", url)
        }
        SecurityScheme::MutualTls { description } => o.text("description", description.as_ref()),
    }
}

/// A flow's name, and the members it has beside `refreshUrl` and `scopes`.
type FlowShape = (&'static str, &'static [&'static str]);
const AUTHORIZATION_CODE: FlowShape = ("authorizationCode", &["authorizationUrl", "tokenUrl"]);
const CLIENT_CREDENTIALS: FlowShape = ("clientCredentials", &["tokenUrl"]);
const DEVICE_CODE: FlowShape = ("deviceCode", &["deviceAuthorizationUrl", "tokenUrl"]);
const IMPLICIT: FlowShape = ("implicit", &["authorizationUrl"]);
const PASSWORD: FlowShape = ("password", &["tokenUrl"]);

fn flows(flows: &OAuthFlows) -> [(FlowShape, Option<&OAuthFlow>); 5] {
    [
        (AUTHORIZATION_CODE, flows.authorization_code.as_ref()),
        (CLIENT_CREDENTIALS, flows.client_credentials.as_ref()),
        (DEVICE_CODE, flows.device_code.as_ref()),
        (IMPLICIT, flows.implicit.as_ref()),
        (PASSWORD, flows.password.as_ref()),
    ]
}

struct Flows<'a>(&'a OAuthFlows, bool);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(all, v1) = *self;
        let mut o = object(serializer)?;
        let offered = flows(all)
            .into_iter()
            .filter_map(|(shape, flow)| Some((shape, flow?)));
        // 1.0 has room for one flow; 0.3 for all but the device code's.
        let room = if v1 { 1 } else { usize::MAX };
        for (shape, flow) in offered
            .filter(|(shape, _)| v1 || *shape != DEVICE_CODE)
            .take(room)
        {
            o.field(shape.0, &Flow(flow, shape, v1))?;
        }
        o.end()
    }
}

struct Flow<'a>(&'a OAuthFlow, FlowShape, bool);

impl Serialize for Flow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(flow, shape, v1) = *self;
        let mut o = object(serializer)?;
        for (name, url) in [
            ("authorizationUrl", &flow.authorization_url),
            ("deviceAuthorizationUrl", &flow.device_authorization_url),
            ("tokenUrl", &flow.token_url),
        ] {
            if shape.1.contains(&name) {
                o.field(name, url.as_deref().unwrap_or(""))?;
            }
        }
        o.text("refreshUrl", flow.refresh_url.as_ref())?;
        o.field("scopes", &flow.scopes)?;
        if v1 && shape == AUTHORIZATION_CODE {
            o.flag("pkceRequired", flow.pkce_required)?;
        }
        o.end()
    }
}

struct Signature<'a>(&'a CardSignature);

impl Serialize for Signature<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut o = object(serializer)?;
        o.field("protected", &self.0.protected)?;
        o.field("signature", &self.0.signature)?;
        o.metadata("header", &self.0.header)?;
        o.end()
    }
}

/// A card.
pub(super) fn read(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentCard> {
    let mut fields = reader.open(at, value)?;
    let name = fields.required(reader, "name", string);
    let interfaces = interfaces(reader, &mut fields);
    let mut capabilities = fields
        .optional(reader, "capabilities", capabilities)
        .unwrap_or_default();
    let extended = fields.optional(reader, "supportsAuthenticatedExtendedCard", boolean);
    capabilities.extended_card = capabilities.extended_card.or(extended);
    Some(AgentCard {
        description: fields.text(reader, "description").unwrap_or_default(),
        version: fields.text(reader, "version").unwrap_or_default(),
        provider: fields.optional(reader, "provider", provider),
        documentation_url: fields.text(reader, "documentationUrl"),
        icon_url: fields.text(reader, "iconUrl"),
        capabilities,
        security_schemes: fields
            .optional(reader, "securitySchemes", |reader, at, value| {
                dictionary(reader, at, value, scheme)
            })
            .map(|schemes| {
                schemes
                    .into_iter()
                    .filter_map(|(k, v)| Some((k, v?)))
                    .collect()
            })
            .unwrap_or_default(),
        security: read_security(reader, &mut fields),
        default_input_modes: fields.list(reader, "defaultInputModes", string),
        default_output_modes: fields.list(reader, "defaultOutputModes", string),
        skills: fields.list(reader, "skills", skill),
        signatures: fields.list(reader, "signatures", signature),
        name: name?,
        interfaces: interfaces?,
    })
}

/// 1.0's interfaces, and of 0.3's those that are not among them already.
fn interfaces(reader: &mut Reader, fields: &mut Fields<'_>) -> Option<Vec<AgentInterface>> {
    let mut all = fields.list(reader, "supportedInterfaces", v1_interface);
    let version = fields.text(reader, "protocolVersion");
    let version = match version {
        Some(version) if is_v03(&version) => ProtocolVersion::V0_3.as_str().to_owned(),
        Some(version) => version,
        None => ProtocolVersion::V0_3.as_str().to_owned(),
    };
    let mut old: Vec<(String, ProtocolBinding)> = Vec::new();
    if let Some(url) = fields.text(reader, "url") {
        let binding = fields.optional(reader, "preferredTransport", string);
        old.push((
            url,
            binding.map_or(ProtocolBinding::JsonRpc, |name| name.as_str().into()),
        ));
    }
    old.extend(fields.list(reader, "additionalInterfaces", v03_interface));
    for (url, binding) in old {
        let known = all.iter().any(|known| {
            let same = known.version == version || is_v03(&known.version) && is_v03(&version);
            known.url == url && known.binding == binding && same
        });
        if !known {
            all.push(AgentInterface {
                url,
                binding,
                version: version.clone(),
                tenant: None,
            });
        }
    }
    if all.is_empty() {
        let at = fields.member("supportedInterfaces");
        return reader.fault(
            &at,
            "must name at least one interface (0.3: url must be set)",
        );
    }
    Some(all)
}

fn v1_interface(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentInterface> {
    let mut fields = reader.open(at, value)?;
    let url = fields.required(reader, "url", string);
    let binding = fields.required(reader, "protocolBinding", string);
    Some(AgentInterface {
        version: fields
            .text(reader, "protocolVersion")
            .unwrap_or_else(|| ProtocolVersion::V1_0.as_str().to_owned()),
        tenant: fields.text(reader, "tenant"),
        url: url?,
        binding: binding?.as_str().into(),
    })
}

fn v03_interface(
    reader: &mut Reader,
    at: &At<'_>,
    value: Value,
) -> Option<(String, ProtocolBinding)> {
    let mut fields = reader.open(at, value)?;
    let url = fields.required(reader, "url", string);
    let binding = fields.required(reader, "transport", string);
    Some((url?, binding?.as_str().into()))
}

fn provider(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentProvider> {
    let mut fields = reader.open(at, value)?;
    Some(AgentProvider {
        organization: fields.text(reader, "organization").unwrap_or_default(),
        url: fields.text(reader, "url").unwrap_or_default(),
    })
}

fn capabilities(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentCapabilities> {
    let mut fields = reader.open(at, value)?;
    Some(AgentCapabilities {
        streaming: fields.optional(reader, "streaming", boolean),
        push_notifications: fields.optional(reader, "pushNotifications", boolean),
        extended_card: fields.optional(reader, "extendedAgentCard", boolean),
        state_transition_history: fields.optional(reader, "stateTransitionHistory", boolean),
        extensions: fields.list(reader, "extensions", extension),
    })
}

fn extension(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentExtension> {
    let mut fields = reader.open(at, value)?;
    let uri = fields.required(reader, "uri", string);
    Some(AgentExtension {
        description: fields.text(reader, "description"),
        required: fields.flag(reader, "required"),
        params: fields.metadata(reader, "params"),
        uri: uri?,
    })
}

fn skill(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentSkill> {
    let mut fields = reader.open(at, value)?;
    Some(AgentSkill {
        id: fields.text(reader, "id").unwrap_or_default(),
        name: fields.text(reader, "name").unwrap_or_default(),
        description: fields.text(reader, "description").unwrap_or_default(),
        tags: fields.list(reader, "tags", string),
        examples: fields.list(reader, "examples", string),
        input_modes: fields.list(reader, "inputModes", string),
        output_modes: fields.list(reader, "outputModes", string),
        security: read_security(reader, &mut fields),
    })
}

fn signature(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<CardSignature> {
    let mut fields = reader.open(at, value)?;
    let protected = fields.required(reader, "protected", string);
    let signature = fields.required(reader, "signature", string);
    let header = fields.metadata(reader, "header");
    Some(CardSignature {
        protected: protected?,
        signature: signature?,
        header,
    })
}

fn read_security(reader: &mut Reader, fields: &mut Fields<'_>) -> Vec<SecurityRequirement> {
    let name = if fields.has("securityRequirements") {
        "securityRequirements"
    } else {
        "security"
    };
    fields.list(reader, name, requirement)
}

/// 0.3's `{scheme: [scopes]}` or 1.0's `{"schemes": {scheme: {"list": [scopes]}}}`. An object
/// under `schemes` can only be 1.0's, since 0.3's scopes are an array.
fn requirement(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<SecurityRequirement> {
    let mut map = reader.map(at, value)?;
    if map.get("schemes").is_some_and(Value::is_object) {
        let schemes = map.remove("schemes")?;
        return dictionary(reader, &At::Field(at, "schemes"), schemes, scopes);
    }
    dictionary(reader, at, Value::Object(map), scopes)
}

fn scopes(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::Object(_) => Some(reader.open(at, value)?.list(reader, "list", string)),
        value => list(reader, at, value, string),
    }
}

/// A scheme in either form or in both; `None` where it is of a kind that neither version knows,
/// which is no reason to refuse the whole card.
fn scheme(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Option<SecurityScheme>> {
    const WRAPPERS: [(&str, Read<SecurityScheme>); 5] = [
        ("apiKeySecurityScheme", |reader, at, value| {
            scheme_of(reader, at, value, "apiKey")
        }),
        ("httpAuthSecurityScheme", |reader, at, value| {
            scheme_of(reader, at, value, "http")
        }),
        ("oauth2SecurityScheme", |reader, at, value| {
            scheme_of(reader, at, value, "oauth2")
        }),
        ("openIdConnectSecurityScheme", |reader, at, value| {
            scheme_of(reader, at, value, "openIdConnect")
        }),
        ("mtlsSecurityScheme", |reader, at, value| {
            scheme_of(reader, at, value, "mutualTLS")
        }),
    ];
    if value.is_null() {
        return Some(None);
    }
    let mut fields = reader.open(at, value)?;
    let mut found = None;
    for (name, read) in WRAPPERS {
        if fields.has(name) {
            found = Some(fields.required(reader, name, read)?);
        }
    }
    let kind = fields.text(reader, "type").unwrap_or_default();
    if !matches!(
        &*kind,
        "apiKey" | "http" | "oauth2" | "openIdConnect" | "mutualTLS"
    ) {
        return Some(found);
    }
    let old = scheme_of(reader, at, fields.into_value(), &kind)?;
    Some(Some(match (found, old) {
        (None, old) => old,
        (Some(new), old) => with_flows_of(new, old),
    }))
}

/// 1.0's member has room for one flow; 0.3's beside it may hold more.
fn with_flows_of(mut new: SecurityScheme, old: SecurityScheme) -> SecurityScheme {
    if let (SecurityScheme::OAuth2 { flows, .. }, SecurityScheme::OAuth2 { flows: more, .. }) =
        (&mut new, old)
    {
        flows.authorization_code = flows.authorization_code.take().or(more.authorization_code);
        flows.client_credentials = flows.client_credentials.take().or(more.client_credentials);
        flows.implicit = flows.implicit.take().or(more.implicit);
        flows.password = flows.password.take().or(more.password);
    }
    new
}

fn scheme_of(reader: &mut Reader, at: &At<'_>, value: Value, kind: &str) -> Option<SecurityScheme> {
    let mut fields = reader.open(at, value)?;
    let fields = &mut fields;
    let description = fields.text(reader, "description");
    Some(match kind {
        "apiKey" => {
            fields.alias("location", "in");
            let location = fields.required(reader, "location", string);
            let name = fields.required(reader, "name", string)?;
            SecurityScheme::ApiKey {
                description,
                location: location?,
                name,
            }
        }
        "http" => SecurityScheme::Http {
            description,
            scheme: fields.required(reader, "scheme", string)?,
            bearer_format: fields.text(reader, "bearerFormat"),
        },
        "oauth2" => SecurityScheme::OAuth2 {
            description,
            flows: Box::new(
                fields
                    .optional(reader, "flows", read_flows)
                    .unwrap_or_default(),
            ),
            metadata_url: fields.text(reader, "oauth2MetadataUrl"),
        },
        "openIdConnect" => SecurityScheme::OpenIdConnect {
            description,
            url: fields.required(reader, "openIdConnectUrl", string)?,
        },
        _ => SecurityScheme::MutualTls { description },
    })
}

fn read_flows(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<OAuthFlows> {
    let mut fields = reader.open(at, value)?;
    Some(OAuthFlows {
        authorization_code: fields.optional(reader, AUTHORIZATION_CODE.0, read_flow),
        client_credentials: fields.optional(reader, CLIENT_CREDENTIALS.0, read_flow),
        device_code: fields.optional(reader, DEVICE_CODE.0, read_flow),
        implicit: fields.optional(reader, IMPLICIT.0, read_flow),
        password: fields.optional(reader, PASSWORD.0, read_flow),
    })
}

fn read_flow(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<OAuthFlow> {
    let mut fields = reader.open(at, value)?;
    Some(OAuthFlow {
        authorization_url: fields.text(reader, "authorizationUrl"),
        device_authorization_url: fields.text(reader, "deviceAuthorizationUrl"),
        token_url: fields.text(reader, "tokenUrl"),
        refresh_url: fields.text(reader, "refreshUrl"),
        scopes: fields
            .optional(reader, "scopes", |reader, at, value| {
                dictionary(reader, at, value, string)
            })
            .unwrap_or_default(),
        pkce_required: fields.flag(reader, "pkceRequired"),
    })
}
