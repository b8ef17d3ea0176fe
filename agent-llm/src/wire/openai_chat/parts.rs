//! Content, as the API writes it.

use std::borrow::Cow;

use agent_core::{Media, MediaSource, Part};
use serde::Serialize;
use serde_json::value::RawValue;

use super::message::Manner;
use crate::wire::content::Address;
pub(super) use crate::wire::content::joined;

/// A content.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<PartJson<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartJson<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageUrl {
        image_url: Url<'a>,
    },
    File {
        file: File<'a>,
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
    let raw = match part {
        Part::Text(text) => text.raw.as_ref(),
        Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
        Part::Other(raw) => Some(raw),
        _ => None,
    };
    if let Some(own) = manner.own(raw) {
        return Some(PartJson::Raw(own));
    }
    match part {
        Part::Text(text) => Some(PartJson::Text { text: Cow::Borrowed(&text.text) }),
        Part::Image(media) => Some(image(media)),
        Part::Document(media) => Some(PartJson::File { file: file(media, Some("document.pdf")) }),
        _ => None,
    }
}

fn image(media: &Media) -> PartJson<'_> {
    match &media.source {
        MediaSource::Url(_) | MediaSource::Base64(_) => {
            PartJson::ImageUrl { image_url: Url { url: Address::of(media, "image/png") } }
        }
        _ => PartJson::File { file: file(media, None) },
    }
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
