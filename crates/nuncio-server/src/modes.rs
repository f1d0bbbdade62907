//! Media types: what the agent takes, and what the caller can use.

use crate::engine::EngineError;
use nuncio_core::{AgentCard, Message, PartContent};

/// Refuses a message with a part that the agent does not take.
pub(crate) fn check_input(card: &AgentCard, message: &Message) -> Result<(), EngineError> {
    let modes = || {
        let skills = card.skills.iter().flat_map(|skill| &skill.input_modes);
        card.default_input_modes.iter().chain(skills)
    };
    for (index, part) in message.parts.iter().enumerate() {
        let said = part
            .effective_media_type()
            .unwrap_or("application/octet-stream");
        let is_text = matches!(part.content, PartContent::Text(_));
        let taken = modes().any(|mode| {
            fits(mode, said) || (is_text && (fits(mode, "text/plain") || mode.starts_with("text/")))
        });
        if !taken {
            return Err(EngineError::ContentType(format!(
                "Incompatible content types: {said} of message.parts[{index}] is not supported; \
                 this agent takes {}",
                card.default_input_modes.join(", ")
            )));
        }
    }
    Ok(())
}

/// Refuses a request whose caller can use nothing of what the agent makes. No modes: any will do.
pub(crate) fn check_output(card: &AgentCard, accepted: &[String]) -> Result<(), EngineError> {
    let skills = card.skills.iter().flat_map(|skill| &skill.output_modes);
    let usable = card.default_output_modes.iter().chain(skills).any(|made| {
        accepted
            .iter()
            .any(|wanted| fits(wanted, made) || fits(made, wanted))
    });
    if accepted.is_empty() || usable {
        return Ok(());
    }
    Err(EngineError::ContentType(format!(
        "Incompatible content types: none of acceptedOutputModes is supported; this agent makes {}",
        card.default_output_modes.join(", ")
    )))
}

/// Whether a media type falls under a mode: the same, or a range such as `text/*` or `*/*`. A
/// mode without a slash, as older cards have it (`text`), stands for all its subtypes, and `file`
/// for everything. Parameters and case don't count.
fn fits(mode: &str, media_type: &str) -> bool {
    let bare = |text: &str| {
        text.split(';')
            .next()
            .unwrap_or("")
            .trim()
            .to_ascii_lowercase()
    };
    let (mode, media_type) = (bare(mode), bare(media_type));
    if mode == "*/*" || mode == "*" || mode == "file" || mode == media_type {
        return true;
    }
    match mode
        .strip_suffix("/*")
        .or((!mode.contains('/')).then_some(mode.as_str()))
    {
        Some("data") => media_type == "application/json",
        Some(main) => media_type
            .strip_prefix(main)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn modes_are_ranges() {
        for (mode, media_type) in [
            ("text/plain", "text/plain"),
            ("text/plain; charset=utf-8", "TEXT/plain"),
            ("text/*", "text/markdown"),
            ("*/*", "image/png"),
            ("text", "text/plain"),
            ("data", "application/json"),
            ("file", "application/pdf"),
        ] {
            assert!(fits(mode, media_type), "{mode} takes {media_type}");
        }
        for (mode, media_type) in [
            ("text/plain", "text/html"),
            ("text/*", "textual/x"),
            ("image/*", "text/plain"),
        ] {
            assert!(!fits(mode, media_type), "{mode} does not take {media_type}");
        }
    }
}
