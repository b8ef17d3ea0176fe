//! What is indexed.

use std::collections::HashMap;

use agent_core::retrieval::Record;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Chunk, Chunker, TextKind};

/// A text that answers are to come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// What it is called, for those who read answers: a path, an address. Unique in the index.
    pub id: String,
    /// The text.
    pub text: String,
    /// How it is written.
    #[serde(default)]
    pub kind: TextKind,
    /// What searches can be limited by. The names `document`, `chunk`, `lines`, `bytes`, `headings` and `above` are the index's own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Document {
    /// A text that is called this, and written as the name's extension [says](TextKind::of_path).
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        let id = id.into();
        Self { kind: TextKind::of_path(&id), id, text: text.into(), metadata: Map::new() }
    }

    /// Sets how it is written.
    #[must_use]
    pub fn kind(mut self, kind: TextKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a field to the metadata.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(field.into(), value.into());
        self
    }

    /// Its chunks as records without vectors. A chunk has the same id as long as it says the same below the same headings, wherever in
    /// the document it stands.
    pub(super) fn records(&self, chunker: &Chunker) -> Vec<Record> {
        let mut seen: HashMap<String, u32> = HashMap::new();
        let record = |chunk: Chunk| {
            // Above the chunk, so that its words and its meaning are found too.
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

/// A name of 32 digits that the same parts have in every release: indexes keep it.
fn digest<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes()); // so that parts do not run into each other
        hasher.update(part);
    }
    hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
