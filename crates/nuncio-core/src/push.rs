//! Push notification configs.

use crate::PushConfigId;
use std::fmt;

/// Text that must never be printed, logged or sent back. `Debug` shows that it is there, not
/// what it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the one place that must use it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where to send a task's notifications (A2A 1.0 §4.3.1).
#[derive(Debug, Clone, PartialEq)]
pub struct PushConfig {
    /// Unique within the task; the server names one that comes without.
    pub id: Option<PushConfigId>,
    /// The webhook.
    pub url: String,
    /// What the receiver recognises its notifications by.
    pub token: Option<Secret>,
    /// How to authenticate to the receiver.
    pub authentication: Option<PushAuthentication>,
}

/// How to authenticate to a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct PushAuthentication {
    /// HTTP authentication schemes, most wanted first; 1.0 has exactly one.
    pub schemes: Vec<String>,
    /// The credentials; write-only.
    pub credentials: Option<Secret>,
}
