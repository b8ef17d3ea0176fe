//! What is searched for, and what was found.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Record, Vector, VectorSpace};
use crate::{
    error::Result,
    memory::Filter,
    search::{fuse, words},
};

/// How many records each of the two searches of a hybrid one gives at least: what stands far down in one and first in the other is
/// still found.
const DEPTH: usize = 100;

/// What is searched for: a text, a vector, or both.
///
/// | given | found |
/// |---|---|
/// | a text | records with at least one of its words, ranked by BM25 |
/// | a vector | records by the cosine of their vectors with it |
/// | both | what either finds, [fused](crate::search::fuse) by their places among the first 100 of each (or four times `top_k`) |
/// | neither, or a text without a word | the newest records, with a score of 0 |
///
/// ```
/// use agent_core::{memory::Filter, retrieval::VectorQuery};
///
/// let query = VectorQuery::text("What may Ada eat?").filter(Filter::eq("topic", "food")).top_k(3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VectorQuery {
    /// The question, as words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The question, as a vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
    /// What the metadata must meet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// How many are wanted at most. Default: 5.
    pub top_k: usize,
    /// The least cosine for which a record counts as found by its vector, from -1 to 1. What is usual differs much between embedders.
    /// Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f32>,
    /// The least score of what is found. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// How much the places of the search by words count in a hybrid search, where those of the search by vectors count 1. Default: 1.
    pub words_weight: f64,
}

impl Default for VectorQuery {
    fn default() -> Self {
        Self {
            text: None,
            vector: None,
            filter: None,
            top_k: 5,
            min_similarity: None,
            min_score: None,
            words_weight: 1.0,
        }
    }
}

impl VectorQuery {
    /// The best five by their words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// The best five by their vectors.
    pub fn nearest(vector: Vector) -> Self {
        Self { vector: Some(vector), ..Self::default() }
    }

    /// The newest five.
    pub fn newest() -> Self {
        Self::default()
    }

    /// Sets the vector.
    #[must_use]
    pub fn vector(mut self, vector: Vector) -> Self {
        self.vector = Some(vector);
        self
    }

    /// Sets what the metadata must meet.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets how many are wanted at most.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = k;
        self
    }

    /// Sets the least cosine of what is found by its vector.
    #[must_use]
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.min_similarity = Some(least);
        self
    }

    /// Sets the least score of what is found.
    #[must_use]
    pub fn min_score(mut self, least: f64) -> Self {
        self.min_score = Some(least);
        self
    }

    /// Sets how much the search by words counts beside that by vectors.
    #[must_use]
    pub fn words_weight(mut self, weight: f64) -> Self {
        self.words_weight = weight;
        self
    }

    /// Refuses a vector that cannot be compared with those of a collection of this space. For stores.
    ///
    /// # Errors
    /// As [`VectorSpace::admit`].
    pub fn check(&self, space: Option<&VectorSpace>) -> Result<()> {
        match (&self.vector, space) {
            (Some(vector), Some(space)) => space.admit(vector),
            (Some(vector), None) => vector.check(),
            (None, _) => Ok(()),
        }
    }

    /// True if metadata meet the filter.
    pub fn admits(&self, metadata: &Map<String, Value>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(metadata))
    }

    /// True if a record of this cosine counts as found by its vector.
    pub fn is_near(&self, similarity: f32) -> bool {
        self.min_similarity.is_none_or(|least| similarity >= least)
    }

    /// The words of the text, each once, in order. For stores.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.text.as_deref().map(words).unwrap_or_default();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// How many records each search is to give, where there may be two. For stores.
    pub fn depth(&self) -> usize {
        match (&self.vector, self.top_k) {
            (_, 0) => 0,
            (Some(_), k) if !self.words().is_empty() => DEPTH.max(k.saturating_mul(4)),
            (_, k) => k,
        }
    }

    /// What was found, out of what each search found, best first: none where there was no such search. For stores.
    pub fn fuse(&self, by_words: Option<Vec<Found>>, by_vector: Option<Vec<Found>>) -> Vec<Found> {
        let found = match (by_words, by_vector) {
            (Some(by_words), Some(by_vector)) => self.fuse_both(by_words, by_vector),
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => Vec::new(),
        };
        let good = found.into_iter().filter(|found| self.min_score.is_none_or(|least| found.score >= least));
        good.take(self.top_k).collect()
    }

    fn fuse_both(&self, by_words: Vec<Found>, by_vector: Vec<Found>) -> Vec<Found> {
        let ids = |found: &[Found]| found.iter().map(|found| found.record.id.clone()).collect::<Vec<_>>();
        // Of equals, those are first that were found by their meaning.
        let fused = fuse([(1.0, ids(&by_vector)), (self.words_weight, ids(&by_words))]);
        let all = by_words.into_iter().chain(by_vector); // the vector's have their similarity, and replace the others
        let mut all: HashMap<String, Found> = all.map(|found| (found.record.id.clone(), found)).collect();
        let found = |(id, score): (String, f64)| all.remove(&id).map(|found| Found { score, ..found });
        fused.into_iter().filter_map(found).collect()
    }
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// The record, without its vector.
    pub record: Record,
    /// How well it fits: more is better, and only comparable within one search. The cosine, if there was a vector alone; 0 if nothing
    /// was asked.
    pub score: f64,
    /// The cosine of its vector with the query's; unset if it was found by its words alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
}

