//! How well places of a project fit a question: by what they are called, by their headings, and by what they say.

use agent_core::search::Bm25;

/// How much an occurrence counts in each field, and how much the field's length: little in what is short by nature.
const FIELDS: [(f64, f64); 3] = [(3.0, 0.0), (2.5, 0.3), (1.0, 0.3)];
/// Two words of a question that are further apart have nothing to do with each other.
const NEAR: usize = 8;

/// A text to be ranked: the stems of each of its fields, in order.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// What it is called: a path.
    pub(super) name: Vec<String>,
    pub(super) headings: Vec<String>,
    pub(super) body: Vec<String>,
}

/// These texts, to be ranked against each other.
pub(super) fn index(texts: impl IntoIterator<Item = Text>) -> Bm25 {
    Bm25::of_fields(FIELDS, texts.into_iter().map(|text| [text.name, text.headings, text.body])).near(NEAR)
}
