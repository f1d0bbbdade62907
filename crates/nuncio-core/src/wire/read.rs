//! The reading side's tools: a path that costs nothing until something is wrong, an object whose
//! members are taken out one by one, and readers for the small types.
//!
//! A reader of a thing returns `None` after it has noted why; the readers of the thing's siblings
//! still run, so that one answer names every field at fault (up to [`MAX_VIOLATIONS`]). Strings
//! and subtrees are moved out of the parsed JSON, never copied. Recursion follows the shape of
//! the model, which is a few levels deep whatever the JSON is.

use crate::{FieldViolation, Metadata, ProtocolVersion, Timestamp};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A body of a million bad parts does not get a million lines in answer.
const MAX_VIOLATIONS: usize = 16;

/// Where in the JSON a reader is.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    /// The top, and what it is called where it is itself at fault.
    Root(&'static str),
    /// A member.
    Field(&'a At<'a>, &'a str),
    /// An item of an array.
    Item(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Field(Self::Root(_), name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Whose words are being read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// A client's: what the specification requires must be there.
    Request,
    /// Another server's, or our own from a store: protobuf's JSON leaves out what has its default
    /// value, and an answer is worth reading even if it is not all it should be.
    Answer,
}

/// What is known while reading, and what was found wrong.
pub(super) struct Reader {
    version: ProtocolVersion,
    mode: Mode,
    violations: Vec<FieldViolation>,
}

impl Reader {
    pub(super) fn new(version: ProtocolVersion, mode: Mode) -> Self {
        Self {
            version,
            mode,
            violations: Vec::new(),
        }
    }

    pub(super) fn is_v03(&self) -> bool {
        self.version == ProtocolVersion::V0_3
    }

    pub(super) fn is_request(&self) -> bool {
        self.mode == Mode::Request
    }

    /// Notes what is wrong.
    pub(super) fn fault<T>(&mut self, at: &At<'_>, description: impl Into<String>) -> Option<T> {
        if self.violations.len() < MAX_VIOLATIONS {
            let (field, description) = (at.to_string(), description.into());
            self.violations.push(FieldViolation { field, description });
        }
        None
    }

    /// The thing read, or all that is wrong with it.
    pub(super) fn finish<T>(mut self, thing: Option<T>) -> Result<T, Vec<FieldViolation>> {
        match thing {
            Some(thing) if self.violations.is_empty() => Ok(thing),
            _ => {
                if self.violations.is_empty() {
                    self.fault::<()>(&At::Root("params"), "can't be read");
                }
                Err(self.violations)
            }
        }
    }

    /// The thing read, or the first that is wrong with it.
    pub(super) fn finish_first<T>(self, thing: Option<T>) -> Result<T, FieldViolation> {
        self.finish(thing)
            .map_err(|mut violations| violations.swap_remove(0))
    }

    /// Opens an object. Protobuf's member names (`context_id`) become JSON's (`contextId`),
    /// which win where both are there.
    pub(super) fn open<'a>(&mut self, at: &'a At<'a>, value: Value) -> Option<Fields<'a>> {
        let mut map = self.map(at, value)?;
        if map.keys().any(|key| key.contains('_')) {
            let (snake, mut camel): (Map<_, _>, Map<_, _>) =
                map.into_iter().partition(|(key, _)| key.contains('_'));
            for (key, value) in snake {
                let slot = camel.entry(camel_case(&key)).or_insert(Value::Null);
                if slot.is_null() {
                    *slot = value;
                }
            }
            map = camel;
        }
        Some(Fields { map, at })
    }

    /// An object whose member names are the sender's own.
    pub(super) fn map(&mut self, at: &At<'_>, value: Value) -> Option<Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            other => self.wrong(at, "an object", &other),
        }
    }

    fn wrong<T>(&mut self, at: &At<'_>, right: &str, value: &Value) -> Option<T> {
        let is = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        self.fault(at, format!("must be {right}, not {is}"))
    }
}

/// A function that reads one kind of thing.
pub(super) type Read<T> = fn(&mut Reader, &At<'_>, Value) -> Option<T>;

/// An object being taken apart. `null` members are absent.
pub(super) struct Fields<'a> {
    map: Map<String, Value>,
    at: &'a At<'a>,
}

impl Fields<'_> {
    /// Whether a member is there and not `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether a member is there, be it `null`.
    pub(super) fn has_raw(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A member's text, where it is one.
    pub(super) fn peek(&self, name: &str) -> Option<&str> {
        self.map.get(name)?.as_str()
    }

    /// Where a member is.
    pub(super) fn member<'b>(&'b self, name: &'b str) -> At<'b> {
        At::Field(self.at, name)
    }

    /// Sets a member that is absent.
    pub(super) fn set_default(&mut self, name: &str, value: impl Into<Value>) {
        if !self.has(name) {
            self.map.insert(name.to_owned(), value.into());
        }
    }

    /// What is left of the object.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.map)
    }

    /// Takes a member as it is, `null` too.
    pub(super) fn take_raw(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }

    /// Takes a member.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Lets a member's other name stand for it.
    pub(super) fn alias(&mut self, name: &str, other: &str) {
        if !self.has(name)
            && let Some(value) = self.take(other)
        {
            self.map.insert(name.to_owned(), value);
        }
    }

    /// Reads a member if it is there.
    pub(super) fn optional<T>(
        &mut self,
        reader: &mut Reader,
        name: &str,
        read: Read<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(reader, &At::Field(self.at, name), value)
    }

    /// Reads a member that must be there.
    pub(super) fn required<T>(
        &mut self,
        reader: &mut Reader,
        name: &str,
        read: Read<T>,
    ) -> Option<T> {
        match self.take(name) {
            Some(value) => read(reader, &At::Field(self.at, name), value),
            None => self.missing(reader, name),
        }
    }

    /// Notes that a member is missing.
    pub(super) fn missing<T>(&self, reader: &mut Reader, name: &str) -> Option<T> {
        reader.fault(&At::Field(self.at, name), "is required")
    }

    /// An optional text; empty is absent, as protobuf has it.
    pub(super) fn text(&mut self, reader: &mut Reader, name: &str) -> Option<String> {
        self.optional(reader, name, string)
            .filter(|text| !text.is_empty())
    }

    /// An optional identifier; empty is absent, as protobuf has it.
    pub(super) fn id<T: TryFromString>(&mut self, reader: &mut Reader, name: &str) -> Option<T> {
        let text = self.text(reader, name)?;
        make_id(reader, &At::Field(self.at, name), text)
    }

    /// An optional boolean; absent is false.
    pub(super) fn flag(&mut self, reader: &mut Reader, name: &str) -> bool {
        self.optional(reader, name, boolean).unwrap_or(false)
    }

    /// An optional array; absent is empty.
    pub(super) fn list<T>(&mut self, reader: &mut Reader, name: &str, read: Read<T>) -> Vec<T> {
        let Some(value) = self.take(name) else {
            return Vec::new();
        };
        list(reader, &At::Field(self.at, name), value, read).unwrap_or_default()
    }

    /// Metadata, under any name.
    pub(super) fn metadata(&mut self, reader: &mut Reader, name: &str) -> Metadata {
        let Some(value) = self.take(name) else {
            return Metadata::new();
        };
        reader
            .map(&At::Field(self.at, name), value)
            .map(Metadata::from)
            .unwrap_or_default()
    }

    /// An optional whole number within bounds.
    pub(super) fn number(
        &mut self,
        reader: &mut Reader,
        name: &str,
        min: u32,
        max: u32,
    ) -> Option<u32> {
        let value = self.take(name)?;
        let number = whole(&value).filter(|n| (i128::from(min)..=i128::from(max)).contains(n));
        match number.and_then(|n| u32::try_from(n).ok()) {
            Some(number) => Some(number),
            None => reader.fault(
                &At::Field(self.at, name),
                format!("must be a whole number from {min} to {max}"),
            ),
        }
    }
}

/// The identifiers' way in without a copy of the string.
pub(super) trait TryFromString: Sized {
    fn try_from_string(text: String) -> Result<Self, crate::IdError>;
}

macro_rules! ids {
    ($($id:ident),*) => {$(
        impl TryFromString for crate::$id {
            fn try_from_string(text: String) -> Result<Self, crate::IdError> {
                Self::new(text)
            }
        }
    )*};
}
ids!(TaskId, ContextId, MessageId, ArtifactId, PushConfigId);

fn make_id<T: TryFromString>(reader: &mut Reader, at: &At<'_>, text: String) -> Option<T> {
    match T::try_from_string(text) {
        Ok(id) => Some(id),
        Err(error) => reader.fault(at, error.to_string()),
    }
}

/// An identifier.
pub(super) fn id<T: TryFromString>(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<T> {
    let text = string(reader, at, value)?;
    make_id(reader, at, text)
}

/// A string.
pub(super) fn string(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        other => reader.wrong(at, "a string", &other),
    }
}

/// A boolean.
pub(super) fn boolean(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(flag),
        other => reader.wrong(at, "a boolean", &other),
    }
}

