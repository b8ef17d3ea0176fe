//! Images of a conversation, small enough to be kept and drawn.

use std::{fmt, io::Cursor};

use agent::{
    Part,
    message::{Media, MediaSource},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use image::{ImageReader, Limits, RgbImage, imageops::FilterType};

/// Points of a kept image: a column of the screen each, and half a row.
const MOST: (u32, u32) = (80, 60);
/// Bytes that decoding an image may take.
const MOST_BYTES: u64 = 256 << 20;

/// An image, cut down to what a terminal can show of it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Picture {
    /// Its name and its size.
    pub(super) about: String,
    /// None if it is at an address, or of no kind that is known here.
    pub(super) points: Option<RgbImage>,
}

impl Picture {
    /// The images among the parts of a message.
    pub(super) fn all(parts: &[Part]) -> impl Iterator<Item = Self> {
        parts.iter().filter_map(|part| match part {
            Part::Image(media) => Some(Self::of(media)),
            _ => None,
        })
    }

    fn of(media: &Media) -> Self {
        let name = media.name.clone().unwrap_or_else(|| "image".to_owned());
        let bytes = match &media.source {
            MediaSource::Base64(text) => STANDARD.decode(text).ok(),
            _ => None,
        };
        let image = bytes.and_then(|bytes| {
            let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
            let mut limits = Limits::default();
            limits.max_alloc = Some(MOST_BYTES);
            reader.limits(limits);
            reader.decode().ok()
        });
        match image {
            Some(image) => {
                let about = format!("{name}, {} x {}", image.width(), image.height());
                let points = match image.width() > MOST.0 || image.height() > MOST.1 {
                    true => image.resize(MOST.0, MOST.1, FilterType::Triangle),
                    false => image,
                };
                Self { about, points: Some(points.to_rgb8()) }
            }
            None => Self { about: name, points: None },
        }
    }
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.about)
    }
}
