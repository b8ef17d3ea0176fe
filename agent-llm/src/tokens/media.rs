//! [`MediaCounter`]: token counter for images and documents.

use agent_core::{
    Media, TokenCounter,
    message::MediaSource,
    model::{ApproximateCounter, MediaKind},
};
use base64::{Engine, prelude::BASE64_STANDARD};

use super::pixels;

/// Length of base64 data whose prefix must contain the image's dimensions; photographs may have a
/// thumbnail first.
const BEGINNING: usize = 128 << 10;
/// Tokens of a page that a model reads as text and image, if its provider does not document the
/// number.
const PAGE: u64 = 1_000;
/// Assumed number of pages of a document of unknown length.
const PAGES: u64 = 2;

/// A provider's documented rule for the tokens of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum MediaRule {
    /// `base` tokens, plus `tile` tokens for each tile of 512 pixels: OpenAI's larger models.
    Tiles {
        /// Tokens per image.
        base: u64,
        /// Tokens per tile.
        tile: u64,
    },
    /// One token per patch of 32 pixels, at most 1,536, times a factor: OpenAI's small models.
    Patches {
        /// Factor.
        factor: f64,
    },
    /// One token per 750 pixels, after scaling the image to fit: Anthropic's models.
    Area,
    /// 258 tokens per tile, where a small image is one tile: Gemini up to 2.5.
    Crops,
    /// A fixed number for every image: Gemini since 3.
    Fixed {
        /// Tokens per image.
        image: u64,
        /// Tokens per page.
        page: u64,
    },
    /// Unknown.
    Unknown,
}

impl MediaRule {
    /// Returns the rule of a model, by its name.
    pub fn for_model(model: &str) -> Self {
        let has = |part: &str| model.contains(part);
        let begins = |parts: &[&str]| parts.iter().any(|part| model.starts_with(part));
        if has("claude") {
            Self::Area
        } else if has("gemini-1") || has("gemini-2") {
            Self::Crops
        } else if has("gemini") {
            Self::Fixed { image: 1_120, page: 560 }
        } else if begins(&["gpt-4.1-nano", "gpt-5-nano"]) {
            Self::Patches { factor: 2.46 }
        } else if begins(&["gpt-4.1-mini", "gpt-5-mini"]) {
            Self::Patches { factor: 1.62 }
        } else if begins(&["o4-mini"]) {
            Self::Patches { factor: 1.72 }
        } else if begins(&["gpt-4o-mini"]) {
            Self::Tiles { base: 2_833, tile: 5_667 }
        } else if begins(&["gpt-5"]) {
            Self::Tiles { base: 70, tile: 140 }
        } else if begins(&["o1", "o3"]) {
            Self::Tiles { base: 75, tile: 150 }
        } else if begins(&["gpt-4"]) {
            Self::Tiles { base: 85, tile: 170 }
        } else {
            Self::Unknown
        }
    }

    /// Returns the tokens of an image with these dimensions in pixels, if the rule defines them.
    ///
    /// ```
    /// use agent_llm::tokens::MediaRule;
    ///
    /// assert_eq!(MediaRule::for_model("gpt-4o").image(1024, 1024), Some(85 + 4 * 170));
    /// assert_eq!(MediaRule::for_model("claude-sonnet-4-5").image(1000, 1000), Some(1_334));
    /// assert_eq!(MediaRule::Unknown.image(10, 10), None);
    /// ```
    pub fn image(self, width: u32, height: u32) -> Option<u64> {
        let (width, height) = (f64::from(width.max(1)), f64::from(height.max(1)));
        let (long, short) = (width.max(height), width.min(height));
        let cells = |scale: f64, cell: f64| (width * scale / cell).ceil() * (height * scale / cell).ceil();
        Some(match self {
            Self::Tiles { base, tile } => {
                let fits = (2_048.0 / long).min(1.0);
                let scale = fits * (768.0 / (short * fits)).min(1.0);
                base + tile * cells(scale, 512.0) as u64
            }
            Self::Patches { factor } => (cells(1.0, 32.0).min(1_536.0) * factor).ceil() as u64,
            Self::Area => {
                let fits = (1_568.0 / long).min(1.0);
                let area = width * height * fits * fits;
                ((area / 750.0).ceil() as u64).min(1_600)
            }
            Self::Crops if long <= 384.0 => 258,
            Self::Crops => 258 * cells(1.0, (short / 1.5).floor().clamp(256.0, 768.0)) as u64,
            Self::Fixed { image, .. } => image,
            Self::Unknown => return None,
        })
    }

    /// Returns the tokens of a page of a document.
    fn page(self) -> u64 {
        match self {
            Self::Crops => 258,
            Self::Fixed { page, .. } => page,
            // The page's image, and its text.
            Self::Area => 2_500,
            _ => PAGE,
        }
    }
}

/// Token counter that counts images and documents by the provider's rule, and everything else with
/// another counter.
///
/// An image is counted by its dimensions if its bytes are available; an image at a URL or in a file
/// store counts as 1,024 by 1,024 pixels. A text file is counted as text, whatever its media type;
/// other documents are counted by their pages, as far as the file states their number.
///
/// ```
/// use agent_core::{Media, TokenCounter, model::{ApproximateCounter, MediaKind}};
/// use agent_llm::tokens::{MediaCounter, MediaRule};
///
/// let counter = MediaCounter::new(ApproximateCounter, MediaRule::for_model("claude-opus-4-5"));
/// let photograph = Media::url("https://example.org/cat.png");
/// assert_eq!(counter.media(&photograph, MediaKind::Image), 1_399);
/// ```
#[derive(Clone, Debug)]
pub struct MediaCounter<C> {
    counter: C,
    rule: MediaRule,
}

