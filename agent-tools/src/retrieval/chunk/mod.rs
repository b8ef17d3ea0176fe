//! Splitting of texts into chunks.

mod code;
mod cut;
mod markdown;
mod pack;
mod pieces;

use std::{ops::Range, sync::Arc};

use agent_core::{Error, Result, TokenCounter, model::ApproximateCounter};
use serde::{Deserialize, Serialize};

use self::pieces::Pieces;

/// Format of a text, which determines its cut points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextKind {
    /// Plain text: cut at blank lines, then between lines.
    #[default]
    Text,
    /// Markdown: cut before headings, then at blank lines; fences and tables stay whole if they
    /// fit.
    Markdown,
    /// Source code: cut between top-level items, then at blank lines, then between lines.
    Code,
}

impl TextKind {
    /// Returns the format for the extension of a path: `md` and `markdown` are Markdown, `txt`,
    /// `rst`, `log`, `csv` and no extension are text, and all others are code.
    ///
    /// ```
    /// use agent_tools::retrieval::TextKind;
    ///
    /// assert_eq!(TextKind::of_path("docs/start.md"), TextKind::Markdown);
    /// assert_eq!(TextKind::of_path("src/lib.rs"), TextKind::Code);
    /// assert_eq!(TextKind::of_path("v1.2/LICENSE"), TextKind::Text);
    /// ```
    pub fn of_path(path: &str) -> Self {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
        match extension.as_deref() {
            Some("md" | "markdown" | "mdx") => Self::Markdown,
            None | Some("txt" | "rst" | "log" | "csv" | "tsv" | "text") => Self::Text,
            Some(_) => Self::Code,
        }
    }
}

/// Part of a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// Text of the chunk, verbatim.
    pub text: String,
    /// Byte range in the text.
    pub bytes: Range<usize>,
    /// First and last line, counted from 1.
    pub lines: (usize, usize),
    /// Headings above the chunk, outermost first, including its own: those of its new part, not of
    /// the overlap.
    pub headings: Vec<String>,
}

/// Splits texts into chunks of at most a given number of tokens, at natural boundaries. The chunks
/// of a text are in order and cover all of it; each begins with the end of the previous one (the
/// overlap), unless a section or an item begins there.
///
/// ```
/// use agent_tools::retrieval::{Chunker, TextKind};
///
/// let text = "# Bees\n\nAda keeps bees in her garden.\n\n## Honey\n\nThere is little of it, and it is gone by June.\n";
/// let chunks = Chunker::new(20).overlap(0).build()?.chunk(text, TextKind::Markdown);
/// assert_eq!(chunks[1].headings, ["Bees", "Honey"]);
/// assert_eq!(chunks[1].lines, (5, 7));
/// assert_eq!(&text[chunks[1].bytes.clone()], chunks[1].text);
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Chunker {
    max_tokens: u64,
    overlap: u64,
    counter: Arc<dyn TokenCounter>,
}

impl Chunker {
    /// Creates a chunker with at most `max_tokens` tokens per chunk and an overlap of an eighth of
    /// that, by a rough token count.
    pub fn new(max_tokens: u64) -> Self {
        Self { max_tokens, overlap: max_tokens / 8, counter: Arc::new(ApproximateCounter) }
    }

    /// Sets the maximum overlap in tokens. Default: an eighth of a chunk.
    pub fn overlap(mut self, tokens: u64) -> Self {
        self.overlap = tokens;
        self
    }

    /// Sets the token counter: use that of the embedder's model if it is known. Default: a rough
    /// estimate.
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.counter = Arc::new(counter);
        self
    }

    /// Validates the settings.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if the maximum of tokens is zero, or
    /// the overlap is more than half of it.
    pub fn build(self) -> Result<Self> {
        if self.max_tokens == 0 || self.overlap > self.max_tokens / 2 {
            let message = "a chunk needs tokens, and at most half of them may be overlap: change max_tokens or overlap";
            return Err(Error::config(message)
                .with_context("max_tokens", self.max_tokens.to_string())
                .with_context("overlap", self.overlap.to_string()));
        }
        Ok(self)
    }

    /// Returns the chunks of a text, in order; empty for a text without a letter.
    pub fn chunk(&self, text: &str, kind: TextKind) -> Vec<Chunk> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (marks, outline) = match kind {
            TextKind::Text => (cut::paragraphs(&lines), vec![Vec::new()]),
            TextKind::Code => (code::marks(&lines), vec![Vec::new()]),
            TextKind::Markdown => markdown::marks(&lines),
        };
        let pieces = Pieces::new(&lines, &marks, self.max_tokens - self.overlap, &*self.counter);
        let chunks = pack::pack(text, &pieces, self.max_tokens, self.overlap, &*self.counter);
        chunks
            .into_iter()
            .map(|(overlap, body)| chunk(text, &pieces, overlap..body.end, body.start, &outline))
            .collect()
    }
}

/// Builds the chunk of these pieces, of which `new` is the first after the overlap.
fn chunk(text: &str, pieces: &Pieces, range: Range<usize>, new: usize, outline: &[Vec<String>]) -> Chunk {
    let bytes = pieces[range.start].bytes.start..pieces[range.end - 1].bytes.end;
    let lines = (pieces[range.start].line, pieces[range.end - 1].line);
    let first = (new..range.end).find(|at| !text[pieces[*at].bytes.clone()].trim().is_empty()).unwrap_or(new);
    Chunk { text: text[bytes.clone()].to_owned(), bytes, lines, headings: outline[pieces[first].path].clone() }
}

impl std::fmt::Debug for Chunker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunker")
            .field("max_tokens", &self.max_tokens)
            .field("overlap", &self.overlap)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
