//! From the JSON of one assistant message to its blocks.

use std::borrow::Cow;

use agent_core::{Block, Media, Origin, Raw, Reasoning, Text, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{
    ids::call_id,
    lenient::{Content, Str},
    open_struct::open_struct,
};

open_struct! {
    /// The message, as far as it is understood. What is not stays in the raw JSON that is kept beside the blocks.
    Said {
        _role: Str<'a> = "role",
        content: Content<'a> = "content",
        reasoning_content: Content<'a> = "reasoning_content",
        reasoning: Content<'a> = "reasoning",
        reasoning_details: &'a RawValue = "reasoning_details",
        refusal: Str<'a> = "refusal",
        images: &'a RawValue = "images",
        audio: &'a RawValue = "audio",
        tool_calls: Vec<&'a RawValue> = "tool_calls",
    }
}

open_struct! {
    Audio { transcript: Str<'a> = "transcript", }
}

open_struct! {
    /// A part of a content that is a list.
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        thinking: Content<'a> = "thinking",
        image_url: ImageUrl<'a> = "image_url",
    }
}

open_struct! {
    ImageUrl { url: Str<'a> = "url", }
}

open_struct! {
    Detail {
        text: Str<'a> = "text",
        summary: Str<'a> = "summary",
        signature: Str<'a> = "signature",
        data: Str<'a> = "data",
    }
}

open_struct! {
    Call {
        id: Str<'a> = "id",
        _index: &'a RawValue = "index",
        _kind: Str<'a> = "type",
        function: Function<'a> = "function",
        custom: Custom<'a> = "custom",
    }
}

open_struct! {
    Function { name: Str<'a> = "name", arguments: &'a RawValue = "arguments", }
}

open_struct! {
    Custom { name: Str<'a> = "name", input: Str<'a> = "input", }
}

/// The fields of a message that blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Reasoning,
    Content,
    Refusal,
    Images,
    Calls,
}

/// How a message that came whole is ordered: models think, then speak, then call.
pub(super) const ORDER: [Field; 5] = [Field::Reasoning, Field::Content, Field::Refusal, Field::Images, Field::Calls];

/// What was understood of a message.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) blocks: Vec<Block>,
    /// A call had no id and was given one, so that the message is no longer as the provider sent it.
    pub(super) named_calls: bool,
    /// The model refused to answer, and said nothing else.
    pub(super) refused: bool,
}

/// Reads the message `json`. `response` is the id of the response, and part of the ids of calls that have none.
pub(super) fn read(json: &str, origin: &Origin, response: &str, order: [Field; 5]) -> serde_json::Result<Reading> {
    let said: Said<'_> = serde_json::from_str(json)?;
    let mut reading = Reading::default();
    let unknown = said.rest.iter().map(|(_, json)| *json).chain(said.audio);
    let says_something = |json: &RawValue| json.get().starts_with(['"', '[', '{']) && json.get().len() > 2;
    let has_unknown = unknown.into_iter().any(says_something);
    reading.refused = said.refusal.as_ref().is_some_and(|r| !r.is_empty());
    for field in order {
        let blocks: Vec<Block> = match field {
            Field::Reasoning => reasoning(&said, origin)?.into_iter().collect(),
            Field::Content => content(&said, origin)?,
            Field::Refusal => refusal(&said, origin).into_iter().collect(),
            Field::Images => parts(&said.images.map(lenient::<Vec<_>>).unwrap_or_default(), origin)?,
            Field::Calls => {
                let calls = said.tool_calls.iter().flatten().enumerate();
                let calls = calls.map(|(at, json)| {
                    let mut call = call(json.get(), origin)?;
                    if call.id.is_empty() {
                        (call.id, call.raw, reading.named_calls) = (call_id(response, at).into(), None, true);
                    }
                    Ok(Block::ToolCall(call))
                });
                calls.collect::<serde_json::Result<_>>()?
            }
        };
        reading.refused &= blocks.is_empty() || field == Field::Refusal;
        reading.blocks.extend(blocks);
    }
    if reading.blocks.is_empty() && has_unknown {
        // Nothing in it is understood, but something was said.
        reading.blocks.push(Block::Other(raw(json, origin)));
    }
    Ok(reading)
}

/// The readable reasoning of a message, of which servers have three spellings, and some send two.
fn reasoning(said: &Said<'_>, origin: &Origin) -> serde_json::Result<Option<Block>> {
    let mut reasoning = Reasoning::default();
    for spelling in [&said.reasoning_content, &said.reasoning].into_iter().flatten() {
        if reasoning.text.is_empty() {
            reasoning.text = plain(spelling)?.into_owned();
        }
    }
    let details: Vec<Detail<'_>> = said.reasoning_details.map(lenient).unwrap_or_default();
    if !details.is_empty() {
        reasoning.raw = said.reasoning_details.map(|json| raw(json.get(), origin));
    }
    if reasoning.text.is_empty() {
        reasoning.text = details.iter().flat_map(Detail::said).collect();
    }
    for detail in details {
        reasoning.signature = text(detail.signature).or(reasoning.signature);
        reasoning.encrypted = reasoning.encrypted.or(text(detail.data));
    }
    Ok(Some(reasoning).filter(|r| !r.text.is_empty() || r.raw.is_some()).map(Block::Reasoning))
}

/// The readable text of a delta's `reasoning_details`; none if there are no details.
pub(super) fn details_text(json: &RawValue) -> Option<String> {
    let details: Vec<Detail<'_>> = lenient(json);
    (!details.is_empty()).then(|| details.iter().flat_map(Detail::said).collect())
}

