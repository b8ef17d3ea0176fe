//! Content that people, programs and tools give, in both directions.

use agent_core::{
    Media, Part, Text,
    message::{MediaSource, Origin},
};
use serde_json::{Value, json, value::RawValue};

use super::Manner;
use crate::wire::{
    content::{Address, media_at},
    json::{Json, raw},
    lenient::{kind, lenient},
};

/// The part in this API's form; none if it is another provider's and means nothing here. It may be an item, which stands beside
/// the message.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<Json<'a>> {
    let raw = match part {
        Part::Text(text) => text.raw.as_ref(),
        Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
        Part::Other(raw) => Some(raw),
        _ => None,
    };
    if let Some(own) = manner.own(raw).filter(|own| still_says(own, part, &manner.origin)) {
        return Some(Json::Own(own));
    }
    Some(Json::Made(match part {
        Part::Text(text) => json!({"type": "input_text", "text": text.text}),
        Part::Image(media) => match &media.source {
            MediaSource::File(id) => json!({"type": "input_image", "detail": "auto", "file_id": id}),
            _ => json!({"type": "input_image", "detail": "auto", "image_url": Address::of(media, "image/png")}),
        },
        Part::Document(media) => match &media.source {
            MediaSource::File(id) => json!({"type": "input_file", "file_id": id}),
            MediaSource::Url(url) => json!({"type": "input_file", "file_url": url}),
            _ => {
                let (name, data) =
                    (media.name.as_deref().unwrap_or("document.pdf"), Address::of(media, "application/pdf"));
                json!({"type": "input_file", "filename": name, "file_data": data})
            }
        },
        _ => return None,
    }))
}

/// True if the JSON is a part of a content, and not an item of its own.
pub(super) fn is_part(json: &RawValue) -> bool {
    let kind = kind(json);
    kind.starts_with("input_") || kind.starts_with("output_") || matches!(&*kind, "text" | "refusal" | "summary_text")
}

/// True if the JSON is still of this part: it may have been edited.
fn still_says(own: &RawValue, part: &Part, origin: &Origin) -> bool {
    match (read_part(own, origin), part) {
        (Part::Text(was), Part::Text(is)) => was.text == is.text,
        (Part::Image(was), Part::Image(is)) | (Part::Document(was), Part::Document(is)) => was.source == is.source,
        (_, Part::Other(_)) => true,
        _ => false,
    }
}

/// A part; it keeps its JSON if that says more.
pub(super) fn read_part(json: &RawValue, origin: &Origin) -> Part {
    let (said, raw): (Value, _) = (lenient(json), raw(json, origin));
    let text = |name: &str| said[name].as_str();
    let stored = || text("file_id").map(|id| Media::new(MediaSource::File(id.to_owned())));
    let part = match said["type"].as_str() {
        Some("input_text") => text("text").map(|words| {
            let says_more = said != json!({"type": "input_text", "text": words});
            Part::Text(Text::new(words).with_raw(says_more.then(|| raw.clone())))
        }),
        Some("input_image") => {
            let image = text("image_url").map(media_at).or_else(stored);
            image.map(|image| Part::Image(image.with_raw(raw.clone())))
        }
        Some("input_file") => {
            let there = || text("file_url").map(Media::url).or_else(|| text("file_data").map(media_at));
            let named = |file| text("filename").into_iter().fold(file, Media::with_name);
            stored().or_else(there).map(|file| Part::Document(named(file).with_raw(raw.clone())))
        }
        _ => None,
    };
    part.unwrap_or(Part::Other(raw))
}
