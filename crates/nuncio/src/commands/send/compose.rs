//! The message, from the arguments.

use super::SendArgs;
use crate::exit::CommandError;
use nuncio_core::{
    ContextId, Message, MessageId, Metadata, Part, Role, SendConfiguration, SendMessage, TaskId,
};
use std::{
    fs,
    io::{self, Read},
    path::Path,
};

/// The send that the arguments ask for.
pub(super) fn message(args: &SendArgs, text: &[&str]) -> Result<SendMessage, CommandError> {
    let mut parts = Vec::new();
    match text {
        [] => {}
        ["-"] => {
            let mut read = String::new();
            io::stdin()
                .read_to_string(&mut read)
                .map_err(|error| CommandError::usage(format!("standard input: {error}")))?;
            parts.push(Part::text(read));
        }
        words => parts.push(Part::text(words.join(" "))),
    }
    for path in &args.files {
        parts.push(file(path)?);
    }
    for json in &args.data {
        let value: serde_json::Value = serde_json::from_str(json)
            .map_err(|error| CommandError::usage(format!("--data is no JSON: {error}")))?;
        parts.push(Part::data(value));
    }
    if parts.is_empty() {
        let text = "there is nothing to send: say a text, - for standard input, --file or --data";
        return Err(CommandError::usage(text));
    }
    let wrong = |what: &str, error| CommandError::usage(format!("--{what} {error}"));
    let mut message = Message::new(new_id()?, Role::User, parts);
    message.task_id = args
        .task
        .as_ref()
        .map(|id| TaskId::new(id).map_err(|error| wrong("task", error)))
        .transpose()?;
    message.context_id = args
        .context
        .as_ref()
        .map(|id| ContextId::new(id).map_err(|error| wrong("context", error)))
        .transpose()?;
    let configuration = SendConfiguration {
        accepted_output_modes: args.output_modes.clone(),
        push_config: None,
        history_length: args.history,
        return_immediately: args.no_wait,
    };
    Ok(SendMessage {
        message,
        configuration,
        metadata: Metadata::new(),
    })
}

/// A new message's id.
pub(crate) fn new_id() -> Result<MessageId, CommandError> {
    let id = uuid::Uuid::now_v7().to_string();
    MessageId::new(id).map_err(|error| CommandError::usage(error.to_string()))
}

fn file(path: &Path) -> Result<Part, CommandError> {
    let bytes = fs::read(path)
        .map_err(|error| CommandError::usage(format!("{}: {error}", path.display())))?;
    let media_type = media_type(path, &bytes);
    let part = Part::raw(bytes, media_type);
    Ok(match path.file_name() {
        Some(name) => part.named(name.to_string_lossy()),
        None => part,
    })
}

/// What a file probably is, from its name; failing that, whether it is text.
fn media_type(path: &Path, bytes: &[u8]) -> &'static str {
    let extension = path
        .extension()
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    let known = TYPES.iter().find(|(e, _)| Some(*e) == extension.as_deref());
    match known {
        Some((_, media_type)) => media_type,
        None if std::str::from_utf8(bytes).is_ok() => "text/plain",
        None => "application/octet-stream",
    }
}

/// The extension that belongs to a media type, for files that come without a name.
pub(super) fn extension(media_type: &str) -> &'static str {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    TYPES
        .iter()
        .find(|(_, known)| *known == essence)
        .map_or("bin", |(extension, _)| extension)
}

/// What agents are sent most. Of several extensions the first is the one given to a file.
const TYPES: [(&str, &str); 36] = [
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("bin", "application/octet-stream"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("m4a", "audio/mp4"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_type_is_guessed() {
        let of = |name: &str, bytes: &[u8]| media_type(Path::new(name), bytes);
        assert_eq!(of("a.PDF", b"x"), "application/pdf");
        assert_eq!(of("Makefile", b"all:\n"), "text/plain");
        assert_eq!(of("a.unknown", b"\xff\0"), "application/octet-stream");
        assert_eq!(extension("image/jpeg"), "jpg");
        assert_eq!(extension("text/plain; charset=utf-8"), "txt");
        assert_eq!(extension("x/y"), "bin");
    }
}
