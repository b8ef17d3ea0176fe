//! Image formats and dimensions, from the first bytes.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

/// Image format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Jpeg,
    Png,
    Gif,
    Webp,
    Heic,
    Svg,
    Bmp,
    Tiff,
    Pdf,
    /// Text, such as the error page of a server.
    Text,
    Empty,
}

impl Kind {
    pub(super) fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Heic => "image/heic",
            Self::Svg => "image/svg+xml",
            Self::Bmp => "image/bmp",
            Self::Tiff => "image/tiff",
            Self::Pdf => "application/pdf",
            Self::Text => "text",
            Self::Empty => "an empty file",
        }
    }
}

/// Truncated base64 may end in incomplete bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// Number of base64 characters to inspect for the format, and for the dimensions of a JPEG, which
/// may follow a thumbnail.
const HEAD: usize = 512;
const LONG_HEAD: usize = 512 * 1024;

/// Returns the format of the image in `base64`; `None` if it is unknown.
pub(super) fn kind(base64: &str) -> Option<Kind> {
    let head = bytes(base64, HEAD);
    let text = String::from_utf8_lossy(&head);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']);
    Some(match head.as_slice() {
        [] if base64.trim().is_empty() => Kind::Empty,
        [0xff, 0xd8, 0xff, ..] => Kind::Jpeg,
        [0x89, b'P', b'N', b'G', ..] => Kind::Png,
        [b'G', b'I', b'F', b'8', ..] => Kind::Gif,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Kind::Webp,
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Kind::Bmp,
        [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => Kind::Tiff,
        [b'%', b'P', b'D', b'F', ..] => Kind::Pdf,
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] if is_heic(brand) => Kind::Heic,
        _ if text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg")) => Kind::Svg,
        _ if text.starts_with(['<', '{']) && !text.contains(['\0', '\u{fffd}']) => Kind::Text,
        _ => return None,
    })
}

fn is_heic(brand: &[u8]) -> bool {
    ["heic", "heix", "hevc", "heim", "heis", "mif1", "msf1"].iter().any(|known| brand.starts_with(known.as_bytes()))
}

/// Returns width and height in pixels; `None` if the first bytes do not contain them.
pub(super) fn pixels(base64: &str, kind: Kind) -> Option<(u32, u32)> {
    let head = bytes(base64, if kind == Kind::Jpeg { LONG_HEAD } else { HEAD });
    let le16 = |at: usize| Some(u32::from(*head.get(at)?) | u32::from(*head.get(at + 1)?) << 8);
    let be16 = |at: usize| Some(u32::from(*head.get(at)?) << 8 | u32::from(*head.get(at + 1)?));
    let be32 = |at: usize| Some(be16(at)? << 16 | be16(at + 2)?);
    match kind {
        Kind::Png => Some((be32(16)?, be32(20)?)),
        Kind::Gif => Some((le16(6)?, le16(8)?)),
        Kind::Webp => match head.get(12..16)? {
            b"VP8 " => Some((le16(26)? & 0x3fff, le16(28)? & 0x3fff)),
            b"VP8L" => {
                let bits = le16(21)? | le16(23)? << 16;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8X" => {
                let le24 = |at: usize| Some(le16(at)? | u32::from(*head.get(at + 2)?) << 16);
                Some((le24(24)? + 1, le24(27)? + 1))
            }
            _ => None,
        },
        Kind::Jpeg => {
            let mut at = 2;
            loop {
                let marker = *head.get(at + 1)?;
                match (*head.get(at)?, marker) {
                    (0xff, 0xff) => at += 1,
                    // A start-of-frame marker, excluding the tables in the same range.
                    (0xff, 0xc0..=0xcf) if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                        return Some((be16(at + 7)?, be16(at + 5)?));
                    }
                    (0xff, 0x01 | 0xd0..=0xd8) => at += 2,
                    (0xff, _) => at += 2 + usize::try_from(be16(at + 2)?).ok()?,
                    _ => return None,
                }
            }
        }
        _ => None,
    }
}

/// Decodes the first characters, as far as they are base64.
pub(super) fn bytes(base64: &str, most: usize) -> Vec<u8> {
    let head: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').take(most).collect();
    // A single trailing character does not encode a byte.
    let whole = head.len() - usize::from(head.len() % 4 == 1);
    LENIENT.decode(&head[..whole]).unwrap_or_default()
}