/// An array; what can't be read of it is noted and left out.
pub(super) fn list<T>(
    reader: &mut Reader,
    at: &At<'_>,
    value: Value,
    read: Read<T>,
) -> Option<Vec<T>> {
    match value {
        Value::Array(items) => {
            let items = items.into_iter().enumerate();
            Some(
                items
                    .filter_map(|(i, item)| read(reader, &At::Item(at, i), item))
                    .collect(),
            )
        }
        other => reader.wrong(at, "an array", &other),
    }
}

/// An object from the sender's own names to things of one kind.
pub(super) fn dictionary<T>(
    reader: &mut Reader,
    at: &At<'_>,
    value: Value,
    read: Read<T>,
) -> Option<BTreeMap<String, T>> {
    let mut entries = BTreeMap::new();
    for (key, value) in reader.map(at, value)? {
        if let Some(thing) = read(reader, &At::Field(at, &key), value) {
            entries.insert(key, thing);
        }
    }
    Some(entries)
}

/// A point in time.
pub(super) fn timestamp(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Timestamp> {
    let text = string(reader, at, value)?;
    let parsed = text.parse().or_else(|error| {
        // Some servers write UTC and forget to say so.
        if reader.is_request() {
            Err(error)
        } else {
            format!("{text}Z").parse()
        }
    });
    match parsed {
        Ok(time) => Some(time),
        Err(error) => reader.fault(at, error.to_string()),
    }
}

/// Bytes in base64: either alphabet, padded or not.
pub(super) fn bytes(reader: &mut Reader, at: &At<'_>, value: Value) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

    let text = string(reader, at, value)?;
    let url_safe = text.bytes().any(|byte| matches!(byte, b'-' | b'_'));
    match if url_safe {
        URL_SAFE.decode(text)
    } else {
        STANDARD.decode(text)
    } {
        Ok(bytes) => Some(bytes),
        Err(_) => reader.fault(at, "must be base64"),
    }
}

/// A whole number: a JSON number without a fraction, or its decimal digits in a string, which is
/// how protobuf may write one.
pub(super) fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(n), _, _) => Some(n.into()),
            (_, Some(n), _) => Some(n.into()),
            #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
            (_, _, Some(x)) if x.fract() == 0.0 && x.abs() <= 9e15 => Some(x as i128),
            _ => None,
        },
        Value::String(text) if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

fn camel_case(snake: &str) -> String {
    let mut camel = String::with_capacity(snake.len());
    let mut upper = false;
    for letter in snake.chars() {
        if letter == '_' {
            upper = true;
        } else if std::mem::take(&mut upper) {
            camel.push(letter.to_ascii_uppercase());
        } else {
            camel.push(letter);
        }
    }
    camel
}
