//! Ranking of a project's files by name, headings and content.

use agent_retrieval::search::Bm25;

/// Weight of an occurrence in each field, and of the field's length: small for fields that are
/// short by nature.
const FIELDS: [(f64, f64); 3] = [(3.0, 0.0), (2.5, 0.3), (1.0, 0.3)];
/// Maximum distance between two words of a question that count as related.
const NEAR: usize = 8;

/// Text to rank: the stems of each field, in order.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// Name of the text: a path.
    pub(super) name: Vec<String>,
    pub(super) headings: Vec<String>,
    pub(super) body: Vec<String>,
}

/// Builds an index that ranks these texts against each other.
pub(super) fn index(texts: impl IntoIterator<Item = Text>) -> Bm25 {
    Bm25::of_fields(FIELDS, texts.into_iter().map(|text| [text.name, text.headings, text.body])).near(NEAR)
}
