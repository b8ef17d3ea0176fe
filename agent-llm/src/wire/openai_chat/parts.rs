//! Content, as the API writes it.

use std::borrow::Cow;

use agent_core::{Block, Media, Part, Text, message::MediaSource};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{message::Manner, profile::DocumentForm, read_part};
pub(super) use crate::wire::content::joined;
use crate::wire::{cache_control::CacheControl, content::Address};

/// A content.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartJson<'a>>),
}

impl Said<'_> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartJson<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: Url<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    InputAudio {
        input_audio: Sound<'a>,
    },
    File {
        file: File<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    DocumentUrl {
        document_url: Address<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        document_name: Option<&'a str>,
    },
    #[serde(rename = "file")]
    FileId {
        file_id: &'a str,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct Url<'a> {
    url: Address<'a>,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Address<'a>>,
}

/// The part in this API's form; none if it is another provider's and means nothing here.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<PartJson<'a>> {
    match part {
        Part::Text(text) => Some(text_json(manner, text)),
        Part::Image(media) => Some(own_media(manner, media).map_or_else(|| image(manner, media), PartJson::Raw)),
        Part::Document(media) => Some(own_media(manner, media).map_or_else(|| document(manner, media), PartJson::Raw)),
        Part::Other(raw) => manner.own(Some(raw)).map(PartJson::Raw),
        _ => None,
    }
}

pub(super) fn text_json<'a>(manner: &Manner, text: &'a Text) -> PartJson<'a> {
    own_text(manner, text).map_or_else(
        || PartJson::Text { text: Cow::Borrowed(&text.text), cache_control: manner.cache_control(text.cache) },
        PartJson::Raw,
    )
}

/// The provider's own JSON of a text, unless that says something else: the text may have been edited.
pub(super) fn own_text<'a>(manner: &Manner, text: &'a Text) -> Option<&'a RawValue> {
    let own = manner.own(text.raw.as_ref())?;
    match read_part::part(own, &manner.origin) {
        Ok(Block::Text(was)) if was.text != text.text || was.cache != text.cache => None,
        _ => Some(own),
    }
}

/// As [`own_text`], for media.
pub(super) fn own_media<'a>(manner: &Manner, media: &'a Media) -> Option<&'a RawValue> {
    let own = manner.own(media.raw.as_ref())?;
    match read_part::part(own, &manner.origin) {
        Ok(Block::Image(was) | Block::Document(was)) if was.source != media.source || was.cache != media.cache => None,
        _ => Some(own),
    }
}

fn image<'a>(manner: &Manner, media: &'a Media) -> PartJson<'a> {
    let cache_control = manner.cache_control(media.cache);
    match &media.source {
        MediaSource::Url(_) | MediaSource::Base64(_) => {
            PartJson::ImageUrl { image_url: Url { url: Address::of(media, "image/png") }, cache_control }
        }
        _ => PartJson::File { file: file(media, None), cache_control },
    }
}

#[derive(Serialize)]
pub(super) struct Sound<'a> {
    data: &'a str,
    format: &'a str,
}

/// Sound, by what a file of it is called.
fn sound(media: &Media) -> Option<PartJson<'_>> {
    let MediaSource::Base64(data) = &media.source else { return None };
    let format = match media.mime.as_deref()?.strip_prefix("audio/")? {
        "mpeg" => "mp3",
        "x-wav" | "wave" => "wav",
        format => format,
    };
    Some(PartJson::InputAudio { input_audio: Sound { data, format } })
}

fn document<'a>(manner: &Manner, media: &'a Media) -> PartJson<'a> {
    if let Some(sound) = sound(media) {
        return sound;
    }
    if manner.documents == DocumentForm::Url {
        return match &media.source {
            MediaSource::File(file_id) => PartJson::FileId { file_id },
            _ => PartJson::DocumentUrl {
                document_url: Address::of(media, "application/pdf"),
                document_name: media.name.as_deref(),
            },
        };
    }
    PartJson::File { file: file(media, Some("document.pdf")), cache_control: manner.cache_control(media.cache) }
}

fn file<'a>(media: &'a Media, name: Option<&'a str>) -> File<'a> {
    match &media.source {
        MediaSource::File(id) => File { file_id: Some(id), filename: None, file_data: None },
        _ => File {
            file_id: None,
            filename: media.name.as_deref().or(name),
            file_data: Some(Address::of(media, "application/pdf")),
        },
    }
}