impl Found {
    /// A record that was found by its words, or for nothing.
    pub fn by_words(record: Record, score: f64) -> Self {
        Self { record: Record { vector: None, ..record }, score, similarity: None }
    }

    /// A record that was found by its vector.
    pub fn by_vector(record: Record, similarity: f32) -> Self {
        Self { record: Record { vector: None, ..record }, score: similarity.into(), similarity: Some(similarity) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ids: [&str; 2]) -> Vec<Found> {
        ids.map(|id| Found::by_words(Record::new(id, ""), 9.0)).into()
    }

    fn near(ids: [&str; 2]) -> Vec<Found> {
        ids.map(|id| Found::by_vector(Record::new(id, ""), 0.5)).into()
    }

    fn query() -> VectorQuery {
        VectorQuery::text("some words").vector(Vector::of("e", vec![1.0]))
    }

    #[test]
    fn what_both_find_is_first_once_and_knows_its_similarity() {
        let found = query().fuse(Some(words(["a", "b"])), Some(near(["c", "b"])));
        let ids: Vec<_> = found.iter().map(|found| (found.record.id.as_str(), found.similarity)).collect();
        assert_eq!(ids, [("b", Some(0.5)), ("c", Some(0.5)), ("a", None)]);
        assert!((found[0].score - 2.0 / 62.0).abs() < 1e-12);
    }

    #[test]
    fn words_count_as_much_as_they_are_told_to() {
        let first = |weight| query().words_weight(weight).fuse(Some(words(["a", "b"])), Some(near(["c", "d"])));
        assert_eq!((first(2.0)[0].record.id.as_str(), first(0.5)[0].record.id.as_str()), ("a", "c"));
    }

    #[test]
    fn a_threshold_and_the_number_that_is_wanted_hold_for_what_was_fused() {
        let fuse = |query: VectorQuery| query.fuse(Some(words(["a", "b"])), Some(near(["c", "b"]))).len();
        assert_eq!((fuse(query().min_score(0.02)), fuse(query().top_k(2)), fuse(query().top_k(0))), (1, 2, 0));
    }

    #[test]
    fn only_a_hybrid_search_looks_deeper_than_it_gives() {
        assert_eq!((VectorQuery::text("x").depth(), query().depth(), query().top_k(30).depth()), (5, 100, 120));
        assert_eq!(VectorQuery::text("?").vector(Vector::of("e", vec![1.0])).depth(), 5, "it has no words");
    }
}
