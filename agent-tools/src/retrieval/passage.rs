//! What was found.

use agent_core::retrieval::{Found, Record};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A piece of a document that fits a question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Passage {
    /// The document's name.
    pub document: String,
    /// The piece, as it stands there.
    pub text: String,
    /// Its first and its last line, counted from 1.
    pub lines: (usize, usize),
    /// The headings that it stands below, the outermost first.
    pub headings: Vec<String>,
    /// How well it fits: more is better, and only comparable within one search.
    pub score: f64,
    /// The cosine of its vector with the question's; unset if it was found by its words alone.
    pub similarity: Option<f32>,
    /// The document's metadata, and what the index keeps with them.
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

    /// Where it is from: `docs/start.md:5-12 (Start > The first agent)`.
    pub fn source(&self) -> String {
        let (first, last) = self.lines;
        let place = if first == last {
            format!("{}:{first}", self.document)
        } else {
            format!("{}:{first}-{last}", self.document)
        };
        if self.headings.is_empty() { place } else { format!("{place} ({})", self.headings.join(" > ")) }
    }

    /// Passages one after the other, each with a number and its [source](Self::source), as a model is shown them. If all are too long, one is
    /// cut, and it is said how many are left out.
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
