//! Media type detection by content: the client's declaration is not trusted.

/// Magic numbers, with their offsets and media types.
const BEGINNINGS: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
];

/// Document types that are archives: their bytes do not distinguish them.
const ARCHIVES: [&str; 3] = [
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
];

/// Returns the media type of these bytes. The declared type is only used for text, if it is a text
/// type.
pub(super) fn of<'a>(bytes: &[u8], said: &'a str) -> &'a str {
    let begins = |(at, with, _): &&(usize, &[u8], &str)| bytes.get(*at..).is_some_and(|rest| rest.starts_with(with));
    if let Some((_, _, mime)) = BEGINNINGS.iter().find(begins) {
        return mime;
    }
    let said = said.split(';').next().unwrap_or_default().trim();
    if bytes.starts_with(b"PK\x03\x04") {
        return if ARCHIVES.contains(&said) { said } else { "application/zip" };
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            if is_text(said) {
                said
            } else {
                "text/plain"
            }
        }
        _ => "application/octet-stream",
    }
}

/// True for media types of plain text.
pub(super) fn is_text(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || matches!(mime, "application/json" | "application/xml" | "application/yaml" | "application/toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_bytes_show() {
        for (bytes, said, is) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], "text/html", "image/png"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "", "image/webp"),
            (b"%PDF-1.7", "image/png", "application/pdf"),
            (b"<svg onload=alert(1)>", "image/svg+xml", "image/svg+xml"),
            (b"plain", "image/png", "text/plain"),
            (b"{}", "application/json; charset=utf-8", "application/json"),
            (b"\0\x01\xff", "image/png", "application/octet-stream"),
            (b"a\0b", "text/plain", "application/octet-stream"),
            (b"PK\x03\x04rest", ARCHIVES[0], ARCHIVES[0]),
            (b"PK\x03\x04rest", "image/png", "application/zip"),
        ] {
            assert_eq!(of(bytes, said), is, "{said}");
        }
    }
}
