//! Parts in the API's form.

use std::borrow::Cow;

use agent_core::{
    Media, Part,
    message::{MediaSource, Origin, Raw},
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::read::PartSaid;
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

/// A content with its other fields.
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

    /// Encodes a text with the provider's own parts if they still match, else with the part that
    /// `made` builds. The API rejects an empty part.
    pub(super) fn words(
        origin: &Origin,
        words: &'a str,
        raw: Option<&'a Raw>,
        made: impl FnOnce(&'a str) -> Self,
    ) -> Vec<Self> {
        let own = own(origin, raw).map(items).unwrap_or_default();
        let said: String = own.iter().filter_map(|part| PartSaid::read(part)?.text).map(|text| text.0).collect();
        match () {
            () if !own.is_empty() && said == words => own.into_iter().map(Self::Raw).collect(),
            () if words.is_empty() => Vec::new(),
            () => vec![made(words)],
        }
    }

    pub(super) fn image(origin: &Origin, media: &'a Media) -> Self {
        Self::media(origin, media, "image/png")
    }

    pub(super) fn document(origin: &Origin, media: &'a Media) -> Self {
        Self::media(origin, media, "application/pdf")
    }

    /// Encodes media, with the provider's own JSON if it still matches.
    fn media(origin: &Origin, media: &'a Media, usual: &'static str) -> Self {
        let was = |own: &RawValue| PartSaid::read(own)?.media(own, origin);
        if let Some(own) = own(origin, media.raw.as_ref())
            && was(own).is_some_and(|was| was.source == media.source)
        {
            return Self::Raw(own);
        }
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

    /// Encodes the parts, without other providers' content that means nothing here.
    pub(super) fn all(origin: &Origin, parts: impl IntoIterator<Item = &'a Part>) -> Vec<Self> {
        let parts = parts.into_iter().flat_map(|part| match part {
            Part::Text(text) => Self::words(origin, &text.text, text.raw.as_ref(), |words| Self::text(words, false)),
            Part::Image(media) => vec![Self::image(origin, media)],
            Part::Document(media) => vec![Self::document(origin, media)],
            Part::Other(raw) => own(origin, Some(raw)).map(Self::Raw).into_iter().collect(),
            _ => Vec::new(),
        });
        parts.collect()
    }
}

/// Returns the parts in a block's JSON, which is one part or a list.
pub(super) fn items(own: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(own.get()).unwrap_or_else(|_| vec![own])
}
