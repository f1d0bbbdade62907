//! Points in time, to the millisecond, as both protocol versions write them.

use std::{fmt, str::FromStr};

/// A UTC time in milliseconds since the Unix epoch. Written as RFC 3339 with `Z` and exactly
/// three fractional digits (A2A 1.0 §5.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// 0001-01-01T00:00:00.000Z: the earliest time a protobuf timestamp can hold.
const MIN_MS: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z: the latest.
const MAX_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The earliest time that can be written.
    pub const MIN: Self = Self(MIN_MS);

    /// The time now.
    #[must_use]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    /// A time from milliseconds since the epoch, clamped to the years 1 to 9999.
    #[must_use]
    pub fn from_millis(ms: i64) -> Self {
        Self(ms.clamp(MIN_MS, MAX_MS))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// This time and so many milliseconds more.
    #[must_use]
    pub fn plus_millis(self, ms: i64) -> Self {
        Self::from_millis(self.0.saturating_add(ms))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In range by construction, so the conversion can't fail.
        let t = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{t:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads RFC 3339 with any offset; digits past the millisecond are dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let t: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        let ms = t.as_millisecond();
        if (MIN_MS..=MAX_MS).contains(&ms) {
            Ok(Self(ms))
        } else {
            Err(TimestampError)
        }
    }
}

/// The text is no RFC 3339 time of the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 timestamp such as 2026-01-31T12:00:00.000Z")]
pub struct TimestampError;
