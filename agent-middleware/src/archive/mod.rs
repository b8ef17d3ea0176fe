//! Archive of texts that were removed from a conversation, for later retrieval by the model.
//!
//! [`ContextCompaction`](crate::ContextCompaction) and [`LongToolOutput`](crate::LongToolOutput)
//! archive what they remove from a conversation; the model searches and reads it with their tools.
//! To keep the texts in another store, implement [`Archive`].
//!
//! ```
//! use agent_middleware::{LongToolOutput, archive::DirectoryArchive};
//!
//! let outputs = LongToolOutput::builder().archive(DirectoryArchive::new("archive")).build()?;
//! # drop(outputs);
//! # Ok::<(), agent_core::Error>(())
//! ```

mod directory;
mod memory;
mod session;
mod tools;

use std::{fmt, sync::Arc};

use agent_core::{Block, Error, ErrorKind, Media, Message, Part, Result, RunCx, ToolMessage, message::MediaSource};
use async_trait::async_trait;

pub(crate) use self::tools::{READ_ARCHIVED, READ_OUTPUT, SEARCH_HISTORY, history_tools, output_tool};
pub use self::{directory::DirectoryArchive, memory::MemoryArchive, session::SessionArchive};
use crate::digest::digest;

/// An archived text with its handle.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Archived {
    /// Handle, derived from the content, so that the same text is stored once.
    pub handle: String,
    /// Author of the text: `user`, `assistant`, or the tool's name.
    pub from: String,
    /// The full text.
    pub text: String,
    /// The images and documents of the message, in order. The text refers to each in brackets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Part>,
}

/// A search result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The text's handle.
    pub handle: String,
    /// Author of the text.
    pub from: String,
    /// Excerpt around the match.
    pub excerpt: String,
}

/// Archive of texts that were removed from a conversation. Each agent of each session has its own:
/// none sees another's texts.
///
/// [`MemoryArchive`] keeps them in the process, [`SessionArchive`] in the session's journal,
/// [`DirectoryArchive`] in files.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// Stores texts. Texts that exist already stay unchanged.
    ///
    /// # Errors
    /// If the texts cannot be stored: the run continues, and the failure is reported.
    async fn put(&self, cx: &RunCx, texts: Vec<Archived>) -> Result<()>;

    /// Returns the text with this handle.
    ///
    /// # Errors
    /// If the text cannot be read.
    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>>;

    /// Returns up to `most` texts that contain words of the query, best matches first.
    ///
    /// # Errors
    /// If the texts cannot be read.
    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>>;
}

#[async_trait]
impl<A: Archive + ?Sized> Archive for Arc<A> {
    async fn put(&self, cx: &RunCx, texts: Vec<Archived>) -> Result<()> {
        (**self).put(cx, texts).await
    }

    async fn get(&self, cx: &RunCx, handle: &str) -> Result<Option<Archived>> {
        (**self).get(cx, handle).await
    }

    async fn search(&self, cx: &RunCx, query: &str, most: usize) -> Result<Vec<Hit>> {
        (**self).search(cx, query, most).await
    }
}

impl fmt::Debug for dyn Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Archive")
    }
}

impl Archived {
    /// Creates a text with the handle derived from its content.
    pub fn new(from: impl Into<String>, text: impl Into<String>) -> Self {
        let (from, text) = (from.into(), text.into());
        Self { handle: handle(&from, &text, &[]), from, text, media: Vec::new() }
    }

    /// Adds the images and documents of the message; other parts are ignored. The handle changes
    /// accordingly.
    #[must_use]
    pub fn with_media(mut self, media: impl IntoIterator<Item = Part>) -> Self {
        self.media.extend(media.into_iter().filter(|part| media_of(part).is_some()));
        self.handle = handle(&self.from, &self.text, &self.media);
        self
    }

    /// Archives the message's text with its images and documents; `None` if it has neither.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let from = message.as_tool().map_or(message.role(), ToolMessage::name);
        let text = words_of(message);
        (!text.trim().is_empty()).then(|| Self::new(from, text).with_media(shown_in(message)))
    }

    /// Returns the approximate memory size in bytes.
    fn size(&self) -> usize {
        let names = self.handle.len() + self.from.len();
        size_of::<Self>()
            + names
            + self.text.len()
            + self.media.iter().filter_map(media_of).map(|media| source(media).len()).sum::<usize>()
    }
}

/// Returns the handle of this content.
fn handle(from: &str, text: &str, media: &[Part]) -> String {
    digest([from, text].into_iter().chain(media.iter().filter_map(media_of).map(source)))
}

