//! From the JSON of one assistant message to its blocks.

use agent_core::{
    AssistantMessage, Block, Media,
    message::{Origin, Raw, Reasoning},
};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use serde_json::value::RawValue;

use super::{
    read_call::{Call, calls},
    read_part::{citations, lenient, part, plain, raw},
};
use crate::wire::{
    ids::{NAMELESS, call_id},
    lenient::{Content, Str, each},
    open_struct::open_struct,
};

open_struct! {
    /// The message, as far as it is understood. What is not stays in the raw JSON that is kept beside the blocks.
    Said {
        _role: Str<'a> = "role",
        content: Content<'a> = "content",
        reasoning_content: Content<'a> = "reasoning_content",
        reasoning: Content<'a> = "reasoning",
        tool_plan: Content<'a> = "tool_plan",
        reasoning_details: &'a RawValue = "reasoning_details",
        refusal: Str<'a> = "refusal",
        images: &'a RawValue = "images",
        audio: &'a RawValue = "audio",
        annotations: &'a RawValue = "annotations",
        tool_calls: Vec<Call<'a>> = "tool_calls",
    }
}

open_struct! {
    Audio { transcript: Str<'a> = "transcript", data: Str<'a> = "data", }
}

open_struct! {
    Detail {
        text: Str<'a> = "text",
        summary: Str<'a> = "summary",
        signature: Str<'a> = "signature",
        data: Str<'a> = "data",
    }
}

/// The fields of a message that blocks are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Field {
    Reasoning,
    Content,
    Refusal,
    Images,
    Calls,
}

/// How a message that came whole is ordered: models think, then speak, then call.
pub(in crate::wire) const ORDER: [Field; 5] =
    [Field::Reasoning, Field::Content, Field::Refusal, Field::Images, Field::Calls];

/// What was understood of a message.
#[derive(Debug, Default)]
pub(in crate::wire) struct Reading {
    pub(in crate::wire) blocks: Vec<Block>,
    /// A call had no id or no name and was given one, so that the message is no longer as the provider sent it.
    mended: bool,
    /// The model refused to answer, and said nothing else.
    pub(in crate::wire) refused: bool,
}

/// Reads the message `json`. `response` is the id of the response, and part of the ids of calls that have none.
pub(in crate::wire) fn read(
    json: &RawValue,
    origin: &Origin,
    response: &str,
    order: [Field; 5],
) -> serde_json::Result<Reading> {
    let mut said: Said<'_> = serde_json::from_str(json.get())?;
    let mut reading = Reading { refused: said.refusal.as_ref().is_some_and(|r| !r.is_empty()), ..Reading::default() };
    for field in order {
        let before = reading.blocks.len();
        match field {
            Field::Reasoning => reading.blocks.extend(reasoning(&mut said, origin)?),
            Field::Content => content(&mut said, origin, &mut reading.blocks)?,
            Field::Refusal => reading.blocks.extend(refusal(&said, origin)),
            Field::Images => images(&said, origin, &mut reading.blocks),
            Field::Calls => add_calls(&mut said, json, origin, response, &mut reading)?,
        }
        reading.refused &= reading.blocks.len() == before || field == Field::Refusal;
    }
    reading.blocks.extend(said.audio.and_then(speech));
    let text =
        reading.blocks.iter_mut().find_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
    if let (Some(text), Some(json)) = (text, said.annotations) {
        text.citations = citations(json, &text.text);
    }
    let unknown = said.rest.iter().map(|(_, json)| *json).chain(said.audio).chain(said.annotations);
    let says_something = |json: &RawValue| json.get().starts_with(['"', '[', '{']) && json.get().len() > 2;
    if reading.blocks.is_empty() && unknown.into_iter().any(says_something) {
        // Nothing in it is understood, but something was said.
        reading.blocks.push(Block::Other(raw(json, origin)));
    }
    Ok(reading)
}

impl Reading {
    /// The message that was read from `raw`.
    pub(in crate::wire) fn into_message(self, raw: Raw) -> AssistantMessage {
        let mut message = AssistantMessage::from_provider(self.blocks, raw);
        if self.mended {
            message.blocks_mut(); // the results will name ids that the raw message does not have
        }
        message
    }
}

