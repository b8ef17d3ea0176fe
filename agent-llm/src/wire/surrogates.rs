//! Invalid UTF-8 and lone surrogates.

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;

/// Finds the prefix of numeric escapes, which few texts contain.
static BY_NUMBER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));

/// Decodes a body as text. Invalid bytes become replacement characters, so that the rest can be
/// parsed.
pub(crate) fn text_of(body: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(body) {
        Ok(text) => mend_surrogates(text),
        Err(_) => Cow::Owned(mend_surrogates(&String::from_utf8_lossy(body)).into_owned()),
    }
}

/// Replaces escapes of lone surrogates by replacement characters: servers that split text inside a
/// character send such escapes, and JSON with one cannot be parsed.
pub fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    if BY_NUMBER.find(bytes).is_none() {
        return Cow::Borrowed(json);
    }
    let half = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let unit = u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        (0xD800..0xE000).contains(&unit).then_some(unit < 0xDC00)
    };
    let (mut mended, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(next) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        at += next;
        at += match half(at) {
            None => 2,
            Some(true) if half(at + 6) == Some(false) => 12,
            Some(_) => {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                copied = at + 6;
                6
            }
        };
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[copied..]);
    Cow::Owned(mended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_slips_is_borrowed_and_bytes_that_are_no_text_are_replaced() {
        assert!(matches!(text_of(r#""é""#.as_bytes()), Cow::Borrowed(r#""é""#)));
        assert_eq!(text_of(b"\"a\xff\\ud83d\""), "\"a\u{fffd}\\ufffd\"");
    }

    #[test]
    fn half_a_character_becomes_a_replacement_character() {
        let mended = |json: &str| serde_json::from_str::<String>(&mend_surrogates(json)).expect("a text");
        assert_eq!(mended(r#""a\ud83d\uDE00b""#), "a😀b", "both halves are one character");
        assert_eq!(mended(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(mended(r#""\ude00\ud83d\ud83d\ude00\n""#), "\u{fffd}\u{fffd}😀\n");
        assert_eq!(mended(r#""\\ud83d \u00e9""#), r"\ud83d é", "an escaped backslash is none");
        assert!(matches!(mend_surrogates(r#""plain \u00e9""#), Cow::Borrowed(_)));
        mend_surrogates(r"\ud83d\");
        mend_surrogates(r"\ud8é\ud");
    }
}
