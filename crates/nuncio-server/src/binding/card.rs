//! The agent card, served for both worlds.

use crate::server::Inner;
use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use nuncio_core::{
    AgentCard, ProtocolVersion,
    wire::card::{self, CardForm},
};
use sha2::{Digest, Sha256};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

/// How long a client may use a card without asking again.
const MAX_AGE: Duration = Duration::from_secs(300);

/// A card, encoded once in each of its forms.
#[derive(Debug)]
pub(crate) struct CardDocument {
    default: Form,
    v03: Form,
    v1: Form,
    modified: HeaderValue,
}

#[derive(Debug)]
struct Form {
    body: Bytes,
    etag: HeaderValue,
}

impl Form {
    fn new(card: &AgentCard, form: CardForm) -> Self {
        let body = Bytes::from(card::encode(card, form));
        let digest = Sha256::digest(&body);
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
        let etag = HeaderValue::from_str(&format!("\"{number:016x}\""))
            .expect("hexadecimal digits are a valid header");
        Self { body, etag }
    }
}

impl CardDocument {
    /// The card, which has the form `default` where a request names no version.
    pub(crate) fn new(card: &AgentCard, default: CardForm) -> Self {
        Self {
            default: Form::new(card, default),
            v03: Form::new(card, CardForm::V0_3),
            v1: Form::new(card, CardForm::V1_0),
            modified: HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
                .expect("a date is a valid header"),
        }
    }

    fn form(&self, headers: &HeaderMap) -> &Form {
        let asked = headers
            .get(ProtocolVersion::HEADER)
            .and_then(|value| value.to_str().ok());
        match asked
            .filter(|text| !text.trim().is_empty())
            .map(|t| ProtocolVersion::negotiate(Some(t)))
        {
            Some(Ok(ProtocolVersion::V0_3)) => &self.v03,
            Some(Ok(ProtocolVersion::V1_0)) => &self.v1,
            // A client of a version that is not spoken here sees from the card which ones are.
            Some(Err(_)) | None => &self.default,
        }
    }
}

/// `GET /.well-known/agent-card.json` (1.0 §8.2): to everybody, cacheable.
pub(crate) async fn handle(State(inner): State<Arc<Inner>>, headers: HeaderMap) -> Response {
    let form = inner.card.form(&headers);
    let caching = [
        (header::ETAG, form.etag.clone()),
        (header::LAST_MODIFIED, inner.card.modified.clone()),
        (header::VARY, HeaderValue::from_static("A2A-Version")),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_str(&format!("public, max-age={}", MAX_AGE.as_secs()))
                .expect("digits are a valid header"),
        ),
    ];
    if is_fresh(&headers, &form.etag) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    let json = [(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    )];
    (caching, json, form.body.clone()).into_response()
}

fn is_fresh(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let Ok(etag) = etag.to_str() else {
        return false;
    };
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.trim_start_matches("W/") == etag)
}