impl Detail<'_> {
    fn said(&self) -> impl Iterator<Item = &str> {
        [&self.text, &self.summary].into_iter().flatten().map(|text| &*text.0)
    }
}

/// Reads an extra of a vendor; one of another form is as good as none, since the raw message keeps it.
fn lenient<'a, T: Deserialize<'a> + Default>(json: &'a RawValue) -> T {
    serde_json::from_str(json.get()).unwrap_or_default()
}

fn content(said: &Said<'_>, origin: &Origin) -> serde_json::Result<Vec<Block>> {
    let text = match &said.content {
        Some(Content::Parts(list)) => return parts(list, origin),
        Some(Content::Text(text)) if !text.is_empty() => text,
        // A spoken answer has its words in the transcript.
        _ => &match said.audio.and_then(|json| lenient::<Audio<'_>>(json).transcript) {
            Some(transcript) if !transcript.is_empty() => transcript.0,
            _ => return Ok(Vec::new()),
        },
    };
    Ok(vec![Block::text(&**text)])
}

fn parts(list: &[&RawValue], origin: &Origin) -> serde_json::Result<Vec<Block>> {
    let blocks = list.iter().map(|json| part(json, origin));
    blocks.filter(|block| !matches!(block, Ok(Block::Text(text)) if text.is_empty())).collect()
}

/// The block of one part of a content.
pub(super) fn part(json: &RawValue, origin: &Origin) -> serde_json::Result<Block> {
    let as_sent = || Some(raw(json.get(), origin));
    if json.get().starts_with('"') {
        return Ok(Block::text(serde_json::from_str::<Str<'_>>(json.get())?.0));
    }
    if !json.get().starts_with('{') {
        return Ok(Block::Other(raw(json.get(), origin)));
    }
    let part: PartSaid<'_> = serde_json::from_str(json.get())?;
    Ok(match (part.kind.as_ref().map(|k| &*k.0), part.text, part.thinking, part.image_url) {
        (Some("text"), Some(text), None, None) => {
            let raw = if part.rest.is_empty() { None } else { as_sent() };
            Block::Text(Text::new(text.0).with_raw(raw))
        }
        (Some("thinking"), None, Some(thinking), None) => {
            Block::Reasoning(Reasoning { text: plain(&thinking)?.into_owned(), raw: as_sent(), ..Reasoning::default() })
        }
        (Some("image_url"), None, None, Some(ImageUrl { url: Some(url), .. })) => {
            Block::Image(image(&url.0).with_raw(as_sent()))
        }
        _ => Block::Other(raw(json.get(), origin)),
    })
}

/// An image at a URL, or within one.
fn image(url: &str) -> Media {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((mime, data)) = inline else { return Media::url(url) };
    Media::base64(data, mime)
}

fn refusal(said: &Said<'_>, origin: &Origin) -> Option<Block> {
    let refusal = said.refusal.as_ref().filter(|r| !r.is_empty())?;
    let part = serde_json::json!({"type": "refusal", "refusal": refusal});
    Some(Block::Other(Raw::from_value(origin.clone(), &part)))
}

/// One call; it keeps its JSON if that says more than the call.
pub(super) fn call(json: &str, origin: &Origin) -> serde_json::Result<ToolCall> {
    let call: Call<'_> = serde_json::from_str(json)?;
    let function = call.function.unwrap_or_default();
    let says_more = !call.rest.is_empty() || !function.rest.is_empty() || call.custom.is_some();
    let (name, arguments) = match call.custom {
        Some(custom) => (custom.name, custom.input.map(|input| input.0)),
        None => (function.name, function.arguments.map(arguments).transpose()?),
    };
    Ok(ToolCall {
        id: call.id.map(|id| id.0.into()).unwrap_or_default(),
        name: name.map(|name| name.0.into()).unwrap_or_default(),
        arguments: arguments.map(Cow::into_owned).unwrap_or_default(),
        raw: says_more.then(|| raw(json, origin)),
    })
}

/// Arguments are JSON in a text; some servers send the JSON itself.
pub(super) fn arguments(json: &RawValue) -> serde_json::Result<Cow<'_, str>> {
    match json.get() {
        "null" => Ok(Cow::Borrowed("")),
        text if text.starts_with('"') => Ok(serde_json::from_str::<Str<'_>>(text)?.0),
        object => Ok(Cow::Borrowed(object)),
    }
}

/// The text of a content, with that of its parts run together.
pub(super) fn plain<'a>(content: &Content<'a>) -> serde_json::Result<Cow<'a, str>> {
    let parts = match content {
        Content::Text(text) => return Ok(text.clone()),
        Content::Parts(parts) => parts,
    };
    let mut all = String::new();
    for json in parts {
        match json.get().as_bytes().first() {
            Some(b'"') => all.push_str(&serde_json::from_str::<Str<'_>>(json.get())?.0),
            Some(b'{') => {
                let part: PartSaid<'_> = serde_json::from_str(json.get())?;
                all.push_str(part.text.as_ref().map_or("", |t| &t.0));
            }
            _ => {}
        }
    }
    Ok(Cow::Owned(all))
}

fn text(text: Option<Str<'_>>) -> Option<String> {
    text.filter(|t| !t.is_empty()).map(|t| t.0.into_owned())
}

fn raw(json: &str, origin: &Origin) -> Raw {
    Raw::parse(origin.clone(), json).expect("it was just read as JSON")
}
