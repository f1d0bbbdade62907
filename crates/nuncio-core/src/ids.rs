//! Identifiers. Each is an opaque string to the protocol; the newtypes keep a context's id from
//! being used where a task's is meant.

use std::fmt;

/// The longest identifier that is taken from a client, in bytes.
pub const MAX_ID_BYTES: usize = 256;

/// Why a string can't be an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Identifiers have at least one byte.
    #[error("must not be empty")]
    Empty,
    /// Longer than [`MAX_ID_BYTES`].
    #[error("must be at most {MAX_ID_BYTES} bytes")]
    TooLong,
    /// Control characters would reach logs and headers.
    #[error("must not contain control characters")]
    Control,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Takes an identifier as a client or an agent gave it.
            ///
            /// # Errors
            /// [`IdError`] where it is empty, too long or holds control characters.
            pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
                let id = id.into();
                if id.is_empty() {
                    Err(IdError::Empty)
                } else if id.len() > MAX_ID_BYTES {
                    Err(IdError::TooLong)
                } else if id.chars().any(char::is_control) {
                    Err(IdError::Control)
                } else {
                    Ok(Self(id))
                }
            }

            /// The identifier's text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(id: &str) -> Result<Self, IdError> {
                Self::new(id)
            }
        }
    };
}

id!(
    /// A task's identifier, made by the server (A2A 1.0 §4.1.1 `id`).
    TaskId
);
id!(
    /// A context's identifier: what groups tasks and messages of one conversation.
    ContextId
);
id!(
    /// A message's identifier, made by its sender.
    MessageId
);
id!(
    /// An artifact's identifier, unique within its task.
    ArtifactId
);
id!(
    /// A push notification config's identifier, unique within its task.
    PushConfigId
);
