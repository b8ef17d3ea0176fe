//! Documents to index.

use std::collections::HashMap;

use agent_retrieval::retrieval::Record;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Chunk, Chunker, TextKind};

/// Source text for answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// Name of the document for readers of answers: a path or an address. Unique in the index.
    pub id: String,
    /// Text of the document.
    pub text: String,
    /// Format of the text.
    #[serde(default)]
    pub kind: TextKind,
    /// Metadata for filters. The names `document`, `chunk`, `lines`, `bytes`, `headings` and
    /// `above` are reserved for the index.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Document {
    /// Creates a document with this name, in the format of the name's
    /// [extension](TextKind::of_path).
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        let id = id.into();
        Self { kind: TextKind::of_path(&id), id, text: text.into(), metadata: Map::new() }
    }

    /// Sets the format.
    #[must_use]
    pub fn kind(mut self, kind: TextKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a metadata field.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(field.into(), value.into());
        self
    }

    /// Returns the chunks as records without vectors. The id of a chunk depends only on its text
    /// and headings, not on its position in the document.
    pub(super) fn records(&self, chunker: &Chunker) -> Vec<Record> {
        let mut seen: HashMap<String, u32> = HashMap::new();
        let record = |chunk: Chunk| {
            // Headings are part of the chunk, so that searches match them too.
            let above = if chunk.headings.is_empty() { String::new() } else { chunk.headings.join(" > ") + "\n\n" };
            let text = format!("{above}{}", chunk.text);
            let nth = seen.entry(text.clone()).or_default();
            *nth += 1;
            let id = digest([self.id.as_str(), text.as_str(), &nth.to_string()]);
            let mut record = Record::new(id.as_str(), text);
            record.metadata = self.metadata.clone();
            let own = [
                ("document", json!(self.id)),
                ("chunk", json!(id)),
                ("lines", json!(chunk.lines)),
                ("bytes", json!((chunk.bytes.start, chunk.bytes.end))),
                ("headings", json!(chunk.headings)),
                ("above", json!(above.len())),
            ];
            record.metadata.extend(own.map(|(name, value)| (name.to_owned(), value)));
            record
        };
        chunker.chunk(&self.text, self.kind).into_iter().map(record).collect()
    }
}

/// Returns a digest of 32 hexadecimal digits that is stable across releases: indexes store it.
fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes()); // length prefix, so that parts are delimited
        hasher.update(part);
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
