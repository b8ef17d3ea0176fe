//! Search results.

use agent_retrieval::retrieval::{Found, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Part of a document that matches a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Passage {
    /// Name of the document.
    pub document: String,
    /// Text of the passage, verbatim.
    pub text: String,
    /// First and last line, counted from 1.
    pub lines: (usize, usize),
    /// Headings above the passage, outermost first.
    pub headings: Vec<String>,
    /// Relevance: higher is better; comparable within one search only.
    pub score: f64,
    /// Cosine similarity with the question; `None` if the passage was found by keywords only.
    pub similarity: Option<f32>,
    /// Metadata of the document, and the index's own fields.
    pub metadata: Map<String, Value>,
}

impl Passage {
    pub(super) fn new(found: Found) -> Self {
        let Found { record: Record { text, metadata, .. }, score, similarity, .. } = found;
        let of = |name: &str| metadata.get(name).cloned().unwrap_or_default();
        let above: usize = serde_json::from_value(of("above")).unwrap_or_default();
        Self {
            document: of("document").as_str().unwrap_or_default().to_owned(),
            text: text.get(above..).unwrap_or(&text).to_owned(),
            lines: serde_json::from_value(of("lines")).unwrap_or_default(),
            headings: serde_json::from_value(of("headings")).unwrap_or_default(),
            score,
            similarity,
            metadata,
        }
    }

    /// Returns the source: `docs/start.md:5-12 (Start > The first agent)`.
    pub fn source(&self) -> String {
        let (first, last) = self.lines;
        let place = if first == last {
            format!("{}:{first}", self.document)
        } else {
            format!("{}:{first}-{last}", self.document)
        };
        if self.headings.is_empty() { place } else { format!("{place} ({})", self.headings.join(" > ")) }
    }

    /// Formats passages for a model, each with a number and its [source](Self::source). If they
    /// exceed `max_chars`, one is truncated, and a note gives the number of omitted ones.
    pub fn listed(passages: &[Self], max_chars: usize) -> String {
        let (mut listed, mut left) = (String::new(), max_chars);
        for (number, passage) in (1..).zip(passages) {
            let whole = format!("[{number}] {}\n{}\n\n", passage.source(), passage.text.trim());
            let length = whole.chars().count();
            if length > left {
                let kept: String = whole.chars().take(left).collect();
                let more = passages.len() - number;
                listed.push_str(kept.trim_end());
                listed.push_str(&format!("\n[cut here; {more} more are not shown: ask for fewer, or more exactly]"));
                break;
            }
            listed.push_str(&whole);
            left -= length;
        }
        listed.trim_end().to_owned()
    }
}
