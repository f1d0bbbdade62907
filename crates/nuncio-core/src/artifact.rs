//! Artifacts: what a task produces.

use crate::{ArtifactId, Metadata, Part};

/// Something a task made (A2A 1.0 §4.1.7).
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Unique within the task.
    pub id: ArtifactId,
    /// A name for people.
    pub name: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// The content.
    pub parts: Vec<Part>,
    /// Extra facts.
    pub metadata: Metadata,
    /// URIs of the extensions that had a part in it.
    pub extensions: Vec<String>,
}

impl Artifact {
    /// An artifact of these parts.
    #[must_use]
    pub fn new(id: ArtifactId, parts: Vec<Part>) -> Self {
        Self {
            id,
            name: None,
            description: None,
            parts,
            metadata: Metadata::new(),
            extensions: Vec::new(),
        }
    }

    /// Gives it a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Joins a later chunk: its parts go behind, what it newly says of the artifact wins.
    pub(crate) fn join(&mut self, chunk: Self) {
        self.parts.extend(chunk.parts);
        self.metadata.merge(chunk.metadata);
        self.name = chunk.name.or_else(|| self.name.take());
        self.description = chunk.description.or_else(|| self.description.take());
        for uri in chunk.extensions {
            if !self.extensions.contains(&uri) {
                self.extensions.push(uri);
            }
        }
    }
}
