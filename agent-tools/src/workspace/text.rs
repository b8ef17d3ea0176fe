//! Helpers for file text.

use std::borrow::Cow;

/// Number of bytes at the start of a file that are checked for binary content.
const LOOKED_AT: usize = 8 << 10;

/// Returns true if the bytes are not text.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

/// Returns the line, truncated with a note if it is longer than `most` bytes.
pub(super) fn cut(line: &str, most: usize) -> Cow<'_, str> {
    match start(line, most) {
        all if all.len() == line.len() => line.into(),
        start => format!("{start} [cut: the line has {} bytes]", line.len()).into(),
    }
}

/// Returns the longest prefix of at most `most` bytes.
pub(super) fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Formats a count: `1 file`, `2 files`.
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
