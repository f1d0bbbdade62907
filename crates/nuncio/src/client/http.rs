//! HTTP as this client needs it: POST and GET, over TLS where the address says so.
//!
//! No redirect is followed, since where one leads is for the caller to judge; no cookie is kept;
//! no proxy is taken from the environment. Every answer that is read whole is read up to a limit.
//!
//! This is hyper, not reqwest: the server is built on hyper already, and what reqwest adds is
//! what this client must not do. The certificates that the system trusts are loaded when the
//! first `https` address is met (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others); where the
//! system has none, as in a bare container, Mozilla's list stands in.

use super::ClientError;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{io, sync::OnceLock, time::Duration};

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A peer that is gone without a word is noticed after about a minute and a half.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("nuncio/", env!("CARGO_PKG_VERSION")));

/// Connections, opened when they are needed and used again.
#[derive(Debug)]
pub(crate) struct Http {
    plain: Client<HttpConnector, Full<Bytes>>,
    tls: OnceLock<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
}

impl Http {
    /// No connection yet.
    pub(crate) fn new() -> Self {
        Self {
            plain: client(connector()),
            tls: OnceLock::new(),
        }
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] where there is no connection to be had, and
    /// [`ClientError::Broken`] where it ended without an answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        request
            .headers_mut()
            .entry(header::USER_AGENT)
            .or_insert(USER_AGENT);
        let address = request.uri().clone();
        let answer = if address.scheme_str() == Some("https") {
            self.tls()?.request(request).await
        } else {
            self.plain.request(request).await
        };
        answer.map_err(|error| explain(&address, &error))
    }

    fn tls(&self) -> Result<&Client<HttpsConnector<HttpConnector>, Full<Bytes>>, ClientError> {
        if self.tls.get().is_none() {
            let made = tls().map_err(|error| ClientError::Usage(format!("no TLS: {error}")))?;
            // Another task may have been faster; then its client is as good.
            let _ = self.tls.set(client(made));
        }
        self.tls
            .get()
            .ok_or_else(|| ClientError::Usage("no TLS".into()))
    }
}

fn client<C>(connector: C) -> Client<C, Full<Bytes>>
where
    C: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new()).build(connector)
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_WITHIN));
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE / 2));
    connector.set_keepalive_retries(Some(4));
    connector
}

fn tls() -> io::Result<HttpsConnector<HttpConnector>> {
    let provider = rustls::crypto::ring::default_provider;
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(provider())
        .or_else(|_| HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider()))
        .map_err(io::Error::other)?;
    let mut tcp = connector();
    tcp.enforce_http(false);
    Ok(builder.https_only().enable_http1().wrap_connector(tcp))
}

fn explain(address: &Uri, error: &Error) -> ClientError {
    let reason = root(error);
    if error.is_connect() {
        ClientError::Unreachable {
            address: server_of(address),
            reason,
        }
    } else {
        ClientError::Broken(reason)
    }
}

/// The innermost cause, which is the one that says something.
fn root(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// Scheme, host and port.
pub(crate) fn server_of(address: &Uri) -> String {
    let scheme = address.scheme_str().unwrap_or("http");
    format!(
        "{scheme}://{}",
        address
            .authority()
            .map_or("", |authority| authority.as_str())
    )
}

/// Reads a body whole.
///
/// # Errors
/// Where it is larger than `limit` or ends early.
pub(crate) async fn read(body: Incoming, limit: usize) -> Result<Bytes, ClientError> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ClientError::Broken(format!(
            "it is larger than {limit} bytes"
        ))),
        Err(error) => Err(ClientError::Broken(root(error.as_ref()))),
    }
}

/// An answer's media type, without parameters and in lower case.
pub(crate) fn media_type<B>(response: &Response<B>) -> String {
    let value = response.headers().get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    text.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}
