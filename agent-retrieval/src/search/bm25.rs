//! Okapi BM25 ranking.

use std::collections::HashMap;

/// Saturation of term frequency (`k1`).
const K1: f64 = 1.2;

/// Okapi BM25 index of texts: rare words count more than common ones, and words of short texts more
/// than those of long ones. Texts may have several weighted fields (BM25F), and proximity of query
/// words may increase the score.
#[derive(Clone, Debug)]
pub struct Bm25 {
    texts: Vec<Text>,
    fields: Vec<Field>,
    near: usize,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    weight: f64,
    by_length: f64,
    /// Average length of the texts in this field.
    average: f64,
}

/// One text: per field, the positions of each word and the length.
#[derive(Clone, Debug)]
struct Text(Vec<(HashMap<String, Vec<usize>>, f64)>);

impl Bm25 {
    /// Creates an index of texts, each given as its words.
    pub fn new(texts: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self::of_fields([(1.0, 0.75)], texts.into_iter().map(|words| [words]))
    }

    /// Creates an index of texts with several fields, each given as its words. A field has a
    /// weight, and a length normalisation from 0 to 1, which should be small for short fields.
    ///
    /// ```
    /// use agent_retrieval::search::{Bm25, words};
    ///
    /// let pages = [("Tools", "a tool is called"), ("Agents", "an agent calls a tool, and each tool answers")];
    /// let index = Bm25::of_fields([(3.0, 0.0), (1.0, 0.3)], pages.map(|(title, text)| [words(title), words(text)]));
    /// assert_eq!(index.rank([("agents", 1.0)])[0].0, 1);
    /// ```
    pub fn of_fields<const N: usize>(
        fields: [(f64, f64); N],
        texts: impl IntoIterator<Item = [Vec<String>; N]>,
    ) -> Self {
        let texts: Vec<_> = texts.into_iter().map(Text::new).collect();
        let field = |(at, (weight, by_length)): (usize, (f64, f64))| {
            let total: f64 = texts.iter().map(|text| text.0[at].1).sum();
            Field { weight, by_length, average: (total / texts.len().max(1) as f64).max(1.0) }
        };
        let fields = fields.into_iter().enumerate().map(field).collect();
        Self { texts, fields, near: 0 }
    }

    /// Sets the length normalisation (`b`) of all fields, from 0 to 1. Default: 0.75; use less if
    /// all texts are short.
    #[must_use]
    pub fn by_length(mut self, part: f64) -> Self {
        self.fields.iter_mut().for_each(|field| field.by_length = part);
        self
    }

    /// Increases the score of texts in which query words are at most `most` words apart in a field.
    /// Default: 0 (disabled).
    #[must_use]
    pub fn near(mut self, most: usize) -> Self {
        self.near = most;
        self
    }

    /// Returns the texts with at least one word of the query, best first, as index and score. Each
    /// query word has a weight; the usual one is 1. Ties keep their order.
    pub fn rank<'a>(&self, query: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<(usize, f64)> {
        let query: Vec<_> = query.into_iter().map(|(word, weight)| (word, weight * self.rarity(word))).collect();
        let score = |text| self.score(text, &query);
        let mut ranked: Vec<_> = self.texts.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    fn score(&self, text: &Text, query: &[(&str, f64)]) -> f64 {
        let words: f64 = query.iter().map(|(word, weight)| weight * self.frequency(text, word)).sum();
        if self.near == 0 {
            return words;
        }
        let pairs = query.iter().enumerate().flat_map(|(i, one)| query[..i].iter().map(move |other| (one, other)));
        words + pairs.map(|(one, other)| one.1.min(other.1) * text.nearness(one.0, other.0, self.near)).sum::<f64>()
    }

    /// Inverse document frequency; positive even for a word in all texts.
    fn rarity(&self, word: &str) -> f64 {
        let having =
            self.texts.iter().filter(|text| text.0.iter().any(|(places, _)| places.contains_key(word))).count();
        let (all, having) = (self.texts.len() as f64, having as f64);
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Saturated term frequency over all fields, reduced for long fields.
    fn frequency(&self, text: &Text, word: &str) -> f64 {
        let of_field = |(field, (places, length)): (&Field, &(HashMap<String, Vec<usize>>, f64))| {
            let (count, b) = (places.get(word).map_or(0, Vec::len) as f64, field.by_length);
            field.weight * count / (1.0 - b + b * length / field.average)
        };
        let count: f64 = self.fields.iter().zip(&text.0).map(of_field).sum();
        count * (K1 + 1.0) / (count + K1)
    }
}

impl Text {
    fn new<const N: usize>(fields: [Vec<String>; N]) -> Self {
        let field = |words: Vec<String>| {
            let length = words.len() as f64;
            let mut places: HashMap<String, Vec<usize>> = HashMap::new();
            words.into_iter().enumerate().for_each(|(at, word)| places.entry(word).or_default().push(at));
            (places, length)
        };
        Self(fields.into_iter().map(field).collect())
    }

