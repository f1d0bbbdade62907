//! Free-form metadata, and the keys in it that belong to the server alone.

use serde_json::{Map, Value};

/// A JSON object of extra facts. Empty and absent are the same thing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata(Map<String, Value>);

impl Metadata {
    /// No metadata.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Sets a key.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.0.insert(key.into(), value.into());
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    /// Lays `other` over this: its keys win.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The object itself.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Whether a key names something only the server may say: who the caller is, who owns a
    /// task, or nuncio's own notes. Such a key in what a client or an agent sends would be a
    /// claim to an identity, so it is dropped wherever metadata is read and never leaves.
    #[must_use]
    pub fn is_reserved(key: &str) -> bool {
        key == "a2a.auth" || key == "ash_a2a.owner" || key.starts_with("nuncio.")
    }

    /// Drops every reserved key, at every depth.
    pub fn strip_reserved(&mut self) {
        strip_map(&mut self.0);
    }
}

impl From<Map<String, Value>> for Metadata {
    /// Takes a client's object, without the [reserved keys](Metadata::is_reserved).
    fn from(map: Map<String, Value>) -> Self {
        let mut metadata = Self(map);
        metadata.strip_reserved();
        metadata
    }
}

fn strip_map(map: &mut Map<String, Value>) {
    map.retain(|key, value| {
        if Metadata::is_reserved(key) {
            return false;
        }
        strip_value(value);
        true
    });
}

/// Recursion is bounded by the depth to which the JSON was parsed.
fn strip_value(value: &mut Value) {
    match value {
        Value::Object(map) => strip_map(map),
        Value::Array(items) => items.iter_mut().for_each(strip_value),
        _ => {}
    }
}
