//! Parts, as the API writes them.

use std::borrow::Cow;

use agent_core::{Media, Part, message::MediaSource};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{manner::Manner, part::user_part};
use crate::wire::json::Object;

/// A part.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum PartJson<'a> {
    Raw(&'a RawValue),
    #[serde(rename_all = "camelCase")]
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: CallJson<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: ResponseJson<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Inline {
        inline_data: InlineJson<'a>,
    },
    #[serde(rename_all = "camelCase")]
    File {
        file_data: FileJson<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct CallJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) args: Object<'a>,
}

#[derive(Serialize)]
pub(super) struct ResponseJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) response: Object<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InlineJson<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    file_uri: &'a str,
}

impl<'a> PartJson<'a> {
    pub(super) fn text(text: &'a str, thought: bool) -> Self {
        Self::Text { text, thought, thought_signature: None }
    }

    pub(super) fn media(media: &'a Media, mime: &'static str) -> Self {
        let url = match &media.source {
            MediaSource::Base64(data) => return Self::inline(media.mime.as_deref().unwrap_or(mime), data),
            MediaSource::Url(url) | MediaSource::File(url) => url.as_str(),
            _ => "",
        };
        match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
            Some((mime, data)) => Self::inline(mime, data),
            None => Self::File { file_data: FileJson { mime_type: media.mime.as_deref(), file_uri: url } },
        }
    }

    fn inline(mime_type: &'a str, data: &'a str) -> Self {
        Self::Inline { inline_data: InlineJson { mime_type, data } }
    }

    pub(super) fn image(media: &'a Media) -> Self {
        Self::media(media, "image/png")
    }

    pub(super) fn document(media: &'a Media) -> Self {
        Self::media(media, "application/pdf")
    }

    /// The part in this API's form; none if it is another provider's and means nothing here.
    pub(super) fn of(manner: &Manner, part: &'a Part) -> Option<Self> {
        let raw = match part {
            Part::Text(text) => text.raw.as_ref(),
            Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
            Part::Other(raw) => return manner.own(Some(raw)).map(Self::Raw),
            _ => None,
        };
        if let Some(own) = manner.own(raw).filter(|own| says(manner, own, part)) {
            return Some(Self::Raw(own));
        }
        match part {
            // The API refuses a part that says nothing.
            Part::Text(text) => Some(Self::text(&text.text, false)).filter(|_| !text.text.is_empty()),
            Part::Image(media) => Some(Self::image(media)),
            Part::Document(media) => Some(Self::document(media)),
            _ => None,
        }
    }
}

/// True if the provider's JSON is still of this part: it may have been edited.
fn says(manner: &Manner, own: &RawValue, part: &Part) -> bool {
    match (user_part(own, &manner.origin), part) {
        (Part::Text(was), Part::Text(is)) => was.text == is.text,
        (Part::Image(was), Part::Image(is)) | (Part::Document(was), Part::Document(is)) => was.source == is.source,
        _ => false,
    }
}

/// The JSON of a list.
pub(super) fn write_list<T: Serialize>(items: &[T]) -> String {
    serde_json::to_string(items).expect("parts are JSON")
}
