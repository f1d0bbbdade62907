//! A webhook as admitted for one attempt.

use std::net::SocketAddr;
use url::Url;

/// A webhook that was admitted: for one attempt, at these addresses and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The webhook in its canonical form: `http` or `https`, a host, no userinfo, no fragment.
    pub(crate) url: Url,
    /// The addresses to try, in this order; at least one.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Target {
    /// Whether the connection is under TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Host and port, as the `Host` header says them: the port only where it is not the scheme's.
    pub(crate) fn authority(&self) -> &str {
        self.url.authority()
    }
}
