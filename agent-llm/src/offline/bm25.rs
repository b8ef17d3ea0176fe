//! Okapi BM25: how well texts fit a query.

use std::collections::HashMap;

/// How fast more occurrences of a term stop to matter.
const K1: f64 = 1.2;
/// How much the length of a text counts: little, since passages are all short.
const B: f64 = 0.3;

/// Texts as bags of words.
pub(super) struct Index {
    bags: Vec<Bag>,
    average: f64,
}

struct Bag {
    counts: HashMap<String, u32>,
    length: f64,
}

impl Index {
    pub(super) fn new(texts: impl IntoIterator<Item = Vec<String>>) -> Self {
        let bags: Vec<Bag> = texts.into_iter().map(Bag::new).collect();
        let total: f64 = bags.iter().map(|bag| bag.length).sum();
        let average = total / (bags.len().max(1) as f64);
        Self { bags, average }
    }

    /// The texts that have at least one word of the query, best first: their numbers and scores. Equals keep their order.
    pub(super) fn rank<'a>(&self, query: impl Iterator<Item = (&'a str, f64)>) -> Vec<(usize, f64)> {
        let query: Vec<_> = query.map(|(word, weight)| (word, weight * self.rarity(word))).collect();
        let score = |bag| query.iter().map(|(word, weight)| weight * self.frequency(bag, word)).sum::<f64>();
        let mut ranked: Vec<_> = self.bags.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// Inverse document frequency; positive even for a word that all texts have.
    fn rarity(&self, word: &str) -> f64 {
        let having = self.bags.iter().filter(|bag| bag.counts.contains_key(word)).count() as f64;
        let all = self.bags.len() as f64;
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// How often the bag has the word, levelling off, and less in a long text.
    fn frequency(&self, bag: &Bag, word: &str) -> f64 {
        let count = f64::from(bag.counts.get(word).copied().unwrap_or(0));
        let length = bag.length / self.average.max(1.0);
        count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    }
}

impl Bag {
    fn new(words: Vec<String>) -> Self {
        let length = words.len() as f64;
        let mut counts = HashMap::new();
        words.into_iter().for_each(|word| *counts.entry(word).or_insert(0) += 1);
        Self { counts, length }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(texts: &[Vec<String>], query: &[(&str, f64)], at: usize) -> f64 {
        let ranked = Index::new(texts.iter().cloned()).rank(query.iter().copied());
        ranked.into_iter().find(|(i, _)| *i == at).map_or(0.0, |(_, score)| score)
    }

    #[test]
    fn a_rare_word_decides_over_a_common_one() {
        let texts = ["common rare", "common common", "common", "other"];
        let index = Index::new(texts.map(|t| t.split(' ').map(str::to_owned).collect()));
        let order: Vec<_> =
            index.rank([("common", 1.0), ("rare", 1.0)].into_iter()).into_iter().map(|(i, _)| i).collect();
        assert_eq!(order[0], 0);
        assert!(!order.contains(&3), "a text without any word of the query is no answer");
    }

    /// Texts over a small alphabet, so that query words occur.
    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[a-e]", 1..12), 1..8)
    }

    proptest! {
        /// With length and document frequency fixed, one more occurrence of a query's word in the place of a foreign one
        /// never lowers a score.
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
            let ranked = Index::new(texts).rank([("a", 1.0), ("b", 1.0)].into_iter());
            prop_assert!(ranked.iter().all(|(_, score)| *score > 0.0));
            prop_assert!(ranked.is_sorted_by(|a, b| a.1 >= b.1));
        }
    }
}
