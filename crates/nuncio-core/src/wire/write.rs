//! The writing side's tools: an object written member by member, straight to bytes.
//!
//! Nothing empty is written: absent, empty text, empty list and empty metadata are one thing in
//! the model and leave no trace. Metadata leaves without its reserved keys, even if some writer
//! of the model forgot to strip them.

use crate::{Metadata, Secret, Timestamp};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// The JSON of `value`.
pub(super) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    append(&mut out, value);
    out
}

/// Writes the JSON of `value` behind what is there.
///
/// Serializing fails where a map's key is no string or a writer fails. Here every key is one, and
/// memory does not fail.
pub(super) fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(out, value).expect("JSON of string keys, written to memory");
}

/// An object being written.
pub(super) struct Object<M>(M);

/// Begins an object.
pub(super) fn object<S: Serializer>(serializer: S) -> Result<Object<S::SerializeMap>, S::Error> {
    Ok(Object(serializer.serialize_map(None)?))
}

impl<M: SerializeMap> Object<M> {
    /// A member that is always there.
    pub(super) fn field(
        &mut self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    /// A member that may be absent.
    pub(super) fn optional(
        &mut self,
        name: &str,
        value: Option<impl Serialize>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.field(name, &value))
    }

    /// A text that may be absent.
    pub(super) fn text(&mut self, name: &str, text: Option<&String>) -> Result<(), M::Error> {
        self.optional(name, text.filter(|text| !text.is_empty()))
    }

    /// A secret, on its way to the one server that is to have it.
    pub(super) fn secret(&mut self, name: &str, secret: Option<&Secret>) -> Result<(), M::Error> {
        self.optional(name, secret.map(Secret::expose))
    }

    /// A flag, written where it is set.
    pub(super) fn flag(&mut self, name: &str, flag: bool) -> Result<(), M::Error> {
        if flag {
            self.field(name, &true)
        } else {
            Ok(())
        }
    }

    /// Strings, where there are any.
    pub(super) fn strings(&mut self, name: &str, strings: &[String]) -> Result<(), M::Error> {
        if strings.is_empty() {
            Ok(())
        } else {
            self.field(name, strings)
        }
    }

    /// An array, where it has items.
    pub(super) fn list<'a, T, W: Serialize>(
        &mut self,
        name: &str,
        items: &'a [T],
        wrap: fn(&'a T) -> W,
    ) -> Result<(), M::Error> {
        if items.is_empty() {
            Ok(())
        } else {
            self.field(name, &Each(items, wrap))
        }
    }

    /// Metadata, where there is any.
    pub(super) fn metadata(&mut self, name: &str, metadata: &Metadata) -> Result<(), M::Error> {
        let map = metadata.as_map();
        if has_any(map) {
            self.field(name, &Clean(map))
        } else {
            Ok(())
        }
    }

    /// Metadata with a mark set in it.
    pub(super) fn marked_metadata(
        &mut self,
        name: &str,
        metadata: &Metadata,
        mark: &'static str,
    ) -> Result<(), M::Error> {
        self.field(name, &Marked(metadata.as_map(), mark))
    }

    /// Ends the object.
    pub(super) fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }
}

/// An array whose items are written as `wrap` makes them.
pub(super) struct Each<'a, T, W>(pub(super) &'a [T], pub(super) fn(&'a T) -> W);

impl<T, W: Serialize> Serialize for Each<'_, T, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

/// Bytes in standard, padded base64.
pub(super) struct Base64<'a>(pub(super) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// Anything by its text.
pub(super) struct Text<T>(pub(super) T);

impl<T: AsRef<str>> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_ref())
    }
}

/// A time, as both versions write it.
pub(super) struct Time(pub(super) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn has_any(map: &Map<String, Value>) -> bool {
    map.keys().any(|key| !Metadata::is_reserved(key))
}

/// An object of metadata without the reserved keys.
struct Clean<'a>(&'a Map<String, Value>);

impl Serialize for Clean<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.iter().filter(|(key, _)| !Metadata::is_reserved(key)) {
            map.serialize_entry(key, &CleanValue(value))?;
        }
        map.end()
    }
}

struct Marked<'a>(&'a Map<String, Value>, &'static str);

impl Serialize for Marked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(metadata, mark) = *self;
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in metadata {
            if key != mark && !Metadata::is_reserved(key) {
                map.serialize_entry(key, &CleanValue(value))?;
            }
        }
        map.serialize_entry(mark, &true)?;
        map.end()
    }
}

struct CleanValue<'a>(&'a Value);

impl Serialize for CleanValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => Clean(map).serialize(serializer),
            Value::Array(items) => {
                let mut array = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    array.serialize_element(&CleanValue(item))?;
                }
                array.end()
            }
            plain => plain.serialize(serializer),
        }
    }
}
