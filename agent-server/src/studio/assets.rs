//! Embedded files of the web UI.

use std::fmt::Write as _;

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rust_embed::Embed;

/// Content security policy: the page may load, run and reach only its own origin; images may also
/// be inline data or fetched with the page's key.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Security headers of every response: no content sniffing, no framing, no referrers.
const SECURE: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

#[derive(Embed)]
#[folder = "studio/page"]
struct Page;

/// Serves a file of the web UI. Browsers revalidate it on each use, so that the page never runs
/// against the server of another release.
pub(super) fn serve(name: &str, asked: &HeaderMap) -> Response {
    let Some(file) = Page::get(name) else {
        return (StatusCode::NOT_FOUND, "unknown file").into_response();
    };
    let tag = tag(&file.metadata.sha256_hash());
    let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let caching = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if known.is_some_and(|tags| tags.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, kind(name, file.metadata.mimetype()))], file.data).into_response()
}

fn tag(hash: &[u8]) -> String {
    let digits = hash.iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    });
    format!("\"{digits}\"")
}

/// Returns the media type with its charset; licence files have no extension.
fn kind(name: &str, guessed: &str) -> String {
    match name.rsplit_once('.') {
        None => "text/plain; charset=utf-8".to_owned(),
        Some(_) if guessed.starts_with("text/") => format!("{guessed}; charset=utf-8"),
        Some(_) => guessed.to_owned(),
    }
}

pub(super) async fn secured(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in SECURE {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
