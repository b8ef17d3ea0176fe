//! Extractors with limits for request bodies.

use std::{borrow::Cow, time::Duration};

use agent::llm::mend_surrogates;
use axum::{
    RequestExt,
    body::{Bytes, HttpBody},
    extract::{FromRequest, FromRequestParts, Request, rejection::BytesRejection},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// Timeout of a whole body, however steadily it arrives.
const BODY_TIME: Duration = Duration::from_secs(120);
/// Maximum nesting depth of JSON.
const DEPTH: usize = 64;

/// Extractor of a JSON body of content type `application/json` with limited nesting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let kind =
            request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !is_json(kind) {
            let message = "the body must be JSON with 'Content-Type: application/json'";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
        }
        let body = body(request, state).await?;
        if is_deeper(&body, DEPTH) {
            return Err(ApiError::invalid(format!(
                "the body is nested too deeply: at most {DEPTH} levels are allowed"
            )));
        }
        Ok(Self(parsed(&body).map_err(|e| ApiError::invalid(format!("invalid body: {e}")))?))
    }
}

/// Parses JSON. Half a surrogate pair, which clients send that cut texts anywhere, becomes U+FFFD.
fn parsed<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(body).or_else(|error| match str::from_utf8(body).map(mend_surrogates) {
        Ok(Cow::Owned(mended)) => serde_json::from_str(&mended),
        _ => Err(error),
    })
}

/// Reads a whole body within the limits on size and time.
pub(crate) async fn body<S: Sync>(request: Request, _: &S) -> Result<Bytes, ApiError> {
    let slow =
        || ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body was incomplete or arrived too slowly");
    let large =
        || ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body exceeds the server's size limit");
    // A body whose declared length exceeds the limit is rejected at once.
    let said = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let request = request.with_limited_body();
    if request.body().size_hint().upper().is_some_and(|most| said > Some(most)) {
        return Err(large());
    }
    let all = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, &()));
    all.await.map_err(|_| slow())?.map_err(|rejection| match rejection {
        BytesRejection::FailedToBufferBody(e) if e.status() == StatusCode::PAYLOAD_TOO_LARGE => large(),
        _ => slow(),
    })
}

/// Extractor of a whole body of any content type, within the limits on size and time.
#[derive(Clone, Debug)]
pub(crate) struct RawBody(pub(crate) Bytes);

impl<S: Sync> FromRequest<S> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        body(request, state).await.map(Self)
    }
}

/// Extractor of a query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|e| ApiError::invalid(e.body_text()))
    }
}

/// Returns the idempotency key of a request.
///
/// # Errors
/// 400 for an invalid key.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= 200);
    key.map(Some)
        .ok_or_else(|| ApiError::invalid("invalid Idempotency-Key: it must have 1 to 200 visible ASCII characters"))
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// True if brackets are nested deeper than `most`. Works on bytes, before any value is built.
fn is_deeper(json: &[u8], most: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_of_brackets_and_not_of_texts() {
        assert!(is_deeper(b"[[[1]]]", 2) && !is_deeper(b"[[[1]]]", 3));
        assert!(!is_deeper(br#"["[[[[\"[[["]"#, 1));
        assert!(!is_deeper(b"[][][][]", 1));
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        assert_eq!(parsed::<String>(br#""hi \ud83d""#).expect("a text"), "hi \u{fffd}");
        assert!(parsed::<String>(b"\"hi").is_err());
    }

    #[test]
    fn json_is_what_says_so() {
        assert!(is_json("application/json; charset=utf-8") && is_json("application/vnd.a+json"));
        assert!(!is_json("text/plain") && !is_json(""));
    }
}
