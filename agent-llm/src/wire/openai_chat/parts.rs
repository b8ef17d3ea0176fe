//! Parts of a content, as the API writes them, and from there to blocks.

use std::borrow::Cow;

use agent_core::{
    Block, Media, Part, Text,
    message::{Cache, MediaSource, Origin, Reasoning},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{messages::Manner, profile::DocumentForm};
use crate::wire::{
    cache_control::CacheControl,
    content::{Address, media_at},
    json::raw,
    lenient::{Content, Str, lenient},
    open_struct::open_struct,
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartJson<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: Url<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    InputAudio {
        input_audio: Sound<'a>,
    },
    File {
        file: File<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    DocumentUrl {
        document_url: Address<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        document_name: Option<&'a str>,
    },
    #[serde(rename = "file")]
    FileId {
        file_id: &'a str,
    },
    #[serde(untagged)]
    Raw(&'a RawValue),
}

#[derive(Serialize)]
pub(super) struct Url<'a> {
    url: Address<'a>,
}

#[derive(Serialize)]
pub(super) struct Sound<'a> {
    data: &'a str,
    format: &'a str,
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

open_struct! {
    PartSaid {
        kind: Str<'a> = "type",
        text: Str<'a> = "text",
        thinking: Content<'a> = "thinking",
        image: FileSaid<'a> = "image_url",
        file: FileSaid<'a> = "file",
        document: &'a RawValue = "document_url",
        name: &'a RawValue = "document_name",
    }
}

open_struct! {
    FileSaid {
        url: Str<'a> = "url",
        id: Str<'a> = "file_id",
        data: Str<'a> = "file_data",
        name: Str<'a> = "filename",
    }
}

open_struct! {
    CacheSaid { ttl: Str<'a> = "ttl", }
}

/// The part in this API's form: the provider's own JSON of it where that still says the same. None if it is another provider's and means
/// nothing here.
pub(super) fn part_json<'a>(manner: &Manner, part: &'a Part) -> Option<PartJson<'a>> {
    match part {
        Part::Text(text) => Some(text_json(manner, text)),
        Part::Image(media) => Some(own_media(manner, media).map_or_else(|| image(manner, media), PartJson::Raw)),
        Part::Document(media) => Some(own_media(manner, media).map_or_else(|| document(manner, media), PartJson::Raw)),
        Part::Other(raw) => manner.own(Some(raw)).map(PartJson::Raw),
        _ => None,
    }
}

pub(super) fn text_json<'a>(manner: &Manner, text: &'a Text) -> PartJson<'a> {
    let plain = || PartJson::Text { text: text.text.as_str().into(), cache_control: manner.cache_control(text.cache) };
    own_text(manner, text).map_or_else(plain, PartJson::Raw)
}

/// The provider's own JSON of a text, unless that says something else: the text may have been edited.
pub(super) fn own_text<'a>(manner: &Manner, text: &'a Text) -> Option<&'a RawValue> {
    manner.own(text.raw.as_ref()).filter(|own| match part(own, &manner.origin) {
        Ok(Block::Text(was)) => (&was.text, was.cache) == (&text.text, text.cache),
        _ => true,
    })
}

/// As [`own_text`], for media.
pub(super) fn own_media<'a>(manner: &Manner, media: &'a Media) -> Option<&'a RawValue> {
    manner.own(media.raw.as_ref()).filter(|own| match part(own, &manner.origin) {
        Ok(Block::Image(was) | Block::Document(was)) => (&was.source, was.cache) == (&media.source, media.cache),
        _ => true,
    })
}

fn image<'a>(manner: &Manner, media: &'a Media) -> PartJson<'a> {
    let cache_control = manner.cache_control(media.cache);
    match &media.source {
        MediaSource::Url(_) | MediaSource::Base64(_) => {
            PartJson::ImageUrl { image_url: Url { url: Address::of(media, "image/png") }, cache_control }
        }
        _ => PartJson::File { file: file(media, None), cache_control },
    }
}

