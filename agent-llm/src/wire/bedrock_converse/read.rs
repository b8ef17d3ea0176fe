//! Decoding of the API's blocks.

use agent_core::{
    Block, Media, Part, Text, ToolCall,
    message::{Citation, MediaSource, Origin, Reasoning, ServerCall, SourcePlace},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::media::Kind;
#[cfg(feature = "requests")]
use super::parts::mark_of;
use crate::wire::{
    json::{plain, raw},
    lenient::{Str, owned},
    open_struct::open_struct,
};

open_struct! {
    /// A block: one of these fields.
    BlockSaid {
        text: Str<'a> = "text",
        call: &'a RawValue = "toolUse",
        reasoning: ReasoningSaid<'a> = "reasoningContent",
        cited: CitedSaid<'a> = "citationsContent",
        image: MediaSaid<'a> = "image",
        document: MediaSaid<'a> = "document",
        video: MediaSaid<'a> = "video",
        audio: MediaSaid<'a> = "audio",
    }
}

open_struct! {
    CallSaid {
        id: Str<'a> = "toolUseId",
        name: Str<'a> = "name",
        input: &'a RawValue = "input",
        kind: Str<'a> = "type",
    }
}

open_struct! {
    ReasoningSaid {
        thoughts: ThoughtsSaid<'a> = "reasoningText",
        redacted: Str<'a> = "redactedContent",
    }
}

open_struct! {
    ThoughtsSaid { text: Str<'a> = "text", signature: Str<'a> = "signature", }
}

open_struct! {
    CitedSaid { content: Vec<TextSaid<'a>> = "content", citations: Vec<CitationSaid<'a>> = "citations", }
}

open_struct! {
    TextSaid { text: Str<'a> = "text", }
}

open_struct! {
    CitationSaid {
        title: Str<'a> = "title",
        source: Str<'a> = "source",
        location: LocationSaid<'a> = "location",
        quotes: Vec<TextSaid<'a>> = "sourceContent",
    }
}

open_struct! {
    LocationSaid {
        web: WebSaid<'a> = "web",
        characters: PlaceInSource = "documentChar",
        pages: PlaceInSource = "documentPage",
        blocks: PlaceInSource = "documentChunk",
    }
}

/// A location in a document of the request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PlaceInSource {
    document_index: u32,
    start: u64,
    end: u64,
}

open_struct! {
    WebSaid { url: Str<'a> = "url", }
}

open_struct! {
    MediaSaid { format: Str<'a> = "format", name: Str<'a> = "name", source: SourceSaid<'a> = "source", }
}

open_struct! {
    SourceSaid { bytes: Str<'a> = "bytes", location: PlaceSaid<'a> = "s3Location", }
}

open_struct! {
    PlaceSaid { uri: Str<'a> = "uri", }
}

/// Decodes a block of the assistant. Unknown blocks are kept raw.
pub(super) fn block(json: &RawValue, origin: &Origin) -> Block {
    understood(json, origin).or_else(|| server_call(json, origin)).unwrap_or_else(|| Block::Other(raw(json, origin)))
}

open_struct! {
    ServersSaid { call: CallSaid<'a> = "toolUse", result: ResultSaid<'a> = "toolResult", }
}

open_struct! {
    ResultSaid {
        id: Str<'a> = "toolUseId",
        content: &'a RawValue = "content",
        kind: Str<'a> = "type",
        status: Str<'a> = "status",
    }
}

/// Decodes the call or the result of a provider-side tool.
fn server_call(json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: ServersSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let raw = raw(json, origin);
    let call = match (said.call, said.result) {
        (Some(call), _) => {
            let mut made = ServerCall::new(&*call.id?.0, &*call.name?.0, raw);
            made.input = call.input.map(plain);
            made
        }
        (None, Some(result)) => {
            let name = result.kind.unwrap_or_default().0;
            let mut made = ServerCall::new(&*result.id?.0, name.trim_end_matches("_tool_result"), raw);
            made.output = result.content.map(plain);
            made.failed = result.status.is_some_and(|status| status.0 == "error");
            made
        }
        _ => return None,
    };
    Some(Block::Server(call))
}

fn understood(json: &RawValue, origin: &Origin) -> Option<Block> {
    let said: BlockSaid<'_> = serde_json::from_str(json.get()).ok()?;
    let is_more = !said.rest.is_empty();
    match said {
        BlockSaid { call: Some(json_of_call), .. } => call(json_of_call, json, is_more, origin).map(Block::ToolCall),
        BlockSaid { reasoning: Some(thoughts), .. } => reasoning(thoughts, json, is_more, origin).map(Block::Reasoning),
        BlockSaid { image: Some(_), .. } | BlockSaid { document: Some(_), .. } => None,
        BlockSaid { video: Some(_), .. } | BlockSaid { audio: Some(_), .. } => None,
        said => text(said, json, origin).map(Block::Text),
    }
}

/// Decodes parts of a user message or of a tool result. A cache point marks the part before it.
#[cfg(feature = "requests")]
pub(super) fn parts(content: &[&RawValue], origin: &Origin) -> Vec<Part> {
    let mut parts = Vec::new();
    for json in content {
        let marked = match parts.last_mut() {
            Some(
                Part::Text(Text { cache, .. }) | Part::Image(Media { cache, .. }) | Part::Document(Media { cache, .. }),
            ) => Some(cache),
            _ => None,
        };
        match (mark_of(json), marked) {
            (Some(mark), Some(cache @ None)) => *cache = Some(mark),
            _ => parts.push(part(json, origin)),
        }
    }
    parts
}

/// Decodes a part of a user message or of a tool result. Unknown parts are kept raw.
pub(super) fn part(json: &RawValue, origin: &Origin) -> Part {
    let part = serde_json::from_str::<BlockSaid<'_>>(json.get()).ok().and_then(|said| {
        let is_more = !said.rest.is_empty();
        match said {
            BlockSaid { image: Some(said), .. } => media(said, Kind::Image, json, is_more, origin).map(Part::Image),
            BlockSaid { document: Some(said), .. } => {
                media(said, Kind::Document, json, is_more, origin).map(Part::Document)
            }
            BlockSaid { video: Some(said), .. } => media(said, Kind::Video, json, is_more, origin).map(Part::Document),
            BlockSaid { audio: Some(said), .. } => media(said, Kind::Audio, json, is_more, origin).map(Part::Document),
            BlockSaid { call: Some(_), .. } | BlockSaid { reasoning: Some(_), .. } => None,
            said => text(said, json, origin).map(Part::Text),
        }
    });
    part.unwrap_or_else(|| Part::Other(raw(json, origin)))
}

/// Decodes a text block.
pub(super) fn text_of(json: &RawValue, origin: &Origin) -> Option<Text> {
    text(serde_json::from_str(json.get()).ok()?, json, origin)
}

/// Decodes a text, which keeps its JSON if that contains more.
fn text(said: BlockSaid<'_>, json: &RawValue, origin: &Origin) -> Option<Text> {
    let Some(cited) = said.cited else {
        return Some(Text::new(said.text?.0).with_raw((!said.rest.is_empty()).then(|| raw(json, origin))));
    };
    let words = cited.content.unwrap_or_default().into_iter().filter_map(|said| said.text);
    let mut text = Text::new(words.map(|words| words.0).collect::<String>()).with_raw(raw(json, origin));
    text.citations = cited.citations.unwrap_or_default().into_iter().map(citation).collect();
    Some(text)
}

fn citation(said: CitationSaid<'_>) -> Citation {
    let mut citation = Citation::default();
    let LocationSaid { web, characters, pages, blocks, .. } = said.location.unwrap_or_default();
    for (place, of) in [
        (characters, SourcePlace::Characters as fn(u64, u64) -> SourcePlace),
        (pages, SourcePlace::Pages),
        (blocks, SourcePlace::Blocks),
    ] {
        if let Some(PlaceInSource { document_index, start, end }) = place {
            (citation.document, citation.place) = (Some(document_index), Some(of(start, end)));
        }
    }
    let web = web.and_then(|web| web.url);
    citation.url = owned(web.or(said.source.filter(|source| source.0.contains("://"))));
    citation.title = owned(said.title);
    let quotes = said.quotes.unwrap_or_default().into_iter().filter_map(|quote| quote.text);
    citation.quote = Some(quotes.map(|quote| quote.0).collect::<String>()).filter(|quote| !quote.is_empty());
    citation
}

/// Decodes a call, unless the provider runs the tool itself.
fn call(said: &RawValue, json: &RawValue, is_more: bool, origin: &Origin) -> Option<ToolCall> {
    let said: CallSaid<'_> = serde_json::from_str(said.get()).ok()?;
    if said.kind.as_ref().is_some_and(|kind| is_servers(&kind.0)) {
        return None;
    }
    let is_more = is_more || said.kind.is_some() || !said.rest.is_empty();
    Some(ToolCall {
        raw: is_more.then(|| raw(json, origin)),
        id: said.id?.0.into(),
        name: said.name?.0.into(),
        arguments: said.input.map_or("{}", RawValue::get).to_owned(),
    })
}

/// Returns true if the provider runs the tool of a call of this type.
pub(super) fn is_servers(kind: &str) -> bool {
    kind == "server_tool_use"
}

fn reasoning(said: ReasoningSaid<'_>, json: &RawValue, is_more: bool, origin: &Origin) -> Option<Reasoning> {
    let is_both = said.thoughts.is_some() && said.redacted.is_some();
    let thoughts = said.thoughts.unwrap_or_default();
    let is_more = is_more || is_both || !said.rest.is_empty() || !thoughts.rest.is_empty();
    Some(Reasoning {
        raw: is_more.then(|| raw(json, origin)),
        text: thoughts.text.unwrap_or_default().0.into_owned(),
        signature: owned(thoughts.signature),
        encrypted: owned(said.redacted),
    })
}

/// Decodes media, which keep their JSON if it contains more than a [`Media`].
fn media(said: MediaSaid<'_>, kind: Kind, json: &RawValue, is_more: bool, origin: &Origin) -> Option<Media> {
    let source = said.source?;
    let is_more = is_more || !said.rest.is_empty() || !source.rest.is_empty();
    let (place, is_more) = match (source.bytes, source.location) {
        (Some(bytes), None) => (MediaSource::Base64(bytes.0.into_owned()), is_more),
        (None, Some(place)) => (MediaSource::Url(place.uri?.0.into_owned()), is_more || !place.rest.is_empty()),
        _ => return None,
    };
    let mut media = Media::new(place).with_raw(is_more.then(|| raw(json, origin)));
    media.mime = Some(kind.mime_of(&said.format?.0)?.to_owned());
    media.name = owned(said.name);
    Some(media)
}
