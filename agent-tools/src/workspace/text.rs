//! Files as text that a model is shown.

use std::borrow::Cow;

/// Where a file that is not text gives itself away, in bytes from its start.
const LOOKED_AT: usize = 8 << 10;

/// True if the bytes are not text.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}

/// The line, or the start of it with a note if it is longer than `most` bytes.
pub(super) fn cut(line: &str, most: usize) -> Cow<'_, str> {
    match start(line, most) {
        all if all.len() == line.len() => line.into(),
        start => format!("{start} [cut: the line has {} bytes]", line.len()).into(),
    }
}

/// As much of the text as fits into `most` bytes.
pub(super) fn start(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// `1 file`, `2 files`.
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
