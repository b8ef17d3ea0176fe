//! Decoding of the API's parts.

use agent_core::{
    Block, Media, ToolCall, exact,
    message::{MediaSource, Origin},
};
#[cfg(feature = "requests")]
use agent_core::{Part, Text};
use serde_json::{Value, value::RawValue};

use super::{partial::ArgSaid, server_tools::server_call};
use crate::wire::{
    ids::NAMELESS,
    json::raw,
    lenient::{Str, lenient, text},
    open_struct::open_struct,
};

open_struct! {
    /// A part's known fields. Clients write them in two spellings.
    PartSaid {
        text: Str<'a> = "text",
        thought: bool = "thought",
        signature: Str<'a> = "thoughtSignature" | "thought_signature",
        call: CallSaid<'a> = "functionCall" | "function_call",
        response: &'a RawValue = "functionResponse" | "function_response",
        inline: InlineSaid<'a> = "inlineData" | "inline_data",
        file: FileSaid<'a> = "fileData" | "file_data",
    }
}

open_struct! {
    CallSaid {
        id: Str<'a> = "id",
        name: Str<'a> = "name",
        args: &'a RawValue = "args",
        partial: Vec<ArgSaid<'a>> = "partialArgs" | "partial_args",
        continues: bool = "willContinue" | "will_continue",
    }
}

open_struct! {
    InlineSaid {
        mime: Str<'a> = "mimeType" | "mime_type",
        data: Str<'a> = "data",
    }
}

open_struct! {
    FileSaid {
        mime: Str<'a> = "mimeType" | "mime_type",
        uri: Str<'a> = "fileUri" | "file_uri",
    }
}

/// URL prefixes of uploaded files, which only the provider can fetch.
const STORES: [&str; 2] = ["https://generativelanguage.googleapis.com/", "gs://"];

impl CallSaid<'_> {
    /// Returns the id, if it has one.
    pub(super) fn id(&self) -> Option<&str> {
        Some(text(&self.id)).filter(|id| !id.is_empty())
    }

    pub(super) fn name(&self) -> &str {
        Some(text(&self.name)).filter(|name| !name.is_empty()).unwrap_or(NAMELESS)
    }

    pub(super) fn arguments(&self) -> String {
        self.args.map_or_else(
            || "{}".to_owned(),
            |json| match exact::is_lossless(json.get()) {
                true => lenient::<Value>(json).to_string(),
                false => json.get().to_owned(),
            },
        )
    }

    /// Returns true if this is a piece of a streamed call.
    pub(super) fn is_piece(&self) -> bool {
        self.continues == Some(true) || self.partial.is_some()
    }
}

impl<'a> PartSaid<'a> {
    /// Decodes a part; `None` if the JSON is not a part.
    pub(super) fn read(json: &'a RawValue) -> Option<Self> {
        serde_json::from_str(json.get()).ok()
    }

    /// Returns true for text or a standalone signature, without unknown fields in their place.
    pub(super) fn is_text(&self) -> bool {
        let other = self.call.is_some() || self.response.is_some() || self.inline.is_some() || self.file.is_some();
        let is_only = self.rest.is_empty() && (self.text.is_some() || self.signature.is_some());
        !other && (is_only || !text(&self.text).is_empty())
    }

    /// Returns true for a thought.
    pub(super) fn is_thought(&self) -> bool {
        self.thought == Some(true)
    }

    /// Returns the signature, if there is one.
    pub(super) fn signed(&self) -> Option<&str> {
        Some(text(&self.signature)).filter(|signature| !signature.is_empty())
    }

    /// Returns true if the part contains more than its text.
    pub(super) fn says_more_than_text(&self) -> bool {
        self.signed().is_some() || !self.rest.is_empty()
    }

    /// Decodes a part that is not text. `name` generates an id for a call that has none.
    pub(super) fn block(&self, json: &RawValue, origin: &Origin, name: impl FnOnce() -> String) -> Block {
        match self {
            Self { call: Some(call), .. } => {
                let id = call.id();
                let says_more =
                    id.is_some() || self.text.is_some() || self.says_more_than_text() || !call.rest.is_empty();
                Block::ToolCall(ToolCall {
                    id: id.map_or_else(name, str::to_owned).into(),
                    name: call.name().into(),
                    arguments: call.arguments(),
                    raw: says_more.then(|| raw(json, origin)),
                })
            }
            _ => match self.media(json, origin).filter(|_| !self.is_thought()) {
                Some(media) if is_image(&media) => Block::Image(media),
                Some(media) => Block::Document(media),
                None => server_call(json, origin).unwrap_or_else(|| Block::Other(raw(json, origin))),
            },
        }
    }

    pub(super) fn media(&self, json: &RawValue, origin: &Origin) -> Option<Media> {
        let (source, mime, says_more) = match self {
            Self { inline: Some(InlineSaid { mime, data: Some(data), rest }), .. } => {
                (MediaSource::Base64(data.0.to_string()), mime, !rest.is_empty())
            }
            Self { file: Some(FileSaid { mime, uri: Some(uri), rest }), .. } => {
                let is_stored = STORES.iter().any(|store| uri.0.starts_with(store));
                let source = if is_stored { MediaSource::File } else { MediaSource::Url };
                (source(uri.0.to_string()), mime, !rest.is_empty())
            }
            _ => return None,
        };
        let says_more = says_more || self.says_more_than_text();
        let mut media = Media::new(source).with_raw(says_more.then(|| raw(json, origin)));
        media.mime = mime.as_ref().map(|mime| mime.0.to_string());
        Some(media)
    }
}

fn is_image(media: &Media) -> bool {
    media.mime.as_ref().is_some_and(|mime| mime.starts_with("image/"))
}

/// Decodes the parts of a user message or of a result.
#[cfg(feature = "requests")]
pub(super) fn user_parts(parts: &[&RawValue], origin: &Origin) -> Vec<Part> {
    parts.iter().map(|part| user_part(part, origin)).collect()
}

#[cfg(feature = "requests")]
fn user_part(json: &RawValue, origin: &Origin) -> Part {
    let Some(said) = PartSaid::read(json) else { return Part::Other(raw(json, origin)) };
    if said.is_text() && !said.is_thought() {
        let as_sent = said.says_more_than_text().then(|| raw(json, origin));
        return Part::Text(Text::new(said.text.unwrap_or_default().0).with_raw(as_sent));
    }
    match said.media(json, origin).filter(|_| said.call.is_none() && said.response.is_none()) {
        Some(media) if is_image(&media) => Part::Image(media),
        Some(media) => Part::Document(media),
        None => Part::Other(raw(json, origin)),
    }
}