impl<C> MediaCounter<C> {
    /// Counts texts with `counter`, and media by `rule`.
    pub fn new(counter: C, rule: MediaRule) -> Self {
        Self { counter, rule }
    }
}

impl<C: TokenCounter> TokenCounter for MediaCounter<C> {
    fn text(&self, text: &str) -> u64 {
        self.counter.text(text)
    }

    fn media(&self, media: &Media, kind: MediaKind) -> u64 {
        let inline = match &media.source {
            MediaSource::Base64(data) => Some(data.as_str()),
            _ => None,
        };
        if kind == MediaKind::Image {
            let (width, height) = inline.and_then(|data| pixels::size(&beginning(data))).unwrap_or((1_024, 1_024));
            return self.rule.image(width, height).unwrap_or_else(|| ApproximateCounter.media(media, kind));
        }
        let is_text = media.mime.as_deref().is_some_and(|mime| mime.starts_with("text/") || mime.contains("json"));
        match inline.and_then(|data| BASE64_STANDARD.decode(data).ok()) {
            Some(file) if is_text => self.counter.text(&String::from_utf8_lossy(&file)),
            Some(file) => self.rule.page() * pages(&file).unwrap_or(PAGES),
            None => self.rule.page() * PAGES,
        }
    }
}

/// Decodes the beginning of base64 data.
fn beginning(base64: &str) -> Vec<u8> {
    let most = base64.len().min(BEGINNING);
    // Whole groups of four, so that the truncated data can be decoded.
    let whole = if most == base64.len() { base64 } else { base64.get(..most / 4 * 4).unwrap_or_default() };
    BASE64_STANDARD.decode(whole).unwrap_or_default()
}

/// Returns the number of pages of a PDF, if it is stored uncompressed.
fn pages(file: &[u8]) -> Option<u64> {
    let mut count = 0;
    for at in memchr::memmem::find_iter(file, b"/Type") {
        let rest = file[at + 5..].trim_ascii_start();
        count += u64::from(rest.starts_with(b"/Page") && rest.get(5) != Some(&b's'));
    }
    (file.starts_with(b"%PDF") && count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use agent_core::{Message, Part, UserMessage};

    use super::*;

    fn png(width: u32, height: u32) -> Media {
        let head = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes()].concat();
        Media::base64(BASE64_STANDARD.encode(head), "image/png")
    }

    fn of(model: &str, media: &Media) -> u64 {
        MediaCounter::new(ApproximateCounter, MediaRule::for_model(model)).media(media, MediaKind::Image)
    }

    #[test]
    fn images_are_counted_by_their_pixels_as_their_provider_says() {
        // Examples from the providers' documentation.
        assert_eq!(of("gpt-4o", &png(1_024, 1_024)), 765);
        assert_eq!(of("gpt-4o", &png(2_048, 4_096)), 1_105);
        assert_eq!(of("gpt-5-mini", &png(1_024, 1_024)), 1_659);
        assert_eq!(of("claude-opus-4-5", &png(200, 200)), 54);
        assert_eq!(of("claude-opus-4-5", &png(8_000, 4_000)), 1_600);
        assert_eq!(of("gemini-2.5-flash", &png(384, 384)), 258);
        assert_eq!(of("gemini-2.5-flash", &png(960, 540)), 6 * 258);
        assert_eq!(of("gemini-3-pro-preview", &png(10, 10)), 1_120);
        assert_eq!(of("somebody's", &png(10, 10)), 85, "as ever");
    }

    #[test]
    fn an_image_counts_in_the_message_that_holds_it() {
        let counter = MediaCounter::new(ApproximateCounter, MediaRule::for_model("gpt-4o"));
        let message = Message::User(UserMessage::new(vec![Part::Image(png(512, 512))]));
        assert_eq!(counter.message(&message), 3 + 85 + 170);
        let known = super::super::CalibratedCounter::new(super::super::IncrementalCounter::new(counter));
        assert_eq!(known.message(&message), 3 + 85 + 170, "also through counters around it");
        assert_eq!(known.media(&png(512, 512), MediaKind::Image), 85 + 170);
    }

    #[test]
    fn a_document_has_its_pages_and_a_text_its_words() {
        let counter = MediaCounter::new(ApproximateCounter, MediaRule::for_model("gemini-2.5-pro"));
        let count = |bytes: &[u8], mime: &str| {
            counter.media(&Media::base64(BASE64_STANDARD.encode(bytes), mime), MediaKind::Document)
        };
        let pdf = b"%PDF-1.4 <</Type /Pages /Count 3>> <</Type/Page>> <</Type /Page /X 1>> <</Type\n/Page>>";
        assert_eq!(count(pdf, "application/pdf"), 3 * 258);
        assert_eq!(count(b"%PDF-1.7 and nothing in the clear", "application/pdf"), 2 * 258);
        assert_eq!(count(b"twelve chars", "text/plain"), 3);
    }

    #[test]
    fn a_long_file_is_read_at_its_beginning_alone() {
        let long = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0"[..], &vec![0; 300_000]].concat();
        let media = Media::base64(BASE64_STANDARD.encode(long), "image/png");
        assert_eq!(of("gpt-4o", &media), 85 + 170);
    }
}