fn document<'a>(manner: &Manner, media: &'a Media) -> PartJson<'a> {
    if let Some(input_audio) = sound(media) {
        return PartJson::InputAudio { input_audio };
    }
    match (manner.documents, &media.source) {
        (DocumentForm::Url, MediaSource::File(file_id)) => PartJson::FileId { file_id },
        (DocumentForm::Url, _) => PartJson::DocumentUrl {
            document_url: Address::of(media, "application/pdf"),
            document_name: media.name.as_deref(),
        },
        _ => PartJson::File { file: file(media, Some("document.pdf")), cache_control: manner.cache_control(media.cache) },
    }
}

/// Sound, by what a file of it is called.
fn sound(media: &Media) -> Option<Sound<'_>> {
    let MediaSource::Base64(data) = &media.source else { return None };
    let format = match media.mime.as_deref()?.strip_prefix("audio/")? {
        "mpeg" => "mp3",
        "x-wav" | "wave" => "wav",
        format => format,
    };
    Some(Sound { data, format })
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

/// The block of one part of a content. It keeps its JSON if that may say more.
pub(in crate::wire) fn part(json: &RawValue, origin: &Origin) -> serde_json::Result<Block> {
    let other = || Block::Other(raw(json, origin));
    match json.get().as_bytes().first() {
        Some(b'"') => return Ok(Block::text(serde_json::from_str::<Str<'_>>(json.get())?.0)),
        Some(b'{') => {}
        _ => return Ok(other()),
    }
    let PartSaid { kind, text, thinking, image, file, document, name, rest } = serde_json::from_str(json.get())?;
    let contents = [text.is_some(), thinking.is_some(), image.is_some(), file.is_some()];
    if contents.iter().filter(|has| **has).count() > 1 {
        return Ok(other()); // it is neither of them alone
    }
    let media = |mut media: Media, name: Option<String>| {
        (media.cache, media.name, media.raw) = (cache(&rest), name, Some(raw(json, origin)));
        media
    };
    let block = match kind.as_deref() {
        Some("text") => text.map(|said| {
            let says_more = !rest.is_empty() || document.is_some() || name.is_some();
            let mut text = Text::new(said.0).with_raw(says_more.then(|| raw(json, origin)));
            text.cache = cache(&rest);
            Block::Text(text)
        }),
        Some("thinking") => match thinking {
            Some(thinking) => Some(Block::Reasoning(Reasoning {
                text: plain(&thinking)?.into_owned(),
                raw: Some(raw(json, origin)),
                ..Reasoning::default()
            })),
            None => None,
        },
        Some("image_url") => image.and_then(|said| said.url).map(|url| Block::Image(media(media_at(&url), None))),
        Some("document_url") => {
            let url = document.and_then(lenient::<Option<String>>);
            url.map(|url| Block::Document(media(media_at(&url), name.and_then(lenient))))
        }
        Some("file") => match file.unwrap_or_default() {
            FileSaid { id: Some(id), data: None, .. } => {
                Some(Block::Document(media(Media::new(MediaSource::File(id.0.into_owned())), None)))
            }
            FileSaid { id: None, data: Some(data), name, .. } => {
                Some(Block::Document(media(media_at(&data), name.map(|name| name.0.into_owned()))))
            }
            _ => None,
        },
        _ => None,
    };
    Ok(block.unwrap_or_else(other))
}

/// The mark for the cache among these fields.
pub(super) fn cache(rest: &[(Str<'_>, &RawValue)]) -> Option<Cache> {
    let (_, json) = rest.iter().find(|(name, _)| &**name == "cache_control")?;
    let is_long = lenient::<CacheSaid<'_>>(json).ttl.as_deref() == Some("1h");
    Some(if is_long { Cache::Long } else { Cache::Short })
}

/// The text of a content, with that of its parts run together.
pub(super) fn plain<'b>(content: &'b Content<'_>) -> serde_json::Result<Cow<'b, str>> {
    let parts = match content {
        Content::Text(text) => return Ok(Cow::Borrowed(text)),
        Content::Parts(parts) => parts,
    };
    let mut all = String::new();
    for json in parts {
        match json.get().as_bytes().first() {
            Some(b'"') => all.push_str(&serde_json::from_str::<Str<'_>>(json.get())?),
            Some(b'{') => all.push_str(&serde_json::from_str::<PartSaid<'_>>(json.get())?.text.unwrap_or_default()),
            _ => {}
        }
    }
    Ok(Cow::Owned(all))
}
