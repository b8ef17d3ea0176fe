//! Encoding of content parts, and decoding into blocks.

use agent_core::{
    Block, Media, Part, Text,
    message::{Cache, MediaSource, Origin, Raw, Reasoning},
};
use serde_json::{Value, json, value::RawValue};

use super::{messages::MessageStyle, profile::DocumentForm};
use crate::wire::{
    content::{Address, media_at},
    json::{Json, present, raw},
    lenient::lenient,
};

/// Encodes a part, with the provider's own JSON if it still matches. `None` for another provider's
/// content that means nothing here.
pub(super) fn part_json<'a>(manner: &MessageStyle, part: &'a Part) -> Option<Json<'a>> {
    let (own, made, cache) = match part {
        Part::Text(text) => return Some(text_json(manner, text)),
        Part::Image(media) => (own_media(manner, media), image(media), media.cache),
        Part::Document(media) => (own_media(manner, media), document(manner, media), media.cache),
        Part::Other(raw) => return manner.own(Some(raw)).map(Json::Own),
        _ => return None,
    };
    Some(own.map_or_else(|| marked(manner, made, cache), Json::Own))
}

pub(super) fn text_json<'a>(manner: &MessageStyle, text: &'a Text) -> Json<'a> {
    let made = || marked(manner, json!({"type": "text", "text": text.text}), text.cache);
    own_text(manner, text).map_or_else(made, Json::Own)
}

/// Returns true if the text has no other fields to encode.
pub(super) fn is_plain(manner: &MessageStyle, text: &Text) -> bool {
    own_text(manner, text).is_none() && manner.cache_control(text.cache).is_none()
}

/// Adds a cache marker to the part, if the server supports markers.
fn marked<'a>(manner: &MessageStyle, mut part: Value, cache: Option<Cache>) -> Json<'a> {
    part["cache_control"] = json!(manner.cache_control(cache));
    Json::Made(present(part))
}

/// Returns the provider's own JSON of a text, unless the text was edited.
pub(in crate::wire) fn own_text<'a>(manner: &MessageStyle, text: &'a Text) -> Option<&'a RawValue> {
    manner.own(text.raw.as_ref()).filter(|own| match part(own, &manner.origin) {
        Block::Text(was) => (&was.text, was.cache) == (&text.text, text.cache),
        _ => true,
    })
}

/// As [`own_text`], for media.
pub(in crate::wire) fn own_media<'a>(manner: &MessageStyle, media: &'a Media) -> Option<&'a RawValue> {
    manner.own(media.raw.as_ref()).filter(|own| match part(own, &manner.origin) {
        Block::Image(was) | Block::Document(was) => (&was.source, was.cache) == (&media.source, media.cache),
        _ => true,
    })
}

fn image(media: &Media) -> Value {
    match &media.source {
        MediaSource::File(id) => json!({"type": "file", "file": {"file_id": id}}),
        _ => json!({"type": "image_url", "image_url": {"url": Address::of(media, "image/png")}}),
    }
}

fn document(manner: &MessageStyle, media: &Media) -> Value {
    let address = Address::of(media, "application/pdf");
    match (manner.profile.documents, &media.source) {
        (_, MediaSource::Base64(data)) if media.is_audio() => {
            json!({"type": "input_audio", "input_audio": {"data": data, "format": sound_format(media)}})
        }
        (DocumentForm::Url, MediaSource::File(id)) => json!({"type": "file", "file_id": id}),
        (DocumentForm::Url, _) => {
            present(json!({"type": "document_url", "document_url": address, "document_name": media.name}))
        }
        (_, MediaSource::File(id)) => json!({"type": "file", "file": {"file_id": id}}),
        _ => {
            let name = media.name.as_deref().unwrap_or("document.pdf");
            json!({"type": "file", "file": {"filename": name, "file_data": address}})
        }
    }
}

/// Returns the format name of audio media.
fn sound_format(media: &Media) -> Option<&str> {
    Some(match media.mime.as_deref()?.strip_prefix("audio/")? {
        "mpeg" => "mp3",
        "x-wav" | "wave" => "wav",
        format => format,
    })
}

/// Decodes one part of a content, in the format of this API or of Responses. It keeps its JSON if
/// that may contain more.
pub(in crate::wire) fn part(json: &RawValue, origin: &Origin) -> Block {
    let said = present(lenient(json));
    match &said {
        Value::String(text) => Block::text(text),
        said => known(said, || raw(json, origin)).unwrap_or_else(|| Block::Other(raw(json, origin))),
    }
}

/// Decodes a part of a known, unambiguous kind.
fn known(said: &Value, raw: impl Fn() -> Raw) -> Option<Block> {
    let contents = ["text", "thinking", "image_url", "file"];
    if contents.iter().filter(|name| !said[**name].is_null()).count() > 1 {
        return None;
    }
    let file = said.get("file").unwrap_or(said);
    let stored = || file["file_id"].as_str().map(Media::file);
    let media = |media: Option<Media>, name: &Value| {
        let mut media = media?;
        (media.cache, media.name, media.raw) = (cache(said), name.as_str().map(str::to_owned), Some(raw()));
        Some(media)
    };
    Some(match said["type"].as_str()? {
        "text" | "input_text" => {
            let words = said["text"].as_str()?;
            let says_more = *said != json!({"type": "text", "text": words});
            let mut text = Text::new(words).with_raw(says_more.then(raw));
            text.cache = cache(said);
            Block::Text(text)
        }
        "thinking" => {
            let text = plain(said.get("thinking")?);
            Block::Reasoning(Reasoning { text, raw: Some(raw()), ..Reasoning::default() })
        }
        "image_url" | "input_image" => {
            let image = &said["image_url"];
            let url = image.get("url").unwrap_or(image).as_str().map(media_at);
            Block::Image(media(url.or_else(stored), &Value::Null)?)
        }
        "document_url" => Block::Document(media(said["document_url"].as_str().map(media_at), &said["document_name"])?),
        "file" | "input_file" => {
            let there = ["file_data", "file_url"].into_iter().find_map(|name| file[name].as_str());
            Block::Document(media(stored().or_else(|| there.map(media_at)), &file["filename"])?)
        }
        _ => return None,
    })
}

/// Returns the cache marker of a part or a tool.
pub(super) fn cache(said: &Value) -> Option<Cache> {
    let mark = said.get("cache_control").filter(|mark| !mark.is_null())?;
    Some(if mark["ttl"] == "1h" { Cache::Long } else { Cache::Short })
}

/// Joins the texts of a content's parts; for reasoning, including summaries.
pub(super) fn plain(content: &Value) -> String {
    let text = |part: &Value| [part, &part["text"], &part["summary"]].into_iter().filter_map(Value::as_str).collect();
    match content {
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<String>>().concat(),
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}
