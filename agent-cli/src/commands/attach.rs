//! Files that go along with a prompt.

use std::{fs, path::Path};

use agent::{
    Error, Part, Result,
    message::{Media, MediaSource},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::output::cannot;

/// Bytes of one file at most; more is more than providers take.
const MOST: u64 = 50 << 20;

/// A file as a part of a message: by its ending, or else as text.
///
/// # Errors
/// If it cannot be read, is too large, or is neither text nor of a kind that is known.
pub(crate) fn attached(file: &Path) -> Result<Part> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let bytes = read(file)?;
    if bytes.is_empty() {
        return Err(Error::config(format!("{} is empty", file.display())));
    }
    let image = |mime: &str| Part::Image(media(&bytes, mime, &name));
    let document = |mime: &str| Part::Document(media(&bytes, mime, &name));
    Ok(match ending.as_str() {
        "png" => image("image/png"),
        "jpg" | "jpeg" => image("image/jpeg"),
        "gif" => image("image/gif"),
        "webp" => image("image/webp"),
        "pdf" => document("application/pdf"),
        "docx" => document("application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        "xlsx" => document("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        "mp3" => document("audio/mpeg"),
        "wav" => document("audio/wav"),
        "mp4" => document("video/mp4"),
        _ => match text_of(bytes) {
            Some(text) => {
                Part::text(format!("<file name=\"{}\">\n{text}\n</file>", name.replace(['"', '<', '>'], "_")))
            }
            None => {
                let known = "texts, png, jpg, gif, webp, pdf, docx, xlsx, mp3, wav, mp4";
                return Err(Error::config(format!(
                    "{}: no model reads such a file; known are {known}",
                    file.display()
                )));
            }
        },
    })
}

/// A file as text.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read_file(file: &Path) -> Result<String> {
    let bytes = read(file)?;
    text_of(bytes).ok_or_else(|| Error::config(format!("{} is not a text file", file.display())))
}

/// Decodes UTF-8, and UTF-16 with a byte order mark, as Windows writes it.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    let units = |read: fn([u8; 2]) -> u16| -> Option<String> {
        let (pairs, rest) = bytes[2..].as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| read(*pair)).collect();
        String::from_utf16(&units).ok().filter(|text| rest.is_empty() && !text.is_empty())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => units(u16::from_le_bytes),
        [0xfe, 0xff, ..] => units(u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let failed = |e| cannot(file.display(), e);
    let size = fs::metadata(file).map_err(failed)?.len();
    if size > MOST {
        return Err(Error::config(format!("{} has {} MiB; 50 at most can go along", file.display(), size >> 20)));
    }
    fs::read(file).map_err(failed)
}

fn media(bytes: &[u8], mime: &str, name: &str) -> Media {
    Media::new(MediaSource::Base64(STANDARD.encode(bytes))).with_mime(mime).with_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_utf_8_or_utf_16_with_its_mark() {
        let utf16 = |text: &str| [0xfeff].into_iter().chain(text.encode_utf16()).collect::<Vec<u16>>();
        let little: Vec<u8> = utf16("Grüße 🙂").iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = utf16("Grüße 🙂").iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for bytes in ["Grüße 🙂".as_bytes().to_vec(), little, big] {
            assert_eq!(text_of(bytes).as_deref(), Some("Grüße 🙂"));
        }
        assert_eq!(text_of(vec![0xff, 0xfe, 0x41]), None);
        assert_eq!(text_of(vec![0xff, 0xd8]), None);
        assert_eq!(text_of(vec![0xff, 0xfe]), None);
    }

    #[test]
    fn an_empty_file_is_refused_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("empty.png");
        fs::write(&file, "").expect("written");
        assert!(attached(&file).expect_err("empty").message().contains("empty.png is empty"));
    }
}
