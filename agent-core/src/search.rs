//! Words of texts, and how well texts fit a query: for stores, models and tools that search without an index.
//!
//! For authors of such searches. What ranks a million texts wants a search engine; this is for those that are at hand anyway.
//!
//! ```
//! use agent_core::search::{Bm25, words};
//!
//! let notes = ["Ada keeps bees.", "Ada is allergic to nuts.", "RetryLayer tries again."];
//! let index = Bm25::new(notes.map(words));
//! let best = |query| index.rank(words(query).iter().map(|word| (word.as_str(), 1.0))).first().map(|(at, _)| notes[*at]);
//! assert_eq!(best("Which nuts may Ada eat?"), Some("Ada is allergic to nuts."));
//! assert_eq!(best("retry_layer"), Some("RetryLayer tries again."));
//! assert_eq!(best("something else"), None);
//! ```

use std::collections::HashMap;

/// The runs of letters, digits and `_` in a text, but for those of `_` alone.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.chars().any(char::is_alphanumeric))
}

/// The words that a name is made of: `retry_after` and `RetryAfter` are both *retry* and *after*, `HTTPClient` is *HTTP* and
/// *Client*.
pub fn parts(name: &str) -> Vec<&str> {
    name.split('_').flat_map(humps).filter(|part| !part.is_empty()).collect()
}

/// The words of a text in small letters. A name of several words counts as a whole and by its parts, so that either finds it.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for name in names(text) {
        let parts = parts(name);
        words.push(parts.concat().to_lowercase());
        if parts.len() > 1 {
            words.extend(parts.iter().map(|part| part.to_lowercase()));
        }
    }
    words
}

fn humps(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut humps = Vec::new();
    let mut start = 0;
    for (i, &(at, c)) in chars.iter().enumerate().skip(1) {
        let after_lower = !chars[i - 1].1.is_uppercase();
        let before_lower = chars.get(i + 1).is_some_and(|(_, next)| next.is_lowercase());
        if c.is_uppercase() && (after_lower || before_lower) {
            humps.push(&word[start..at]);
            start = at;
        }
    }
    humps.push(&word[start..]);
    humps
}

/// How fast more occurrences of a word stop to matter.
const K1: f64 = 1.2;

/// Texts as bags of words, ranked by Okapi BM25: rare words count more than common ones, and words of short texts more than
/// those of long ones.
#[derive(Clone, Debug)]
pub struct Bm25 {
    bags: Vec<Bag>,
    average: f64,
    by_length: f64,
}

#[derive(Clone, Debug)]
struct Bag {
    counts: HashMap<String, u32>,
    length: f64,
}

impl Bm25 {
    /// Of these texts, each as its words.
    pub fn new(texts: impl IntoIterator<Item = Vec<String>>) -> Self {
        let bags: Vec<Bag> = texts.into_iter().map(Bag::new).collect();
        let total: f64 = bags.iter().map(|bag| bag.length).sum();
        let average = total / (bags.len().max(1) as f64);
        Self { bags, average, by_length: 0.75 }
    }

    /// Sets how much the length of a text counts (`b`), from 0 to 1. Default: 0.75; less where all are short.
    #[must_use]
    pub fn by_length(mut self, part: f64) -> Self {
        self.by_length = part;
        self
    }

    /// The texts that have at least one word of the query, best first, by their places and scores. Each word of the query has a
    /// weight; the usual one is 1. Equals keep their order.
    pub fn rank<'a>(&self, query: impl IntoIterator<Item = (&'a str, f64)>) -> Vec<(usize, f64)> {
        let query: Vec<_> = query.into_iter().map(|(word, weight)| (word, weight * self.rarity(word))).collect();
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
        count * (K1 + 1.0) / (count + K1 * (1.0 - self.by_length + self.by_length * length))
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
        let ranked = Bm25::new(texts.iter().cloned()).rank(query.iter().copied());
        ranked.into_iter().find(|(i, _)| *i == at).map_or(0.0, |(_, score)| score)
    }

    #[test]
    fn names_fall_apart_at_signs_and_where_the_case_changes() {
        for (text, expected) in [
            ("max_retry_count", vec!["maxretrycount", "max", "retry", "count"]),
            ("HTTPServer2", vec!["httpserver2", "http", "server2"]),
            ("send-message", vec!["send", "message"]),
            ("ID", vec!["id"]),
            ("", vec![]),
            (" - _ ", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!(words("ChunkSink"), words("chunk_sink"));
    }

    #[test]
    fn a_rare_word_decides_over_a_common_one() {
        let texts = ["common rare", "common common", "common", "other"];
        let order: Vec<_> = Bm25::new(texts.map(words)).rank([("common", 1.0), ("rare", 1.0)]).into_iter().collect();
        assert_eq!(order[0].0, 0);
        assert!(order.iter().all(|(at, _)| *at != 3), "a text without any word of the query is no answer");
    }

    /// Texts over a small alphabet, so that query words occur.
    fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
        prop::collection::vec(prop::collection::vec("[a-e]", 1..12), 1..8)
    }

    proptest! {
        #[test]
        fn parts_are_the_letters_and_digits_of_the_text_in_order(text in "\\PC{0,40}") {
            let letters: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
            prop_assert_eq!(names(&text).flat_map(parts).collect::<String>(), letters);
        }

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
            let ranked = Bm25::new(texts).rank([("a", 1.0), ("b", 1.0)]);
            prop_assert!(ranked.iter().all(|(_, score)| *score > 0.0));
            prop_assert!(ranked.is_sorted_by(|a, b| a.1 >= b.1));
        }
    }
}
