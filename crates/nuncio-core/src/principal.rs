//! Who is calling, and whose a task is.

use std::{fmt, sync::Arc};

/// A verified identity, as the gate established it. No field of a request body ever sets one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    issuer: Arc<str>,
    subject: Arc<str>,
    tenant: Option<Arc<str>>,
}

impl Principal {
    /// The issuer under which the anonymous principal stands.
    const ANONYMOUS: &'static str = "anonymous";

    /// An identity that an issuer vouches for.
    #[must_use]
    pub fn new(issuer: &str, subject: &str) -> Self {
        Self {
            issuer: issuer.into(),
            subject: subject.into(),
            tenant: None,
        }
    }

    /// The same identity within a tenant.
    #[must_use]
    pub fn in_tenant(mut self, tenant: &str) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The one principal that everybody is when the server runs without authentication.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new(Self::ANONYMOUS, "")
    }

    /// Whether nobody has verified who this is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        &*self.issuer == Self::ANONYMOUS
    }

    /// Who vouches for the subject.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Who it is, in the issuer's words.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The tenant it acts in.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The principal whose scope this is: the way back from [`owner`](Self::owner).
    #[must_use]
    pub fn of_owner(owner: &Owner) -> Self {
        fn field(text: &str) -> Option<(&str, &str)> {
            let (len, rest) = text.split_once(':')?;
            let len = len.parse().ok()?;
            Some((rest.get(..len)?, rest.get(len..)?.strip_prefix('/')?))
        }
        let read = || {
            let (issuer, rest) = field(owner.as_str())?;
            let (subject, tenant) = field(rest)?;
            let principal = Self::new(issuer, subject);
            Some(if tenant.is_empty() {
                principal
            } else {
                principal.in_tenant(tenant)
            })
        };
        // Only a store that was tampered with holds anything else.
        read().unwrap_or_else(|| Self::new("unknown", owner.as_str()))
    }

    /// The scope that this principal's tasks are stored under.
    #[must_use]
    pub fn owner(&self) -> Owner {
        // Length-prefixed, so that no choice of names makes two principals one owner.
        let tenant = self.tenant().unwrap_or("");
        Owner(
            format!(
                "{}:{}/{}:{}/{}",
                self.issuer.len(),
                self.issuer,
                self.subject.len(),
                self.subject,
                tenant
            )
            .into(),
        )
    }
}

/// The scope of stored tasks: one principal within one tenant. Every store query takes one, so
/// that a query without an owner check can't be written.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The scope as a store wrote it down earlier. Requests never come this way: theirs is made
    /// by [`Principal::owner`].
    #[must_use]
    pub fn from_stored(key: &str) -> Self {
        Self(key.into())
    }

    /// The scope's key in a store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_leads_back_to_its_principal() {
        for principal in [
            Principal::anonymous(),
            Principal::new("api-key", "alice"),
            Principal::new("https://id.example/a:b", "7:x/y").in_tenant("t/1:2"),
        ] {
            assert_eq!(Principal::of_owner(&principal.owner()), principal);
        }
    }

    #[test]
    fn no_two_principals_share_an_owner() {
        let one = Principal::new("a", "b/1:c");
        let two = Principal::new("a/3:b", "c");
        assert_ne!(one.owner(), two.owner());
    }
}
