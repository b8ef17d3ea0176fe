//! Content that people, programs and tools give, in both directions.

use std::borrow::Cow;

use agent_core::{
    Media, Part, Text,
    message::{MediaSource, Origin},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Manner, read::kind};
use crate::wire::{
    content::{Address, media_at},
    json::raw,
    lenient::{Str, lenient},
    open_struct::open_struct,
};

/// A content.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Said<'a> {
    Text(Cow<'a, str>),
    Part(PartJson<'a>),
    Parts(Vec<PartJson<'a>>),
    Raw(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartJson<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        detail: &'static str,
        image_url: Address<'a>,
    },
    #[serde(rename = "input_image")]
    StoredImage {
        detail: &'static str,
        file_id: &'a str,
    },
    InputFile {
        filename: &'a str,
        file_data: Address<'a>,
    },
    #[serde(rename = "input_file")]
    StoredFile {
        file_id: &'a str,
    },
    #[serde(rename = "input_file")]
    FileElsewhere {
        file_url: &'a str,
    },
    ComputerScreenshot {
        image_url: Address<'a>,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
}

open_struct! {
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        image_url: Str<'a> = "image_url",
        file_id: Str<'a> = "file_id",
        file_url: Str<'a> = "file_url",
        file_data: Str<'a> = "file_data",
        filename: Str<'a> = "filename",
    }
}

/// The part in this API's form; none if it is another provider's and means nothing here. It may be an item, which stands beside
/// the message.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<PartJson<'a>> {
    let raw = match part {
        Part::Text(text) => text.raw.as_ref(),
        Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
        Part::Other(raw) => Some(raw),
        _ => None,
    };
    if let Some(own) = manner.own(raw).filter(|own| still_says(own, part, &manner.origin)) {
        return Some(PartJson::Raw(own));
    }
    let detail = "auto";
    Some(match part {
        Part::Text(text) => PartJson::InputText { text: &text.text },
        Part::Image(media) => match &media.source {
            MediaSource::File(file_id) => PartJson::StoredImage { detail, file_id },
            _ => PartJson::InputImage { detail, image_url: Address::of(media, "image/png") },
        },
        Part::Document(media) => match &media.source {
            MediaSource::File(file_id) => PartJson::StoredFile { file_id },
            MediaSource::Url(file_url) => PartJson::FileElsewhere { file_url },
            _ => PartJson::InputFile {
                filename: media.name.as_deref().unwrap_or("document.pdf"),
                file_data: Address::of(media, "application/pdf"),
            },
        },
        _ => return None,
    })
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
    let PartSaid { kind, text, image_url, file_id, file_url, file_data, filename, rest } = lenient(json);
    let raw = raw(json, origin);
    let stored = file_id.map(|id| Media::new(MediaSource::File(id.0.into_owned())));
    let part = match kind.as_deref().unwrap_or_default() {
        "input_text" => text.map(|text| {
            let text = Text::new(text.0);
            Part::Text(if rest.is_empty() { text } else { text.with_raw(raw.clone()) })
        }),
        "input_image" => {
            let image = image_url.map(|url| media_at(&url)).or(stored);
            image.map(|image| Part::Image(image.with_raw(raw.clone())))
        }
        "input_file" => {
            let there = || file_url.map(|url| Media::url(url.0)).or_else(|| Some(media_at(&file_data?)));
            let file = stored.or_else(there);
            let named = |file: Media| filename.into_iter().fold(file, |file, name| file.with_name(name.0));
            file.map(|file| Part::Document(named(file).with_raw(raw.clone())))
        }
        _ => None,
    };
    part.unwrap_or(Part::Other(raw))
}
