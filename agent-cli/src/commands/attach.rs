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
        _ => match String::from_utf8(bytes) {
            Ok(text) => Part::text(format!("<file name=\"{}\">\n{text}\n</file>", name.replace(['"', '<', '>'], "_"))),
            Err(_) => {
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
    String::from_utf8(bytes).map_err(|_| Error::config(format!("{} is no text", file.display())))
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
