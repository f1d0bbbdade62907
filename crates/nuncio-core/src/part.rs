//! The smallest unit of content.

use crate::Metadata;
use serde_json::Value;

/// One piece of a message or an artifact (A2A 1.0 §4.1.6).
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: PartContent,
    /// Extra facts about it.
    pub metadata: Metadata,
    /// A file's name.
    pub filename: Option<String>,
    /// The content's media type, such as `text/plain`.
    pub media_type: Option<String>,
}

/// What a [`Part`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// A file's bytes.
    Raw(Vec<u8>),
    /// A file's address.
    Url(String),
    /// Any JSON value. Version 0.3 knows only objects; see [`crate::wire::v03`].
    Data(Value),
}

impl Part {
    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        PartContent::Text(text.into()).into()
    }

    /// A part of JSON.
    #[must_use]
    pub fn data(value: impl Into<Value>) -> Self {
        PartContent::Data(value.into()).into()
    }

    /// A file by value.
    #[must_use]
    pub fn raw(bytes: impl Into<Vec<u8>>, media_type: impl Into<String>) -> Self {
        Self {
            media_type: Some(media_type.into()),
            ..PartContent::Raw(bytes.into()).into()
        }
    }

    /// A file by address.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        PartContent::Url(url.into()).into()
    }

    /// Gives the file a name.
    #[must_use]
    pub fn named(mut self, filename: impl Into<String>) -> Self {
        self.filename = Some(filename.into());
        self
    }

    /// The text, where this is a part of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The media type said, or the one the kind of content implies: `text/plain` for text,
    /// `application/json` for data, none for a file that does not say.
    #[must_use]
    pub fn effective_media_type(&self) -> Option<&str> {
        self.media_type.as_deref().or(match self.content {
            PartContent::Text(_) => Some("text/plain"),
            PartContent::Data(_) => Some("application/json"),
            PartContent::Raw(_) | PartContent::Url(_) => None,
        })
    }
}

impl From<PartContent> for Part {
    fn from(content: PartContent) -> Self {
        Self {
            content,
            metadata: Metadata::new(),
            filename: None,
            media_type: None,
        }
    }
}
