//! Helpers for untrusted text.

/// Returns at most the first `most` bytes of a text, cut at a character boundary.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Percent-decodes a part of a URI.
#[cfg(any(feature = "mcp", feature = "openapi"))]
pub(crate) fn percent_decoded(part: &str) -> String {
    // In a URI `+` is literal, unlike in a form.
    let form = format!("x={}", part.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}
