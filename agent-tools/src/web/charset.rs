//! Texts in whatever encoding they came.

use encoding_rs::{Encoding, UTF_8};

/// How far into an HTML page its encoding may be said, as browsers have it.
const PRESCAN: usize = 1024;

/// The text. A byte order mark decides, then what the header says, then what an HTML page says of itself. Else it is UTF-8, or windows-1252 where it cannot be that; what does
/// not fit is shown as U+FFFD.
pub(super) fn decode(bytes: &[u8], content_type: &str, is_html: bool) -> String {
    let said = charset_of(content_type).or_else(|| is_html.then(|| meta(bytes)).flatten());
    let encoding = said.unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0.into_owned()
}

fn charset_of(content_type: &str) -> Option<&'static Encoding> {
    let lower = content_type.to_ascii_lowercase();
    let at = lower.find("charset")?;
    let value = lower[at + "charset".len()..].trim_start().strip_prefix('=')?;
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| c.is_whitespace() || "\"';>/,".contains(c)).unwrap_or(value.len());
    Encoding::for_label(&value.as_bytes()[..end])
}

/// What `<meta charset=..>`, or the `content` of a `<meta http-equiv=..>`, says at the beginning of a page.
fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let tags = start.match_indices("<meta").map(|(at, _)| &start[at..]);
    let encoding = tags.map(|tag| &tag[..tag.find('>').unwrap_or(tag.len())]).find_map(charset_of)?;
    // A page that was read this far is not in UTF-16, whatever it says.
    Some(if encoding.name().starts_with("UTF-16") { UTF_8 } else { encoding })
}

/// UTF-8 if it is that, or else what most old pages are in.
fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { encoding_rs::WINDOWS_1252 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_the_header_the_page_and_the_bytes_say_what_a_text_is_in() {
        let cases: [(&[u8], &str, bool, &str); 12] = [
            (b"caf\xc3\xa9", "text/plain", false, "café"),
            (b"caf\xe9", "text/plain", false, "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", false, "café"),
            (b"caf\xc3\xa9", "text/plain; charset=\"utf-8\"", false, "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=latin1", false, "café"),
            (b"\xff\xfea\0", "text/plain", false, "a"),
            (b"\x82\xa0", "text/html; charset=Shift_JIS", true, "あ"),
            (b"<meta charset='shift_jis'>\x82\xa0", "text/html", true, "<meta charset='shift_jis'>あ"),
            (b"<meta charset=utf-16>caf\xc3\xa9", "text/html", true, "<meta charset=utf-16>café"),
            (
                b"<meta http-equiv=x content='text/html; charset=gbk'>\xc4\xe3",
                "",
                true,
                "<meta http-equiv=x content='text/html; charset=gbk'>你",
            ),
            (b"caf\xe9", "text/plain; charset=no-such-thing", false, "café"),
            (b"\xe3\x81", "text/plain; charset=utf-8", false, "\u{fffd}"),
        ];
        for (bytes, content_type, is_html, expected) in cases {
            assert_eq!(decode(bytes, content_type, is_html), expected, "{content_type} {bytes:?}");
        }
    }
}
