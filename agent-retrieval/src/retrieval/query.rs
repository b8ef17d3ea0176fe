//! Queries and results of vector stores.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Record, Vector, VectorSpace};
use crate::{
    memory::Filter,
    search::{fuse, words},
};
use agent_core::error::Result;

/// Minimum number of results of each of the two searches of a hybrid query, so that a record far
/// down in one and first in the other is found.
const DEPTH: usize = 100;

/// A search query: a text, a vector, or both.
///
/// | given | result |
/// | --- | --- |
/// | a text | records with at least one of its words, ranked by BM25 |
/// | a vector | records ranked by the cosine similarity of their vectors |
/// | both | results of either search, [fused](crate::search::fuse) by their ranks among the first 100 of each (or four times `top_k`) |
/// | neither, or a text without a word | the newest records, with a score of 0 |
///
/// ```
/// use agent_retrieval::{memory::Filter, retrieval::VectorQuery};
///
/// let query = VectorQuery::text("What may Ada eat?").filter(Filter::eq("topic", "food")).top_k(3);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VectorQuery {
    /// Query text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Query vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
    /// Filter on the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Maximum number of results. Default: 5.
    pub top_k: usize,
    /// Minimum cosine similarity of a result of the vector search, from -1 to 1. Typical values
    /// differ much between embedders. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_similarity: Option<f32>,
    /// Minimum score of a result. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score: Option<f64>,
    /// Weight of the text search in a hybrid query, relative to a weight of 1 of the vector search.
    /// Default: 1.
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
    /// Creates a text query for the best five results.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Creates a vector query for the best five results.
    pub fn nearest(vector: Vector) -> Self {
        Self { vector: Some(vector), ..Self::default() }
    }

    /// Creates a query for the newest five records.
    pub fn newest() -> Self {
        Self::default()
    }

    /// Sets the vector.
    #[must_use]
    pub fn vector(mut self, vector: Vector) -> Self {
        self.vector = Some(vector);
        self
    }

    /// Sets the filter on the metadata.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Sets the maximum number of results.
    #[must_use]
    pub fn top_k(mut self, k: usize) -> Self {
        self.top_k = k;
        self
    }

    /// Sets the minimum cosine similarity of results of the vector search.
    #[must_use]
    pub fn min_similarity(mut self, least: f32) -> Self {
        self.min_similarity = Some(least);
        self
    }

    /// Sets the minimum score of results.
    #[must_use]
    pub fn min_score(mut self, least: f64) -> Self {
        self.min_score = Some(least);
        self
    }

    /// Sets the weight of the text search relative to the vector search.
    #[must_use]
    pub fn words_weight(mut self, weight: f64) -> Self {
        self.words_weight = weight;
        self
    }

    /// Rejects a vector that is not comparable with those of a collection with this space. For
    /// store authors.
    ///
    /// # Errors
    /// Those of [`VectorSpace::admit`].
    pub fn check(&self, space: Option<&VectorSpace>) -> Result<()> {
        match (&self.vector, space) {
            (Some(vector), Some(space)) => space.admit(vector),
            (Some(vector), None) => vector.check(),
            (None, _) => Ok(()),
        }
    }

    /// True if the metadata match the filter.
    pub fn admits(&self, metadata: &Map<String, Value>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.matches(metadata))
    }

    /// True if a record with this cosine similarity is a result of the vector search.
    pub fn is_near(&self, similarity: f32) -> bool {
        self.min_similarity.is_none_or(|least| similarity >= least)
    }

    /// Returns the distinct words of the text, sorted. For store authors.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.text.as_deref().map(words).unwrap_or_default();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Returns the number of results that each search must return, before fusion. For store
    /// authors.
    pub fn depth(&self) -> usize {
        match (&self.vector, self.top_k) {
            (_, 0) => 0,
            (Some(_), k) if !self.words().is_empty() => DEPTH.max(k.saturating_mul(4)),
            (_, k) => k,
        }
    }

    /// Fuses the results of the text search and of the vector search, each best first, or `None` if
    /// there was no such search. For store authors.
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
        // Of ties, results of the vector search come first.
        let fused = fuse([(1.0, ids(&by_vector)), (self.words_weight, ids(&by_words))]);
        let all = by_words.into_iter().chain(by_vector); // vector results carry a similarity, and win
        let mut all: HashMap<String, Found> = all.map(|found| (found.record.id.clone(), found)).collect();
        let found = |(id, score): (String, f64)| all.remove(&id).map(|found| Found { score, ..found });
        fused.into_iter().filter_map(found).collect()
    }
}

/// A search result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// The record, without its vector.
    pub record: Record,
    /// Relevance: higher is better, and only comparable within one search. The cosine similarity
    /// for a pure vector query; 0 for a query without text and vector.
    pub score: f64,
    /// Cosine similarity of its vector with the query's; unset for a result of the text search
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
}

impl Found {
    /// Creates a result of the text search, or of an empty query.
    pub fn by_words(record: Record, score: f64) -> Self {
        Self { record: Record { vector: None, ..record }, score, similarity: None }
    }

    /// Creates a result of the vector search.
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
