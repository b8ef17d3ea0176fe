//! Content in formats that several APIs share.

use std::{borrow::Cow, ops::Range};

use agent_core::{
    History, Media, Message, ModelRequest, Part, Result, ToolCall,
    message::{MediaSource, Origin},
};
use serde::{
    Serialize, Serializer,
    de::{self, DeserializeSeed, Deserializer, Visitor},
};
use serde_json::value::RawValue;

use super::{json::own, server_tools::refusal, surrogates::mend_surrogates};

/// A URL, or bytes as a data URL. Base64 may be long: it is written without an intermediate copy.
#[derive(Clone, Copy)]
pub(crate) enum Address<'a> {
    Url(&'a str),
    Data { mime: &'a str, base64: &'a str },
}

impl<'a> Address<'a> {
    /// Returns the location of `media`; `mime` is the default type of inline media.
    pub(crate) fn of(media: &'a Media, mime: &'a str) -> Self {
        match &media.source {
            MediaSource::Base64(base64) => Self::Data { mime: media.mime.as_deref().unwrap_or(mime), base64 },
            MediaSource::Url(url) | MediaSource::File(url) => Self::Url(url),
            _ => Self::Url(""),
        }
    }
}

impl Serialize for Address<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Url(url) => serializer.serialize_str(url),
            Self::Data { mime, base64 } => serializer.collect_str(&format_args!("data:{mime};base64,{base64}")),
        }
    }
}

/// Creates media from a URL, which may be a data URL.
pub(crate) fn media_at(url: &str) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((mime, data)) = inline else { return Media::url(url) };
    Media::base64(data, mime)
}

/// Returns true for media referenced by a file id.
pub(crate) fn is_file(part: &Part) -> bool {
    matches!(part, Part::Image(media) | Part::Document(media) if matches!(media.source, MediaSource::File(_)))
}

/// Returns the parts of a message that is not the assistant's.
pub(crate) fn parts_of(message: &Message) -> &[Part] {
    match message {
        Message::System(message) => message.parts(),
        Message::User(message) => message.parts(),
        Message::Tool(message) => message.parts(),
        Message::Assistant(_) => &[],
    }
}

/// Checks that each part of a conversation `is_taken`, except the assistant's.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) that names `what` is accepted.
pub(crate) fn check_parts(req: &ModelRequest, is_taken: impl Fn(&Part) -> bool, what: &'static str) -> Result<()> {
    if req.messages.iter().flat_map(parts_of).all(is_taken) { Ok(()) } else { Err(refusal(what)) }
}

/// Checks all media of users and of results with `refuse`. Media with the provider's own JSON are
/// skipped.
///
/// # Errors
/// [`InvalidRequest`](agent_core::ErrorKind::InvalidRequest) with the first reason that `refuse`
/// returns.
pub(crate) fn check_media(
    history: &History,
    origin: &Origin,
    refuse: impl Fn(&Part, &Media, bool) -> Option<String>,
) -> Result<()> {
    let messages = history.iter().filter(|message| !matches!(message, Message::System(_)));
    let parts = messages.flat_map(|message| parts_of(message).iter().map(move |part| (message, part)));
    let mut refused = parts.filter_map(|(message, part)| match part {
        Part::Image(media) | Part::Document(media) if own(origin, media.raw.as_ref()).is_none() => {
            refuse(part, media, message.as_tool().is_some())
        }
        _ => None,
    });
    refused.next().map_or(Ok(()), |why| Err(refusal(why)))
}

/// Returns true if both have the same bytes or location, and the same name.
pub(crate) fn same_media(a: &Media, b: &Media) -> bool {
    (&a.source, &a.mime, &a.name) == (&b.source, &b.mime, &b.name)
}

/// Converts a range of characters of `text` into a range of bytes; `None` if it is out of bounds.
pub(crate) fn bytes_of(text: &str, from: usize, to: usize) -> Option<Range<usize>> {
    if text.is_ascii() {
        return (from < to && to <= text.len()).then_some(from..to);
    }
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let start = places.nth(from)?;
    let end = places.nth(to.checked_sub(from + 1)?)?;
    Some(start..end)
}

/// Placeholder for content that must not be empty.
pub(crate) const EMPTY: &str = "[empty]";

/// Joins the text parts with line breaks.
pub(crate) fn joined(parts: &[Part]) -> Cow<'_, str> {
    lines(parts.iter().filter_map(Part::as_text))
}

/// Joins the texts with line breaks. A single text is not copied.
pub(crate) fn lines<'a>(mut texts: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let mut all = Cow::Borrowed(texts.next().unwrap_or_default());
    for text in texts {
        all += "\n";
        all += text;
    }
    all
}

/// The arguments of a call as an object, even if the model wrote something else.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Input<'a> {
    Object(&'a RawValue),
    /// Without escapes of lone surrogates, which JSON parsers reject.
    Mended(Box<RawValue>),
    None {},
    Invalid {
        #[serde(rename = "INVALID_JSON")]
        text: &'a str,
    },
}

impl<'a> Input<'a> {
    pub(crate) fn new(arguments: &'a str) -> Self {
        if let Cow::Owned(mended) = mend_surrogates(arguments)
            && mended.trim_start().starts_with('{')
            && let Ok(json) = RawValue::from_string(mended.trim().to_owned())
        {
            return Self::Mended(json);
        }
        match serde_json::from_str::<&RawValue>(arguments) {
            Ok(json) if json.get().starts_with('{') => Self::Object(json),
            _ if arguments.trim().is_empty() => Self::None {},
            _ => Self::Invalid { text: arguments },
        }
    }
}

/// Returns true if both call the same tool with the same arguments and id.
pub(crate) fn same_call(a: &ToolCall, b: &ToolCall) -> bool {
    (&a.id, &a.name, &a.arguments) == (&b.id, &b.name, &b.arguments)
}

/// Appends arguments to those already known. They are JSON inside a string; some servers send plain
/// JSON.
pub(crate) fn push_arguments(json: &RawValue, known: &mut String) -> serde_json::Result<()> {
    match json.get() {
        "null" => Ok(()),
        text if text.starts_with('"') => Push(known).deserialize(&mut serde_json::Deserializer::from_str(text)),
        object => {
            known.push_str(object);
            Ok(())
        }
    }
}

/// Deserialises a string by appending to another, without an intermediate allocation.
struct Push<'s>(&'s mut String);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Push<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }
}
