//! Character encoding detection.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes at the start of an HTML page that are searched for its encoding, as in browsers.
const PRESCAN: usize = 1024;

/// Decodes the text. A byte order mark takes precedence, then the header, then the declaration of
/// an HTML page or an XML document. Otherwise the text is UTF-8, UTF-16 if every second byte is
/// zero, or windows-1252; invalid bytes become U+FFFD.
pub(super) fn decode(bytes: &[u8], content_type: &str, is_html: bool) -> String {
    let said = charset_of(content_type).or_else(|| if is_html { meta(bytes) } else { declared(bytes) });
    let encoding = said.unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0.into_owned()
}

fn charset_of(content_type: &str) -> Option<&'static Encoding> {
    label(&content_type.to_ascii_lowercase(), "charset")
}

/// Returns the encoding label after a name and `=` in lower-case text.
fn label(lower: &str, name: &str) -> Option<&'static Encoding> {
    let at = lower.find(name)?;
    let value = lower[at + name.len()..].trim_start().strip_prefix('=')?;
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| c.is_whitespace() || "\"';>/,".contains(c)).unwrap_or(value.len());
    Encoding::for_label(&value.as_bytes()[..end])
}

/// Returns the encoding that `<meta charset=..>`, or the `content` of a `<meta http-equiv=..>`,
/// declares at the start of a page.
fn meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    let tags = start.match_indices("<meta").map(|(at, _)| &start[at..]);
    let encoding = tags.map(|tag| &tag[..tag.find('>').unwrap_or(tag.len())]).find_map(charset_of)?;
    Some(not_utf16(encoding))
}

/// Returns the encoding that `<?xml encoding=..?>` declares at the start of a document.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.strip_prefix(b"<?xml")?;
    let start = String::from_utf8_lossy(&start[..start.len().min(PRESCAN)]).to_ascii_lowercase();
    label(&start[..start.find("?>")?], "encoding").map(not_utf16)
}

/// A declaration that was readable as single bytes cannot be in UTF-16, whatever it says.
fn not_utf16(encoding: &'static Encoding) -> &'static Encoding {
    if encoding.name().starts_with("UTF-16") { UTF_8 } else { encoding }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    match utf16(bytes) {
        Some(encoding) => encoding,
        None if std::str::from_utf8(bytes).is_ok() => UTF_8,
        None => encoding_rs::WINDOWS_1252, // encoding of most old pages
    }
}

/// Detects UTF-16 if the text begins with ASCII letters.
pub(super) fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(PRESCAN) & !1];
    let all = |fits: fn(u8, u8) -> bool| start.len() >= 4 && start.chunks_exact(2).all(|pair| fits(pair[0], pair[1]));
    if all(|low, high| low != 0 && high == 0) {
        Some(UTF_16LE)
    } else if all(|high, low| low != 0 && high == 0) {
        Some(UTF_16BE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_the_header_the_page_and_the_bytes_say_what_a_text_is_in() {
        let cases: [(&[u8], &str, bool, &str); 17] = [
            (b"caf\xc3\xa9", "text/plain", false, "café"),
            (b"caf\xe9", "text/plain", false, "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", false, "café"),
            (b"caf\xc3\xa9", "text/plain; charset=\"utf-8\"", false, "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=latin1", false, "café"),
            (b"\xff\xfea\0", "text/plain", false, "a"),
            (b"a\0b\0", "text/plain", false, "ab"),
            (b"\0a\0b", "application/xml", false, "ab"),
            (b"a\0\0\0", "text/plain", false, "a\0\0\0"),
            (
                b"<?xml version='1.0' encoding='ISO-8859-1'?>caf\xe9 <a encoding='utf-8'/>",
                "application/xml",
                false,
                "<?xml version='1.0' encoding='ISO-8859-1'?>café <a encoding='utf-8'/>",
            ),
            (b"<?xml encoding=\"utf-16\"?>caf\xc3\xa9", "text/xml", false, "<?xml encoding=\"utf-16\"?>café"),
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
