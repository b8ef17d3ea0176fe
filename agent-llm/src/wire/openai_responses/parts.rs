//! Content that people, programs and tools give, as the API writes it.

use std::borrow::Cow;

use agent_core::{
    Media, Part, Text,
    message::{MediaSource, Origin, Raw},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::messages::Manner;
use crate::wire::{
    content::{Address, media_at},
    lenient::Str,
    open_struct::open_struct,
};

/// A content.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartJson<'a>>),
    Raw(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartJson<'a> {
    InputText {
        text: &'a str,
    },
    InputImage(Image<'a>),
    InputFile(File<'a>),
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct Image<'a> {
    detail: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

#[derive(Default, Serialize)]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

/// What a part is written as.
pub(super) enum Written<'a> {
    Part(PartJson<'a>),
    /// An item of its own beside the message.
    Item(&'a RawValue),
}

impl<'a> Written<'a> {
    pub(super) fn into_part(self) -> Option<PartJson<'a>> {
        match self {
            Self::Part(part) => Some(part),
            Self::Item(_) => None,
        }
    }
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

/// The part in this API's form; none if it is another provider's and means nothing here.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<Written<'a>> {
    let raw = match part {
        Part::Text(text) => text.raw.as_ref(),
        Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
        Part::Other(raw) => Some(raw),
        _ => None,
    };
    if let Some(own) = manner.own(raw).filter(|own| still_says(own, part, &manner.origin)) {
        return Some(if is_part(own) { Written::Part(PartJson::Raw(own)) } else { Written::Item(own) });
    }
    match part {
        Part::Text(text) => Some(PartJson::InputText { text: &text.text }),
        Part::Image(media) => Some(PartJson::InputImage(image(media))),
        Part::Document(media) => Some(PartJson::InputFile(file(media))),
        _ => None,
    }
    .map(Written::Part)
}

fn image(media: &Media) -> Image<'_> {
    let (image_url, file_id) = match &media.source {
        MediaSource::File(id) => (None, Some(id.as_str())),
        _ => (Some(Address::of(media, "image/png")), None),
    };
    Image { detail: "auto", image_url, file_id }
}

fn file(media: &Media) -> File<'_> {
    match &media.source {
        MediaSource::File(id) => File { file_id: Some(id), ..File::default() },
        MediaSource::Url(url) => File { file_url: Some(url), ..File::default() },
        _ => File {
            filename: media.name.as_deref().or(Some("document.pdf")),
            file_data: Some(Address::of(media, "application/pdf")),
            ..File::default()
        },
    }
}

/// True if the JSON is a part of a content, and not an item of its own.
pub(super) fn is_part(json: &RawValue) -> bool {
    let said: PartSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let kind = said.kind.as_ref().map_or("", |kind| &*kind.0);
    kind.starts_with("input_") || kind.starts_with("output_") || matches!(kind, "text" | "refusal" | "summary_text")
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
    let raw = Raw::new(origin.clone(), json.to_owned());
    let said: PartSaid<'_> = serde_json::from_str(json.get()).unwrap_or_default();
    let PartSaid { kind, text, image_url, file_id, file_url, file_data, filename, rest } = said;
    match (kind.as_ref().map_or("", |kind| &*kind.0), text) {
        ("input_text", Some(text)) => Part::Text(Text::new(text.0).with_raw((!rest.is_empty()).then_some(raw))),
        ("input_image", _) => match (image_url, file_id) {
            (Some(url), _) => Part::Image(media_at(&url.0).with_raw(raw)),
            (None, Some(id)) => Part::Image(filed(id).with_raw(raw)),
            (None, None) => Part::Other(raw),
        },
        ("input_file", _) => {
            let media = match (file_id, file_url, file_data) {
                (Some(id), ..) => filed(id),
                (None, Some(url), _) => Media::url(url.0),
                (None, None, Some(data)) => media_at(&data.0),
                (None, None, None) => return Part::Other(raw),
            };
            Part::Document(filename.into_iter().fold(media, |media, name| media.with_name(name.0)).with_raw(raw))
        }
        _ => Part::Other(raw),
    }
}

fn filed(id: Str<'_>) -> Media {
    Media::new(MediaSource::File(id.0.into_owned()))
}
