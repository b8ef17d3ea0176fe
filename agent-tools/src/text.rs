//! Texts of others, within limits.

/// The first `most` bytes of a text, or a few fewer: no character is cut.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// What stands in a part of a URI, with each `%` and its two digits as the byte that they write.
#[cfg(any(feature = "mcp", feature = "openapi"))]
pub(crate) fn percent_decoded(part: &str) -> String {
    // A URI writes `+` as itself, unlike a form.
    let form = format!("x={}", part.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(form.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}
