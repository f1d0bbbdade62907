//! Which version of the protocol a request speaks.

use std::fmt;

/// A published version of A2A that this crate reads and writes exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 0.3: `kind` discriminators, lower-case states, slash method names.
    V0_3,
    /// 1.0: ProtoJSON spelling, PascalCase method names.
    V1_0,
}

impl ProtocolVersion {
    /// Both, oldest first.
    pub const ALL: [Self; 2] = [Self::V0_3, Self::V1_0];

    /// The header and query parameter that carry the version (1.0 §3.6.1).
    pub const HEADER: &'static str = "A2A-Version";

    /// As it stands in the header: `0.3` or `1.0`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The version a request asks for, from the header's or the query parameter's value. Absent
    /// or empty means 0.3, which had no such header; a patch part (`1.0.1`) is ignored.
    ///
    /// # Errors
    /// [`UnsupportedVersion`] for anything else.
    pub fn negotiate(requested: Option<&str>) -> Result<Self, UnsupportedVersion> {
        let text = requested.unwrap_or("").trim();
        if text.is_empty() {
            return Ok(Self::V0_3);
        }
        let mut numbers = text.split('.');
        let version = match (numbers.next(), numbers.next()) {
            (Some("0"), Some("3")) => Self::V0_3,
            (Some("1"), Some("0")) => Self::V1_0,
            _ => return Err(UnsupportedVersion),
        };
        match (numbers.next(), numbers.next()) {
            (None, _) => Ok(version),
            (Some(patch), None)
                if !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()) =>
            {
                Ok(version)
            }
            _ => Err(UnsupportedVersion),
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The requested version is neither 0.3 nor 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this server speaks A2A 0.3 and 1.0: set A2A-Version to one of them")]
pub struct UnsupportedVersion;
