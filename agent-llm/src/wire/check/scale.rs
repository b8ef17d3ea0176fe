//! Scaling of images to a provider's limits.

use std::{
    collections::VecDeque,
    io::Cursor,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{
    DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits as DecoderLimits, codecs::jpeg::JpegEncoder,
    metadata::Orientation,
};
use sha2::{Digest, Sha256};

use super::{media::Limits, sizes::Kind};

/// Maximum memory for decoding an image, in bytes.
const MOST_MEMORY: u64 = 512 * 1024 * 1024;

/// JPEG quality of a scaled image.
const QUALITY: u8 = 85;

/// Maximum number of encodings of one image.
const MOST_ATTEMPTS: u32 = 8;

/// Number of results kept: a conversation sends its images again with each request.
const MOST_KEPT: usize = 64;

/// An image within the limits.
#[derive(Clone)]
pub(super) struct Scaled {
    pub(super) base64: Arc<str>,
    pub(super) kind: Kind,
    pub(super) width: u32,
    pub(super) height: u32,
}

type Kept = VecDeque<(([u8; 32], Limits), Option<Scaled>)>;

static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// Returns the image scaled to the limits; `None` if it cannot be decoded. The result depends on
/// the image and the limits alone.
pub(super) fn scaled(base64: &str, kind: Kind, limits: Limits) -> Option<Scaled> {
    let key = (Sha256::digest(base64).into(), limits);
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, scaled)) = kept().iter().find(|(known, _)| *known == key) {
        return scaled.clone();
    }
    let scaled = decoded(base64, kind).and_then(|image| fitted(&image, limits));
    let mut kept = kept();
    if kept.len() == MOST_KEPT {
        kept.pop_front();
    }
    kept.push_back((key, scaled.clone()));
    scaled
}

fn decoded(base64: &str, kind: Kind) -> Option<DynamicImage> {
    let format = match kind {
        Kind::Jpeg => ImageFormat::Jpeg,
        Kind::Png => ImageFormat::Png,
        Kind::Gif => ImageFormat::Gif,
        Kind::Webp => ImageFormat::WebP,
        _ => return None,
    };
    let plain: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let bytes = BASE64_STANDARD.decode(plain).ok()?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = DecoderLimits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).ok()?;
    image.apply_orientation(orientation);
    Some(image)
}

/// Reduces the image until its sides and its size are within the limits.
fn fitted(image: &DynamicImage, limits: Limits) -> Option<Scaled> {
    let mut side = limits.side.unwrap_or(u32::MAX).min(image.width().max(image.height()));
    for _ in 0..MOST_ATTEMPTS {
        let small = match image.width().max(image.height()) > side {
            true => &image.thumbnail(side, side),
            false => image,
        };
        let (bytes, kind) = encoded(small)?;
        let base64 = BASE64_STANDARD.encode(bytes);
        if limits.bytes.is_none_or(|most| base64.len() <= most) {
            let (width, height) = (small.width(), small.height());
            return Some(Scaled { base64: base64.into(), kind, width, height });
        }
        side = side * 3 / 4;
    }
    None
}

/// Encodes as JPEG, or as PNG if the image may be transparent.
fn encoded(image: &DynamicImage) -> Option<(Vec<u8>, Kind)> {
    let mut bytes = Vec::new();
    if image.color().has_alpha() {
        image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).ok()?;
        return Some((bytes, Kind::Png));
    }
    image.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, QUALITY)).ok()?;
    Some((bytes, Kind::Jpeg))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage, RgbaImage};

    use super::*;

    fn png(image: impl Into<DynamicImage>) -> String {
        let mut bytes = Vec::new();
        image.into().write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).expect("is encoded");
        BASE64_STANDARD.encode(bytes)
    }

    /// An image that does not compress.
    fn noise(width: u32, height: u32) -> RgbImage {
        let mut seed = 7_u32;
        RgbImage::from_fn(width, height, |_, _| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Rgb([(seed >> 24) as u8, (seed >> 16) as u8, (seed >> 8) as u8])
        })
    }

    #[test]
    fn a_large_image_is_scaled_to_the_side_and_to_the_size() {
        let large = png(RgbImage::new(300, 100));
        let small = scaled(&large, Kind::Png, Limits { side: Some(150), bytes: None }).expect("is scaled");
        assert_eq!((small.width, small.height, small.kind), (150, 50, Kind::Jpeg));
        let again = scaled(&large, Kind::Png, Limits { side: Some(150), bytes: None }).expect("is scaled");
        assert!(Arc::ptr_eq(&small.base64, &again.base64), "it is kept");
        let clear = scaled(&png(RgbaImage::new(300, 100)), Kind::Png, Limits { side: Some(150), bytes: None });
        assert_eq!(clear.map(|small| small.kind), Some(Kind::Png), "it may be transparent");
        let heavy = png(noise(200, 200));
        let light = scaled(&heavy, Kind::Png, Limits { side: None, bytes: Some(8_000) }).expect("is scaled");
        assert!(light.base64.len() <= 8_000 && light.width < 200, "{} {}", light.base64.len(), light.width);
    }

    #[test]
    fn an_image_that_cannot_be_decoded_is_not_scaled() {
        let limits = Limits { side: Some(10), bytes: None };
        for (base64, kind) in [("iVBORw0KGgoAAAANSUhEUgAA", Kind::Png), ("!!", Kind::Jpeg), ("PHN2Zz4=", Kind::Svg)] {
            assert!(scaled(base64, kind, limits).is_none(), "{base64}");
        }
    }
}
