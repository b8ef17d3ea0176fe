//! HTTP for tools: which addresses may be reached, one exchange with one of them, and its body within limits.

mod address;
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
mod body;
#[cfg(any(feature = "openapi", feature = "web"))]
mod bounded;
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
mod exchange;
mod reach;
#[cfg(any(feature = "openapi", feature = "web"))]
mod redirects;
pub(crate) mod tls;

#[cfg(feature = "e2b")]
pub(crate) use self::body::Reader;
pub(crate) use self::reach::{Reach, System};
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
pub(crate) use self::{
    body::{Body, TooMuch},
    exchange::{Call, Exchange, Http, host},
};
#[cfg(any(feature = "openapi", feature = "web"))]
pub(crate) use self::{bounded::bounded, redirects::Redirects};

#[cfg(feature = "web")]
pub use self::reach::Resolver;

/// Takes secrets out of a text that others will read.
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
pub(crate) fn redacted(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET) {
        let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        for form in [*secret, &form, &encoded(secret), &secret.replace('/', "\\/")] {
            text = text.replace(form, "[redacted]");
        }
    }
    text
}

/// A shorter secret keeps nothing safe, and taking it out would mangle texts.
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
const SHORTEST_SECRET: usize = 6;

/// A text of which only what a segment of a path may hold is not written with `%`.
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