    /// Proximity of two words: 1 for neighbours, decreasing with the square of their distance up to
    /// `most`; the best of all fields.
    fn nearness(&self, one: &str, other: &str, most: usize) -> f64 {
        let of_field = |(places, _): &(HashMap<String, Vec<usize>>, f64)| {
            let (one, other) = (places.get(one)?, places.get(other)?);
            let apart = one.iter().filter_map(|at| {
                let next = other.partition_point(|place| place < at);
                let around = other[next.saturating_sub(1)..].iter().take(2);
                around.map(|place| place.abs_diff(*at)).filter(|apart| *apart > 0).min()
            });
            apart.min().filter(|apart| *apart <= most)
        };
        let apart = self.0.iter().filter_map(of_field).min();
        apart.map_or(0.0, |apart| 1.0 / (apart * apart) as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::words;

    fn score(texts: &[Vec<String>], query: &[(&str, f64)], at: usize) -> f64 {
        let ranked = Bm25::new(texts.iter().cloned()).rank(query.iter().copied());
        ranked.into_iter().find(|(i, _)| *i == at).map_or(0.0, |(_, score)| score)
    }

    #[test]
    fn a_rare_word_decides_over_a_common_one() {
        let texts = ["common rare", "common common", "common", "other"];
        let order: Vec<_> = Bm25::new(texts.map(words)).rank([("common", 1.0), ("rare", 1.0)]).into_iter().collect();
        assert_eq!(order[0].0, 0);
        assert!(order.iter().all(|(at, _)| *at != 3), "a text without any word of the query is no answer");
    }

    #[test]
    fn a_word_counts_most_in_the_field_with_the_most_weight() {
        let texts = [["", "", "tool x x x"], ["", "tool", "x x x"], ["tool", "", "x x x"]];
        let index = Bm25::of_fields([(3.0, 0.0), (2.5, 0.3), (1.0, 0.3)], texts.map(|text| text.map(words)));
        assert_eq!(index.rank([("tool", 1.0)]).into_iter().map(|(at, _)| at).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn words_that_stand_together_count_more_if_that_is_wanted() {
        let texts = ["open x x x file", "x open file x x", "x x x file open"].map(words);
        let order = |near| {
            let ranked = Bm25::new(texts.clone()).near(near).rank([("open", 1.0), ("file", 1.0)]);
            ranked.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!((order(8), order(0)), (vec![1, 2, 0], vec![0, 1, 2]));
    }

    /// Texts over a small alphabet, so that query words occur.
    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[a-e]", 1..12), 1..8)
    }

    proptest! {
        /// With length and document frequency fixed, replacing another word by a query word never
        /// lowers a score.
        #[test]
        fn more_occurrences_never_score_lower(mut texts in texts(), at in any::<prop::sample::Index>()) {
            let at = at.index(texts.len());
            texts[at].extend(["a".to_owned(), "foreign".to_owned()]);
            let query = [("a", 1.0), ("b", 0.5)];
            let before = score(&texts, &query, at);
            *texts[at].last_mut().expect("just added") = "a".to_owned();
            prop_assert!(score(&texts, &query, at) >= before);
        }

        #[test]
        fn the_order_of_texts_does_not_change_their_scores(texts in texts()) {
            let query = [("a", 1.0), ("c", 2.0)];
            let reversed: Vec<_> = texts.iter().rev().cloned().collect();
            for at in 0..texts.len() {
                let other = score(&reversed, &query, texts.len() - 1 - at);
                prop_assert!((score(&texts, &query, at) - other).abs() < 1e-9);
            }
        }

        #[test]
        fn scores_are_positive_and_descend(texts in texts()) {
            let ranked = Bm25::new(texts).rank([("a", 1.0), ("b", 1.0)]);
            prop_assert!(ranked.iter().all(|(_, score)| *score > 0.0));
            prop_assert!(ranked.is_sorted_by(|a, b| a.1 >= b.1));
        }
    }
}
