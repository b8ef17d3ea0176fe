//! Parts, as the API writes them.

use std::borrow::Cow;

use agent_core::{
    Media, Part,
    message::{MediaSource, Origin},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::read::user_part;
use crate::wire::json::{Object, own};

/// A part.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum PartJson<'a> {
    FunctionResponse {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: &'a str,
        response: Object<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Self>,
    },
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    FileData {
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
        file_uri: &'a str,
    },
    #[serde(untagged)]
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(untagged)]
    Call {
        function_call: CallJson<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<Cow<'a, str>>,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct CallJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) args: Object<'a>,
}

/// What somebody said, and what else the content holds.
#[derive(Serialize)]
pub(super) struct ContentJson<'a> {
    #[serde(flatten)]
    pub(super) rest: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    pub(super) parts: Vec<PartJson<'a>>,
}

impl<'a> PartJson<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>, thought: bool) -> Self {
        Self::Text { text: text.into(), thought, thought_signature: None }
    }

    pub(super) fn image(media: &'a Media) -> Self {
        Self::media(media, "image/png")
    }

    pub(super) fn document(media: &'a Media) -> Self {
        Self::media(media, "application/pdf")
    }

    fn media(media: &'a Media, usual: &'static str) -> Self {
        let url = match &media.source {
            MediaSource::Base64(data) => {
                return Self::InlineData { mime_type: media.mime.as_deref().unwrap_or(usual), data };
            }
            MediaSource::Url(url) | MediaSource::File(url) => url.as_str(),
            _ => "",
        };
        match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
            Some((mime_type, data)) => Self::InlineData { mime_type, data },
            None => Self::FileData { mime_type: media.mime.as_deref(), file_uri: url },
        }
    }

    /// The parts in this API's form.
    pub(super) fn all(origin: &Origin, parts: &'a [Part]) -> Vec<Self> {
        parts.iter().filter_map(|part| Self::of(origin, part)).collect()
    }

    /// The part in this API's form; none if it is another provider's and means nothing here.
    pub(super) fn of(origin: &Origin, part: &'a Part) -> Option<Self> {
        let raw = match part {
            Part::Text(text) => text.raw.as_ref(),
            Part::Image(media) | Part::Document(media) => media.raw.as_ref(),
            Part::Other(raw) => return own(origin, Some(raw)).map(Self::Raw),
            _ => None,
        };
        if let Some(own) = own(origin, raw).filter(|own| says(origin, own, part)) {
            return Some(Self::Raw(own));
        }
        match part {
            // The API refuses a part that says nothing.
            Part::Text(text) => Some(Self::text(&*text.text, false)).filter(|_| !text.text.is_empty()),
            Part::Image(media) => Some(Self::image(media)),
            Part::Document(media) => Some(Self::document(media)),
            _ => None,
        }
    }
}

/// True if the provider's JSON is still of this part: it may have been edited.
fn says(origin: &Origin, own: &RawValue, part: &Part) -> bool {
    match (user_part(own, origin), part) {
        (Part::Text(was), Part::Text(is)) => was.text == is.text,
        (Part::Image(was), Part::Image(is)) | (Part::Document(was), Part::Document(is)) => was.source == is.source,
        _ => false,
    }
}