/// The readable reasoning of a message, of which servers have four spellings, and some send two.
fn reasoning(said: &mut Said<'_>, origin: &Origin) -> serde_json::Result<Option<Block>> {
    let mut reasoning = Reasoning::default();
    for spelling in [said.reasoning_content.take(), said.reasoning.take(), said.tool_plan.take()].into_iter().flatten()
    {
        if reasoning.text.is_empty() {
            reasoning.text = match spelling {
                Content::Text(text) => text.into_owned(),
                parts @ Content::Parts(_) => plain(&parts)?.into_owned(),
            };
        }
    }
    let Some(json) = said.reasoning_details else {
        return Ok(Some(reasoning).filter(|r| !r.text.is_empty()).map(Block::Reasoning));
    };
    let details: Vec<Detail<'_>> = lenient(json);
    if !details.is_empty() {
        reasoning.raw = Some(raw(json, origin));
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
pub(in crate::wire) fn details_text(json: &RawValue) -> Option<String> {
    let details: Vec<Detail<'_>> = lenient(json);
    (!details.is_empty()).then(|| details.iter().flat_map(Detail::said).collect())
}

impl Detail<'_> {
    fn said(&self) -> impl Iterator<Item = &str> {
        [&self.text, &self.summary].into_iter().flatten().map(|text| &*text.0)
    }
}

fn content(said: &mut Said<'_>, origin: &Origin, blocks: &mut Vec<Block>) -> serde_json::Result<()> {
    match said.content.take() {
        Some(Content::Parts(list)) => {
            for json in list {
                push_part(json, origin, blocks)?;
            }
        }
        Some(Content::Text(text)) if !text.is_empty() => blocks.push(Block::text(text)),
        // A spoken answer has its words in the transcript.
        _ => {
            let transcript = said.audio.and_then(|json| lenient::<Audio<'_>>(json).transcript);
            blocks.extend(transcript.filter(|t| !t.is_empty()).map(|t| Block::text(t.0)));
        }
    }
    Ok(())
}

/// Adds the block of a part, unless it says nothing.
fn push_part(json: &RawValue, origin: &Origin, blocks: &mut Vec<Block>) -> serde_json::Result<()> {
    let block = part(json, origin)?;
    if !matches!(&block, Block::Text(text) if text.is_empty()) {
        blocks.push(block);
    }
    Ok(())
}

/// Images beside the content; what is no list of them stays in the raw message.
fn images(said: &Said<'_>, origin: &Origin, blocks: &mut Vec<Block>) {
    let before = blocks.len();
    let read = said.images.map(|json| each(json, |image| push_part(image, origin, blocks)));
    if let Some(Err(_)) = read {
        blocks.truncate(before);
    }
}

/// The sound of a spoken answer. Its form is not said: how it begins shows it.
fn speech(json: &RawValue) -> Option<Block> {
    let data = lenient::<Audio<'_>>(json).data.filter(|data| !data.is_empty())?.0;
    let sound = sound(&data);
    let mime = match sound.get(..4)? {
        b"RIFF" => "audio/wav",
        b"fLaC" => "audio/flac",
        b"OggS" => "audio/ogg",
        [b'I', b'D', b'3', _] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => "audio/mpeg",
        [0xff, 0xf1 | 0xf9, ..] => "audio/aac",
        _ => "audio/pcm",
    };
    Some(Block::Document(Media::base64(BASE64_STANDARD.encode(sound), mime)))
}

/// The bytes of base64 that came in pieces, each of which may have its own end.
fn sound(data: &str) -> Vec<u8> {
    let pieces = data.split_inclusive('=').filter(|piece| *piece != "=");
    pieces.flat_map(|piece| STANDARD_LENIENT.decode(piece.trim_end_matches('=')).unwrap_or_default()).collect()
}

/// Base64 whose padding may be left out.
const STANDARD_LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn refusal(said: &Said<'_>, origin: &Origin) -> Option<Block> {
    let refusal = said.refusal.as_ref().filter(|r| !r.is_empty())?;
    let part = serde_json::json!({"type": "refusal", "refusal": refusal});
    Some(Block::Other(Raw::from_value(origin.clone(), &part)))
}

fn add_calls(
    said: &mut Said<'_>,
    message: &RawValue,
    origin: &Origin,
    response: &str,
    reading: &mut Reading,
) -> serde_json::Result<()> {
    let calls = calls(said.tool_calls.take().unwrap_or_default(), message, origin)?;
    reading.blocks.reserve_exact(calls.len()); // they are kept for as long as the run
    for (at, call) in calls.enumerate() {
        let mut call = call?;
        if call.id.is_empty() {
            (call.id, call.raw, reading.mended) = (call_id(response, at).into(), None, true);
        }
        if call.name.is_empty() {
            (call.name, call.raw, reading.mended) = (NAMELESS.into(), None, true);
        }
        reading.blocks.push(Block::ToolCall(call));
    }
    Ok(())
}

fn text(text: Option<Str<'_>>) -> Option<String> {
    text.filter(|t| !t.is_empty()).map(|t| t.0.into_owned())
}
