//! Who is calling: from the headers of a request to a verified [`Principal`], or to a refusal.
//!
//! Nothing else in the server looks at a credential, and nothing but this makes a principal.

use crate::keys::KeyFile;
use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderName, header};
use nuncio_core::{Principal, SecurityScheme};
use std::sync::Arc;

/// A way to establish who is calling.
#[async_trait]
pub trait Authenticator: Send + Sync + 'static {
    /// The schemes as the card shows them, by name. A caller satisfies any one of them.
    fn schemes(&self) -> Vec<(String, SecurityScheme)>;

    /// What `WWW-Authenticate` says where nobody is let in.
    fn challenge(&self) -> String;

    /// Looks at a request's headers: whom they prove, or that they carry nothing of this
    /// authenticator's.
    ///
    /// # Errors
    /// [`InvalidCredentials`] where they carry something of this authenticator's that is no
    /// good. No other authenticator is then asked.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Principal>, InvalidCredentials>;
}

/// Credentials were given and are no good. It does not say in what way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the credentials are not valid here")]
pub struct InvalidCredentials;

/// Whom the server lets in.
#[derive(Clone)]
pub enum Auth {
    /// Everybody, as one and the same anonymous principal: for development.
    Anonymous,
    /// Those whom one of these knows.
    Required(Vec<Arc<dyn Authenticator>>),
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Required(_) => "Required",
        })
    }
}

impl Auth {
    /// Lets in who has one of the keys in a file.
    #[must_use]
    pub fn api_keys(keys: ApiKeys) -> Self {
        Self::Required(vec![Arc::new(keys)])
    }

    /// Whether everybody is let in.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    pub(crate) async fn admit(&self, headers: &HeaderMap) -> Result<Principal, Denied> {
        let authenticators = match self {
            Self::Anonymous => return Ok(Principal::anonymous()),
            Self::Required(authenticators) => authenticators,
        };
        for authenticator in authenticators {
            match authenticator.authenticate(headers).await {
                Ok(Some(principal)) => return Ok(principal),
                Ok(None) => {}
                Err(InvalidCredentials) => break,
            }
        }
        Err(Denied {
            challenges: authenticators.iter().map(|a| a.challenge()).collect(),
        })
    }

    pub(crate) fn schemes(&self) -> Vec<(String, SecurityScheme)> {
        match self {
            Self::Anonymous => Vec::new(),
            Self::Required(all) => all.iter().flat_map(|a| a.schemes()).collect(),
        }
    }
}

/// Nobody was let in.
#[derive(Debug)]
pub(crate) struct Denied {
    pub(crate) challenges: Vec<String>,
}

/// API keys, sent as `Authorization: Bearer KEY` or in a header of their own.
#[derive(Debug)]
pub struct ApiKeys {
    file: KeyFile,
    header: HeaderName,
}

impl ApiKeys {
    /// Keys kept in a file (as hashes; see [`KeyFile`]), with `X-API-Key` as their header.
    #[must_use]
    pub fn new(file: KeyFile) -> Self {
        Self {
            file,
            header: HeaderName::from_static("x-api-key"),
        }
    }

    /// Takes them in another header.
    #[must_use]
    pub fn in_header(mut self, header: HeaderName) -> Self {
        self.header = header;
        self
    }
}

#[async_trait]
impl Authenticator for ApiKeys {
    fn schemes(&self) -> Vec<(String, SecurityScheme)> {
        let bearer = SecurityScheme::Http {
            description: Some("An API key as a bearer token".into()),
            scheme: "Bearer".into(),
            bearer_format: None,
        };
        let header = SecurityScheme::ApiKey {
            description: Some("An API key in a header of its own".into()),
            location: "header".into(),
            name: self.header.as_str().to_owned(),
        };
        vec![
            ("apiKeyBearer".into(), bearer),
            ("apiKeyHeader".into(), header),
        ]
    }

    fn challenge(&self) -> String {
        "Bearer realm=\"a2a\"".into()
    }

    async fn authenticate(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Principal>, InvalidCredentials> {
        let all = |name| headers.get_all(name).iter().collect::<Vec<_>>();
        let key = match (&all(&header::AUTHORIZATION)[..], &all(&self.header)[..]) {
            ([], []) => return Ok(None),
            ([authorization], []) => match bearer(authorization.as_bytes()) {
                Some(key) => key,
                // Another scheme, which another authenticator may know.
                None => return Ok(None),
            },
            ([], [key]) => key.as_bytes(),
            // Two credentials: which one counts is not for the caller to leave open.
            _ => return Err(InvalidCredentials),
        };
        match self.file.subject(key) {
            Some(subject) => Ok(Some(Principal::new("api-key", &subject))),
            None => Err(InvalidCredentials),
        }
    }
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}
