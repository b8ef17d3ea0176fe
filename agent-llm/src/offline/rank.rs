//! BM25F: how well texts of several fields fit a query, and more where the words of the query stand together.

use std::collections::HashMap;

/// How fast more occurrences of a term stop to matter.
const K1: f64 = 1.2;
/// How much an occurrence counts in each field, and how much the field's length: little in what is short by nature.
const FIELDS: [(f64, f64); 3] = [(3.0, 0.0), (2.5, 0.3), (1.0, 0.3)];
/// Two words of a query that are further apart have nothing to do with each other.
const NEAR: usize = 8;

/// A text to be ranked: the stems of each of its fields, in order.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// What it is called: a path.
    pub(super) name: Vec<String>,
    pub(super) headings: Vec<String>,
    pub(super) body: Vec<String>,
}

/// Texts that are compared with each other.
pub(super) struct Index {
    texts: Vec<Indexed>,
    /// The average length of each field.
    averages: [f64; 3],
}

struct Indexed {
    /// Where each word stands in each field.
    places: [HashMap<String, Vec<usize>>; 3],
    lengths: [f64; 3],
}

impl Index {
    pub(super) fn new(texts: impl IntoIterator<Item = Text>) -> Self {
        let texts: Vec<Indexed> = texts.into_iter().map(Indexed::new).collect();
        let average = |field: usize| {
            let total: f64 = texts.iter().map(|text| text.lengths[field]).sum();
            (total / texts.len().max(1) as f64).max(1.0)
        };
        let averages = [average(0), average(1), average(2)];
        Self { texts, averages }
    }

    /// The texts that have at least one word of the query, best first: their numbers and scores. Equals keep their order.
    pub(super) fn rank<'a>(&self, query: impl Iterator<Item = (&'a str, f64)>) -> Vec<(usize, f64)> {
        let query: Vec<_> = query.map(|(word, weight)| (word, weight * self.rarity(word))).collect();
        let score = |text| self.score(text, &query);
        let mut ranked: Vec<_> = self.texts.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    fn score(&self, text: &Indexed, query: &[(&str, f64)]) -> f64 {
        let words: f64 = query.iter().map(|(word, weight)| weight * self.frequency(text, word)).sum();
        let pairs = query.iter().enumerate().flat_map(|(i, one)| query[..i].iter().map(move |other| (one, other)));
        words + pairs.map(|(one, other)| one.1.min(other.1) * text.nearness(one.0, other.0)).sum::<f64>()
    }

    /// Inverse document frequency; positive even for a word that all texts have.
    fn rarity(&self, word: &str) -> f64 {
        let having = self.texts.iter().filter(|text| text.has(word)).count() as f64;
        let all = self.texts.len() as f64;
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// How often the text has the word in all its fields, levelling off, and less where a field is long.
    fn frequency(&self, text: &Indexed, word: &str) -> f64 {
        let of_field = |(field, (weight, b)): (usize, &(f64, f64))| {
            let count = text.places[field].get(word).map_or(0, Vec::len) as f64;
            weight * count / (1.0 - b + b * text.lengths[field] / self.averages[field])
        };
        let count: f64 = FIELDS.iter().enumerate().map(of_field).sum();
        count * (K1 + 1.0) / (count + K1)
    }
}

impl Indexed {
    fn new(text: Text) -> Self {
        let fields = [text.name, text.headings, text.body];
        let lengths = [0, 1, 2].map(|field| fields[field].len() as f64);
        let places = fields.map(|words| {
            let mut places: HashMap<String, Vec<usize>> = HashMap::new();
            words.into_iter().enumerate().for_each(|(at, word)| places.entry(word).or_default().push(at));
            places
        });
        Self { places, lengths }
    }

    fn has(&self, word: &str) -> bool {
        self.places.iter().any(|field| field.contains_key(word))
    }

    /// 1 where two words are neighbours, and less with the square of their distance; the best of all fields.
    fn nearness(&self, one: &str, other: &str) -> f64 {
        let of_field = |places: &HashMap<String, Vec<usize>>| {
            let (one, other) = (places.get(one)?, places.get(other)?);
            let apart = one.iter().filter_map(|at| {
                let next = other.partition_point(|place| place < at);
                let around = other[next.saturating_sub(1)..].iter().take(2);
                around.map(|place| place.abs_diff(*at)).filter(|apart| *apart > 0).min()
            });
            apart.min().filter(|apart| *apart <= NEAR)
        };
        let apart = self.places.iter().filter_map(of_field).min();
        apart.map_or(0.0, |apart| 1.0 / (apart * apart) as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(words: Vec<String>) -> Text {
        Text { body: words, ..Text::default() }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn order(texts: impl IntoIterator<Item = Text>, query: &[&str]) -> Vec<usize> {
        let ranked = Index::new(texts).rank(query.iter().map(|word| (*word, 1.0)));
        ranked.into_iter().map(|(i, _)| i).collect()
    }

    fn score(texts: &[Vec<String>], query: &[(&str, f64)], at: usize) -> f64 {
        let ranked = Index::new(texts.iter().cloned().map(body)).rank(query.iter().copied());
        ranked.into_iter().find(|(i, _)| *i == at).map_or(0.0, |(_, score)| score)
    }

    #[test]
    fn a_rare_word_decides_over_a_common_one() {
        let texts = ["common rare", "common common", "common", "other"];
        let order = order(texts.map(|text| body(words(text))), &["common", "rare"]);
        assert_eq!(order[0], 0);
        assert!(!order.contains(&3), "a text without any word of the query is no answer");
    }

    #[test]
    fn a_word_counts_most_in_the_name_then_in_a_heading_then_in_the_text() {
        let texts = [
            body(words("tool x x x")),
            Text { headings: words("tool"), body: words("x x x"), ..Text::default() },
            Text { name: words("tool"), body: words("x x x"), ..Text::default() },
        ];
        assert_eq!(order(texts, &["tool"]), [2, 1, 0]);
    }

    #[test]
    fn words_that_stand_together_count_more() {
        let texts = ["open x x x file", "x open file x x", "x x x file open"];
        let order = order(texts.map(|text| body(words(text))), &["open", "file"]);
        assert_eq!(order, [1, 2, 0]);
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
            let ranked = Index::new(texts.into_iter().map(body)).rank([("a", 1.0), ("b", 1.0)].into_iter());
            prop_assert!(ranked.iter().all(|(_, score)| *score > 0.0));
            prop_assert!(ranked.is_sorted_by(|a, b| a.1 >= b.1));
        }
    }
}
