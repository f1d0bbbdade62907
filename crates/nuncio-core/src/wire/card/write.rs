//! Writing a card in any of its forms.

use super::super::write::{Each, Object, object};
use super::{
    AUTHORIZATION_CODE, CLIENT_CREDENTIALS, CardForm, DEVICE_CODE, FlowShape, IMPLICIT, PASSWORD,
    is_v03,
};
use crate::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    CardSignature, OAuthFlow, OAuthFlows, SecurityRequirement, SecurityScheme,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;

/// What 0.3's cards say they are.
const V03_PROTOCOL: &str = "0.3.0";

/// A card to be written.
pub(in super::super) struct Card<'a>(
    pub(in super::super) &'a AgentCard,
    pub(in super::super) CardForm,
);

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
