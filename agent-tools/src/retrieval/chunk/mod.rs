//! Cutting texts into pieces that are worth finding.

mod code;
mod cut;
mod markdown;
mod pack;
mod pieces;

use std::{ops::Range, sync::Arc};

use agent_core::{Error, Result, TokenCounter, model::ApproximateCounter};
use serde::{Deserialize, Serialize};

use self::pieces::Pieces;

/// How a text is written, and so where it is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextKind {
    /// Paragraphs: cut at blank lines, then between lines.
    #[default]
    Text,
    /// Markdown: cut before headings, then at blank lines; fences and tables stay whole where they fit.
    Markdown,
    /// A program: cut between top-level items, then at blank lines, then between lines.
    Code,
}

impl TextKind {
    /// What the extension of a path says: `md` and `markdown` are Markdown, `txt`, `rst`, `log`, `csv` and no extension are text, and all others
    /// are code.
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

/// A piece of a text, and where it stands there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// The piece, as it stands in the text.
    pub text: String,
    /// Where it stands, in bytes.
    pub bytes: Range<usize>,
    /// Its first and its last line, counted from 1.
    pub lines: (usize, usize),
    /// The headings that it stands below, the outermost first, its own among them: of what is new in it, not of what it overlaps.
    pub headings: Vec<String>,
}

/// Cuts texts into chunks: of at most so many tokens, at places where a reader would. The chunks of a text are in order and cover all of it; each
/// begins with some of the last one's end, unless something new begins there.
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
    /// Chunks of at most so many tokens, which overlap by an eighth of it, counted roughly.
    pub fn new(max_tokens: u64) -> Self {
        Self { max_tokens, overlap: max_tokens / 8, counter: Arc::new(ApproximateCounter) }
    }

    /// Sets how many tokens of the last chunk a chunk begins with, at most. Default: an eighth of a chunk.
    pub fn overlap(mut self, tokens: u64) -> Self {
        self.overlap = tokens;
        self
    }

    /// Sets what counts tokens: that of the embedder's model if it is known. Default: a rough estimate.
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.counter = Arc::new(counter);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) if a chunk has no tokens, or more than half of it is overlap.
    pub fn build(self) -> Result<Self> {
        if self.max_tokens == 0 || self.overlap > self.max_tokens / 2 {
            let message = "a chunk needs tokens, and at most half of them may be overlap: change max_tokens or overlap";
            return Err(Error::config(message)
                .with_context("max_tokens", self.max_tokens.to_string())
                .with_context("overlap", self.overlap.to_string()));
        }
        Ok(self)
    }

    /// The chunks of a text, in order; none of a text without a letter.
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

/// The chunk of these pieces, of which `new` is the first that is no overlap.
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
