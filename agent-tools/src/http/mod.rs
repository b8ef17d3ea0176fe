//! HTTP for tools: which addresses may be reached, one exchange with one of them, and its body within limits.

mod address;
#[cfg(any(feature = "openapi", feature = "web"))]
mod body;
#[cfg(any(feature = "openapi", feature = "web"))]
mod bounded;
#[cfg(any(feature = "openapi", feature = "web"))]
mod exchange;
mod reach;
pub(crate) mod tls;

pub(crate) use self::reach::{Reach, System};
#[cfg(any(feature = "openapi", feature = "web"))]
pub(crate) use self::{
    body::{Body, TooMuch},
    bounded::bounded,
    exchange::{Call, Exchange, Http, host},
};

#[cfg(feature = "web")]
pub use self::reach::Resolver;

/// Takes secrets out of a text that others will read.
#[cfg(any(feature = "openapi", feature = "web"))]
pub(crate) fn redacted(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET) {
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        for form in [*secret, &encoded, &secret.replace('/', "\\/")] {
            text = text.replace(form, "[redacted]");
        }
    }
    text
}

#[cfg(any(feature = "openapi", feature = "web"))]
/// A shorter secret keeps nothing safe, and taking it out would mangle texts.
const SHORTEST_SECRET: usize = 6;

#[cfg(any(feature = "openapi", feature = "web"))]
/// The first `most` bytes of a text, or a few fewer: no character is cut.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
