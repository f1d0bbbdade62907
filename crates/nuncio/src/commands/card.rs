//! `nuncio card`: an agent's card, for people or as it is.

use crate::{
    client::{ConnectArgs, Protocol, discover, text},
    exit::{self, CommandError},
};
use nuncio_core::{AgentCard, SecurityRequirement, SecurityScheme};
use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

/// Arguments of `nuncio card`.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct CardArgs {
    /// Where the agent is, or its card's own URL or file.
    url: String,
    /// Asks for the card in this version's form.
    #[arg(long, value_name = "VERSION")]
    protocol: Option<Protocol>,
    /// Prints the card byte for byte as it came.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Finds the card and prints it.
pub(crate) async fn run(args: CardArgs) -> Result<(), CommandError> {
    let found = args
        .connect
        .find(&args.url, args.protocol.map(Into::into))
        .await?;
    let shown = if args.json {
        found.raw
    } else {
        let card = found.card()?;
        for warning in warnings(&card) {
            eprintln!("nuncio: {warning}");
        }
        summary(&card)
    };
    io::stdout()
        .lock()
        .write_all(shown.as_bytes())
        .map_err(|error| CommandError::output(&error))
}

/// What is odd about a card.
fn warnings(card: &AgentCard) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if discover::spoken(card).next().is_none() {
        warnings.push("the card has no interface that this program speaks (JSONRPC 0.3 or 1.0)");
    }
    if !card.security.is_empty() && card.security_schemes.is_empty() {
        warnings.push("the card requires security and describes no scheme for it");
    }
    if card.skills.is_empty() {
        warnings.push("the card names no skill");
    }
    warnings
}

/// The card in lines for people. Everything in it is another's word and made harmless.
fn summary(card: &AgentCard) -> String {
    let mut lines = Lines::default();
    lines.put("name", &card.name);
    lines.put("version", &card.version);
    lines.put("about", &card.description);
    if let Some(provider) = &card.provider {
        lines.put(
            "provider",
            &format!("{} {}", provider.organization, provider.url),
        );
    }
    for interface in &card.interfaces {
        let binding = interface.binding.as_str();
        lines.put(
            "interface",
            &format!("{binding} {} {}", interface.version, interface.url),
        );
    }
    let can = &card.capabilities;
    let named = [
        ("streaming", can.streaming),
        ("push notifications", can.push_notifications),
        ("extended card", can.extended_card),
    ];
    let able: Vec<&str> = named
        .into_iter()
        .filter(|(_, on)| *on == Some(true))
        .map(|(name, _)| name)
        .collect();
    let able = if able.is_empty() {
        "none of the optional parts".into()
    } else {
        able.join(", ")
    };
    lines.put("can", &able);
    for extension in &can.extensions {
        let required = if extension.required {
            " (required)"
        } else {
            ""
        };
        lines.put("extension", &format!("{}{required}", extension.uri));
    }
    lines.put("takes", &card.default_input_modes.join(", "));
    lines.put("makes", &card.default_output_modes.join(", "));
    for skill in &card.skills {
        lines.put("skill", &format!("{}: {}", skill.name, skill.description));
    }
    for (name, scheme) in &card.security_schemes {
        lines.put("scheme", &format!("{name}: {}", scheme_text(scheme)));
    }
    for requirement in &card.security {
        lines.put("requires", &requirement_text(requirement));
    }
    lines.put(
        "documentation",
        card.documentation_url.as_deref().unwrap_or_default(),
    );
    if !card.signatures.is_empty() {
        lines.put(
            "signatures",
            &format!("{} (not verified)", card.signatures.len()),
        );
    }
    lines.0
}

fn scheme_text(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey { location, name, .. } => format!("API key in {location} {name}"),
        SecurityScheme::Http { scheme, .. } => format!("HTTP {scheme}"),
        SecurityScheme::OAuth2 { .. } => "OAuth 2".into(),
        SecurityScheme::OpenIdConnect { url, .. } => format!("OpenID Connect {url}"),
        SecurityScheme::MutualTls { .. } => "mutual TLS".into(),
    }
}

fn requirement_text(requirement: &SecurityRequirement) -> String {
    let schemes = requirement.iter().map(|(name, scopes)| {
        if scopes.is_empty() {
            name.clone()
        } else {
            format!("{name} ({})", scopes.join(", "))
        }
    });
    schemes.collect::<Vec<_>>().join(" and ")
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn put(&mut self, name: &str, what: &str) {
        if !what.is_empty() {
            let _ = writeln!(self.0, "{name:<14}{}", text::one_line(what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_core::{AgentInterface, ProtocolBinding, ProtocolVersion};

    #[test]
    fn a_card_in_lines() {
        let card = AgentCard {
            name: "a\u{1b}[31m".into(),
            version: "1".into(),
            interfaces: vec![AgentInterface::new(
                "http://a/",
                ProtocolBinding::JsonRpc,
                ProtocolVersion::V1_0,
            )],
            security: vec![[("key".to_owned(), vec!["read".to_owned()])].into()],
            ..AgentCard::default()
        };
        let text = summary(&card);
        assert!(
            text.contains("interface     JSONRPC 1.0 http://a/\n"),
            "{text}"
        );
        assert!(text.contains("requires      key (read)\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
        assert_eq!(warnings(&card).len(), 2, "no scheme, no skill");
    }
}