/// Returns the handle under which a result will be archived.
pub(crate) fn handle_of(result: &ToolMessage) -> String {
    handle(result.name(), &text_of(result), &result.parts().iter().filter_map(kept).collect::<Vec<_>>())
}

/// Returns the images and documents of a message.
fn shown_in(message: &Message) -> Vec<Part> {
    match message {
        Message::System(m) => m.parts().iter().filter_map(kept).collect(),
        Message::User(m) => m.parts().iter().filter_map(kept).collect(),
        Message::Tool(m) => m.parts().iter().filter_map(kept).collect(),
        Message::Assistant(m) => m.blocks().iter().filter_map(kept_block).collect(),
    }
}

/// Returns the image or document in a form that fits any message.
fn kept(part: &Part) -> Option<Part> {
    match part {
        Part::Image(of) => Some(Part::Image(plain(of))),
        Part::Document(of) => Some(Part::Document(plain(of))),
        _ => None,
    }
}

fn kept_block(block: &Block) -> Option<Part> {
    match block {
        Block::Image(of) => Some(Part::Image(plain(of))),
        Block::Document(of) => Some(Part::Document(plain(of))),
        _ => None,
    }
}

/// Returns the media without cache mark and without the raw JSON.
fn plain(media: &Media) -> Media {
    let mut media = media.clone();
    (media.cache, media.raw) = (None, None);
    media
}

/// Returns the location of the media, or its base64 data.
fn source(media: &Media) -> &str {
    match &media.source {
        MediaSource::Url(text) | MediaSource::Base64(text) | MediaSource::File(text) => text,
        _ => "",
    }
}

fn media_of(part: &Part) -> Option<&Media> {
    match part {
        Part::Image(media) | Part::Document(media) => Some(media),
        _ => None,
    }
}

/// Returns the hint for the model on how to read a shortened result.
pub(crate) fn where_to_read(of: &str) -> String {
    format!("The tool {READ_ARCHIVED} with handle \"{of}\" shows it.")
}

/// Returns a result's text.
pub(crate) fn text_of(result: &ToolMessage) -> String {
    join(result.parts().iter().filter_map(part))
}

/// Returns a message's text, with calls and their arguments, and a line for each non-text part.
/// Reasoning is omitted.
pub(crate) fn words_of(message: &Message) -> String {
    match message {
        Message::System(m) => join(m.parts().iter().filter_map(part)),
        Message::User(m) => join(m.parts().iter().filter_map(part)),
        Message::Tool(m) => text_of(m),
        Message::Assistant(m) => join(m.blocks().iter().filter_map(block)),
    }
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn part(part: &Part) -> Option<String> {
    match part {
        Part::Text(text) => Some(text.text.clone()),
        Part::Image(of) => Some(media("image", of)),
        Part::Document(of) => Some(media("document", of)),
        _ => None,
    }
}

fn block(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(text.text.clone()),
        Block::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments)),
        // Its result may be long, and sealed; the model's texts contain its conclusions.
        Block::Server(call) => call.input.as_ref().map(|input| format!("{}({input})", call.name)),
        Block::Image(of) => Some(media("image", of)),
        Block::Document(of) => Some(media("document", of)),
        _ => None,
    }
}

fn media(kind: &str, of: &Media) -> String {
    let from = match &of.source {
        MediaSource::Url(url) => url.as_str(),
        MediaSource::File(id) => id.as_str(),
        _ => of.name.as_deref().or(of.mime.as_deref()).unwrap_or("inline"),
    };
    format!("[{kind}: {from}]")
}

/// Runs potentially long work on a blocking thread.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let failed = |e| Error::new(ErrorKind::Store, "the archive's work was not finished").with_source(e);
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

/// Searches the texts for words of the query.
fn find<'a>(query: &str, most: usize, all: impl Iterator<Item = &'a Archived>) -> Vec<Hit> {
    /// Length of the excerpt in characters.
    const AROUND: usize = 150;
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut hits: Vec<(usize, Hit)> = Vec::new();
    for archived in all {
        let lower = archived.text.to_lowercase();
        let found: Vec<usize> = words.iter().filter_map(|word| lower.find(word.as_str())).collect();
        if let Some(first) = found.iter().min() {
            let place = lower[..*first].chars().count().saturating_sub(AROUND / 3);
            let excerpt = archived.text.chars().skip(place).take(AROUND).collect();
            let hit = Hit { handle: archived.handle.clone(), from: archived.from.clone(), excerpt };
            hits.push((found.len(), hit));
        }
    }
    hits.sort_by_key(|(words, _)| std::cmp::Reverse(*words));
    hits.into_iter().take(most).map(|(_, hit)| hit).collect()
}
