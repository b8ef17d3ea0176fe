//! From the JSON of one part of a content to its block.

use std::borrow::Cow;

use agent_core::{
    Block, Media, Text,
    message::{Cache, Citation, MediaSource, Origin, Raw, Reasoning},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{
    content::{bytes_of, media_at},
    lenient::{Content, Str, each},
    open_struct::open_struct,
};

open_struct! {
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        thinking: Content<'a> = "thinking",
        image_url: ImageUrl<'a> = "image_url",
        file: FileSaid<'a> = "file",
        document_url: &'a RawValue = "document_url",
        document_name: &'a RawValue = "document_name",
    }
}

open_struct! {
    ImageUrl { url: Str<'a> = "url", }
}

open_struct! {
    FileSaid { file_id: Str<'a> = "file_id", file_data: Str<'a> = "file_data", filename: Str<'a> = "filename", }
}

open_struct! {
    CacheSaid { ttl: Str<'a> = "ttl", }
}

open_struct! {
    Annotation { url_citation: Source<'a> = "url_citation", }
}

open_struct! {
    Source {
        url: Str<'a> = "url",
        title: Str<'a> = "title",
        content: Str<'a> = "content",
        start: usize = "start_index",
        end: usize = "end_index",
    }
}

/// The block of one part of a content.
pub(in crate::wire) fn part(json: &RawValue, origin: &Origin) -> serde_json::Result<Block> {
    if json.get().starts_with('"') {
        return Ok(Block::text(serde_json::from_str::<Str<'_>>(json.get())?.0));
    }
    if !json.get().starts_with('{') {
        return Ok(Block::Other(raw(json, origin)));
    }
    let PartSaid { kind, text, thinking, image_url, file, document_url, document_name, rest } =
        serde_json::from_str(json.get())?;
    let cache = cache(&rest);
    let media = |mut media: Media| {
        media.cache = cache;
        media.with_raw(raw(json, origin))
    };
    let plain_text = |json: Option<&RawValue>| json.and_then(|json| serde_json::from_str::<String>(json.get()).ok());
    if let (Some("document_url"), Some(url)) = (kind.as_ref().map(|k| &*k.0), plain_text(document_url)) {
        let mut document = media_at(&url);
        document.name = plain_text(document_name);
        return Ok(Block::Document(media(document)));
    }
    Ok(match (kind.as_ref().map(|k| &*k.0), text, thinking, image_url, file) {
        (Some("text"), Some(said), None, None, None) => {
            let says_more = !rest.is_empty() || document_url.is_some() || document_name.is_some();
            let mut text = Text::new(said.0).with_raw(says_more.then(|| raw(json, origin)));
            text.cache = cache;
            Block::Text(text)
        }
        (Some("thinking"), None, Some(thinking), None, None) => {
            let text = plain(&thinking)?.into_owned();
            Block::Reasoning(Reasoning { text, raw: Some(raw(json, origin)), ..Reasoning::default() })
        }
        (Some("image_url"), None, None, Some(ImageUrl { url: Some(url), .. }), None) => {
            Block::Image(media(media_at(&url.0)))
        }
        (Some("file"), None, None, None, Some(FileSaid { file_id: Some(id), file_data: None, .. })) => {
            Block::Document(media(Media::new(MediaSource::File(id.0.into_owned()))))
        }
        (Some("file"), None, None, None, Some(FileSaid { file_id: None, file_data: Some(data), filename, .. })) => {
            let mut document = media_at(&data.0);
            document.name = filename.map(|name| name.0.into_owned());
            Block::Document(media(document))
        }
        _ => Block::Other(raw(json, origin)),
    })
}

/// The mark for the cache among these fields.
pub(in crate::wire) fn cache(rest: &[(Str<'_>, &RawValue)]) -> Option<Cache> {
    let (_, json) = rest.iter().find(|(name, _)| name.0 == "cache_control")?;
    let said: CacheSaid<'_> = lenient(json);
    Some(if said.ttl.is_some_and(|ttl| ttl.0 == "1h") { Cache::Long } else { Cache::Short })
}

/// The sources in a message's `annotations`, of this text.
pub(in crate::wire) fn citations(json: &RawValue, of: &str) -> Vec<Citation> {
    let mut citations = Vec::new();
    let read = each(json, |item| {
        let Some(source) = lenient::<Annotation<'_>>(item).url_citation else { return Ok(()) };
        let text = |said: Option<Str<'_>>| said.filter(|said| !said.is_empty()).map(|said| said.0.into_owned());
        let mut citation = Citation::default();
        (citation.url, citation.title, citation.quote) = (text(source.url), text(source.title), text(source.content));
        citation.bytes = source.start.zip(source.end).and_then(|(from, to)| bytes_of(of, from, to));
        citations.push(citation);
        Ok(())
    });
    // What is no list cites nothing; the raw message keeps it.
    read.map_or_else(|_| Vec::new(), |()| citations)
}

/// The text of a content, with that of its parts run together.
pub(in crate::wire) fn plain<'b>(content: &'b Content<'_>) -> serde_json::Result<Cow<'b, str>> {
    let parts = match content {
        Content::Text(text) => return Ok(Cow::Borrowed(text)),
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

/// Reads an extra of a vendor; one of another form is as good as none, since the raw message keeps it.
pub(in crate::wire) fn lenient<'a, T: Deserialize<'a> + Default>(json: &'a RawValue) -> T {
    serde_json::from_str(json.get()).unwrap_or_default()
}

/// A provider's own JSON.
pub(in crate::wire) fn raw(json: &RawValue, origin: &Origin) -> Raw {
    Raw::new(origin.clone(), json.to_owned())
}
