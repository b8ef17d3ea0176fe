//! Texts of others, within limits.

/// The first `most` bytes of a text, or a few fewer: no character is cut.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
