//! HTTP for tools: address policy, single exchanges with allowed addresses, and bodies within
//! limits.

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
pub(crate) use self::reach::{AddressPolicy, System};
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
pub(crate) use self::{
    body::{Body, TooMuch},
    exchange::{Call, Exchange, Http, host},
};
#[cfg(any(feature = "openapi", feature = "web"))]
pub(crate) use self::{bounded::bounded, redirects::Redirects};

#[cfg(feature = "web")]
pub use self::reach::Resolver;

/// Redacts secrets in a text for others.
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

/// Minimum length of a redacted secret: redacting shorter ones protects nothing and would mangle
/// texts.
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
const SHORTEST_SECRET: usize = 6;

/// Percent-encodes a text as one path segment.
#[cfg(any(feature = "a2a", feature = "e2b", feature = "openapi", feature = "web"))]
pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
