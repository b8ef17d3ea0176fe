//! Textual descriptions of images that no model accepts.

use super::sizes::{Kind, bytes};

/// Number of base64 characters to inspect.
const HEAD: usize = 512 * 1024;

/// Maximum number of texts of a drawing, and of their characters together.
const MOST_TEXTS: usize = 24;
const LONGEST: usize = 600;

/// Elements of a drawing with text for people.
const TEXTS: [&str; 4] = ["title", "desc", "text", "tspan"];

/// Describes the image: its size, and the texts of a drawing. `None` if nothing is known.
pub(super) fn described(base64: &str, kind: Kind) -> Option<String> {
    match kind {
        Kind::Svg => svg(&String::from_utf8_lossy(&bytes(base64, HEAD))),
        Kind::Heic => heic(&bytes(base64, HEAD)),
        _ => None,
    }
}

/// Describes a drawing.
fn svg(text: &str) -> Option<String> {
    let (_, root) = text.split_once("<svg")?;
    let (root, content) = root.split_once('>').unwrap_or((root, ""));
    let size = match (attribute(root, "width"), attribute(root, "height"), attribute(root, "viewBox")) {
        (Some(width), Some(height), _) => Some(format!("It is a drawing of {width} x {height}.")),
        (_, _, Some(view)) => {
            let mut numbers = view.split([' ', ',']).filter(|number| !number.is_empty()).skip(2);
            numbers.next().zip(numbers.next()).map(|(width, height)| format!("It is a drawing of {width} x {height}."))
        }
        _ => None,
    };
    let texts = texts(content);
    let said = (!texts.is_empty()).then(|| format!("Its texts: {}.", texts.join("; ")));
    let parts: Vec<_> = size.into_iter().chain(said).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Returns the value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let (before, after) = rest.split_once(name)?;
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        if before.ends_with(char::is_whitespace)
            && let Some(quoted) = value
        {
            let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return quoted[1..].split_once(quote).map(|(value, _)| value);
        }
        rest = after;
    }
}

/// Returns the texts for people, in order.
fn texts(content: &str) -> Vec<String> {
    let (mut texts, mut length) = (Vec::new(), 0);
    for part in content.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { continue };
        let name = tag.split([' ', '\n', '\t', '\r', '/']).next().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() || !TEXTS.contains(&name) {
            continue;
        }
        length += text.chars().count();
        if length > LONGEST || texts.len() == MOST_TEXTS {
            texts.push("and more".into());
            break;
        }
        texts.push(format!("\"{}\"", unescaped(&text)));
    }
    texts
}

fn unescaped(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c))
}

/// Describes a photo: the largest of the sizes in its boxes, of which some belong to tiles.
fn heic(head: &[u8]) -> Option<String> {
    const BOX: &[u8] = b"ispe";
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).unwrap_or_default();
    let sizes = head.windows(BOX.len() + 12).filter(|window| window.starts_with(BOX));
    let sizes = sizes.map(|window| (number(&window[8..12]), number(&window[12..16])));
    let (width, height) = sizes.max_by_key(|(width, height)| u64::from(*width) * u64::from(*height))?;
    Some(format!("It is a photo of {width} x {height} pixels."))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::*;

    fn of(bytes: &[u8], kind: Kind) -> Option<String> {
        described(&BASE64_STANDARD.encode(bytes), kind)
    }

    #[test]
    fn a_drawing_is_described_by_its_size_and_its_texts() {
        let drawing =
            br#"<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" stroke-width="2" width="40" height='30'>
            <title>Sales &amp; costs</title><style>text { fill: red }</style><g><text x="1">May
            2026</text><path d="M0"/></g></svg>"#;
        let expected = "It is a drawing of 40 x 30. Its texts: \"Sales & costs\"; \"May 2026\".";
        assert_eq!(of(drawing, Kind::Svg).as_deref(), Some(expected));
        let boxed = of(br#"<svg viewBox="0 0 24,16"><path/></svg>"#, Kind::Svg);
        assert_eq!(boxed.as_deref(), Some("It is a drawing of 24 x 16."));
        assert_eq!(of(b"<svg>", Kind::Svg), None);
        let many = format!("<svg width=\"1\" height=\"1\">{}", "<text>abc</text>".repeat(100));
        assert!(of(many.as_bytes(), Kind::Svg).expect("texts").ends_with("; and more."));
    }

    #[test]
    fn a_photo_is_described_by_its_largest_size() {
        let ispe =
            |width: u32, height: u32| [b"ispe\0\0\0\0", &width.to_be_bytes()[..], &height.to_be_bytes()[..]].concat();
        let photo = [b"\0\0\0\x18ftypheic".to_vec(), ispe(512, 512), ispe(4032, 3024)].concat();
        assert_eq!(of(&photo, Kind::Heic).as_deref(), Some("It is a photo of 4032 x 3024 pixels."));
        assert_eq!(of(b"\0\0\0\x18ftypheic", Kind::Heic), None);
    }
}
