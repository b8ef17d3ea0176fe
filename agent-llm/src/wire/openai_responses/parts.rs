//! Content that people, programs and tools give.

use agent_core::{Media, Part, message::MediaSource};
use serde_json::{Value, json, value::RawValue};

use super::Manner;
use crate::wire::{
    content::Address,
    json::Json,
    lenient::kind,
    openai_chat::parts::{own_media, own_text},
};

/// The part in this API's form; none if it is another provider's and means nothing here. It may be an item, which stands beside
/// the message.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<Json<'a>> {
    let own = match part {
        Part::Text(text) => own_text(manner, text),
        Part::Image(media) | Part::Document(media) => own_media(manner, media),
        Part::Other(raw) => manner.own(Some(raw)),
        _ => None,
    };
    own.map(Json::Own).or_else(|| {
        Some(Json::Made(match part {
            Part::Text(text) => json!({"type": "input_text", "text": text.text}),
            Part::Image(media) => image(media),
            Part::Document(media) => document(media),
            _ => return None,
        }))
    })
}

fn image(media: &Media) -> Value {
    match &media.source {
        MediaSource::File(id) => json!({"type": "input_image", "detail": "auto", "file_id": id}),
        _ => json!({"type": "input_image", "detail": "auto", "image_url": Address::of(media, "image/png")}),
    }
}

fn document(media: &Media) -> Value {
    match &media.source {
        MediaSource::File(id) => json!({"type": "input_file", "file_id": id}),
        MediaSource::Url(url) => json!({"type": "input_file", "file_url": url}),
        _ => {
            let (name, data) = (media.name.as_deref().unwrap_or("document.pdf"), Address::of(media, "application/pdf"));
            json!({"type": "input_file", "filename": name, "file_data": data})
        }
    }
}

/// True if the JSON is a part of a content, and not an item of its own.
pub(super) fn is_part(json: &RawValue) -> bool {
    let kind = kind(json);
    kind.starts_with("input_") || kind.starts_with("output_") || matches!(&*kind, "text" | "refusal" | "summary_text")
}
