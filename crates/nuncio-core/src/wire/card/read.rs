//! Reading a card in any of its forms, or in a mixture of them.

use super::super::read::{At, Fields, Read, Reader, boolean, dictionary, list, string};
use super::{AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, IMPLICIT, PASSWORD, is_v03};
use crate::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    CardSignature, OAuthFlow, OAuthFlows, ProtocolBinding, ProtocolVersion, SecurityRequirement,
    SecurityScheme,
};
use serde_json::Value;

/// A card.
pub(in super::super) fn read(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<AgentCard> {
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
