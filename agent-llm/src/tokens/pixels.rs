//! Image dimensions from the first bytes of a file.

/// Returns width and height in pixels; `None` if the data is not a PNG, GIF, WebP or JPEG, or ends
/// too early.
pub(super) fn size(file: &[u8]) -> Option<(u32, u32)> {
    match file {
        [0x89, b'P', b'N', b'G', ..] => Some((big(file, 16, 4)?, big(file, 20, 4)?)),
        [b'G', b'I', b'F', ..] => Some((little(file, 6, 2)?, little(file, 8, 2)?)),
        [b'R', b'I', b'F', b'F', ..] if file.get(8..12)? == b"WEBP" => webp(file),
        [0xff, 0xd8, ..] => jpeg(file),
        _ => None,
    }
}

fn webp(file: &[u8]) -> Option<(u32, u32)> {
    match file.get(12..16)? {
        b"VP8 " => Some((little(file, 26, 2)? & 0x3fff, little(file, 28, 2)? & 0x3fff)),
        b"VP8L" => {
            let both = little(file, 21, 4)?;
            Some(((both & 0x3fff) + 1, ((both >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(file, 24, 3)? + 1, little(file, 27, 3)? + 1)),
        _ => None,
    }
}

/// A JPEG is a sequence of segments; the one that begins the frame contains the dimensions.
fn jpeg(file: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = match file.get(at..at + 2)? {
            [0xff, 0xff] => {
                at += 1; // padding
                continue;
            }
            [0xff, marker] => *marker,
            _ => return None,
        };
        // All start-of-frame markers, without the tables in the same range.
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((big(file, at + 7, 2)?, big(file, at + 5, 2)?));
        }
        let alone = matches!(marker, 0x01 | 0xd0..=0xd8);
        at += if alone { 2 } else { 2 + big(file, at + 2, 2)?.max(2) as usize };
    }
}

fn big(file: &[u8], at: usize, bytes: usize) -> Option<u32> {
    Some(file.get(at..at + bytes)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

fn little(file: &[u8], at: usize, bytes: usize) -> Option<u32> {
    Some(file.get(at..at + bytes)?.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn padded(parts: &[&[u8]]) -> Vec<u8> {
        let mut file = parts.concat();
        file.resize(file.len() + 8, 0);
        file
    }

    #[test]
    fn each_kind_of_file_says_how_large_it_is() {
        let png = padded(&[b"\x89PNG\r\n\x1a\n", b"\0\0\0\rIHDR", &640_u32.to_be_bytes(), &480_u32.to_be_bytes()]);
        let gif = padded(&[b"GIF89a", &640_u16.to_le_bytes(), &480_u16.to_le_bytes()]);
        let riff = |kind: &[u8], rest: &[u8]| padded(&[b"RIFF\0\0\0\0WEBP", kind, b"\0\0\0\0", rest]);
        let lossy = riff(b"VP8 ", &[&[0; 6][..], &640_u16.to_le_bytes(), &480_u16.to_le_bytes()].concat());
        let lossless = riff(b"VP8L", &[&[0x2f][..], &(639_u32 | 479 << 14).to_le_bytes()].concat());
        let extended = riff(b"VP8X", &[&[0; 4][..], &639_u32.to_le_bytes()[..3], &479_u32.to_le_bytes()[..3]].concat());
        let frame = [&b"\xff\xc2\0\x11\x08"[..], &480_u16.to_be_bytes(), &640_u16.to_be_bytes()].concat();
        let jpeg = padded(&[b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x03x\xff", &frame]);
        for file in [png, gif, lossy, lossless, extended, jpeg] {
            assert_eq!(size(&file), Some((640, 480)), "{:?}", &file[..16]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(start in prop::sample::select(vec![&b"\x89PNG"[..], b"GIF", b"RIFF0000WEBPVP8 ", b"\xff\xd8\xff"]),
            rest in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = size(&[start, &rest].concat());
        }
    }
}
