//! Search without an index: words of texts, BM25 ranking ([`Bm25`]), similarity of vectors
//! ([`cosine`]), and fusion of rankings ([`fuse`]).
//!
//! For authors of stores, models and tools that search small collections. Ranking millions of texts
//! requires a search engine.
//!
//! ```
//! use agent_retrieval::search::{Bm25, words};
//!
//! let notes = ["Ada keeps bees.", "Ada is allergic to nuts.", "RetryLayer tries again."];
//! let index = Bm25::new(notes.map(words));
//! let best = |query| index.rank(words(query).iter().map(|word| (word.as_str(), 1.0))).first().map(|(at, _)| notes[*at]);
//! assert_eq!(best("Which nuts may Ada eat?"), Some("Ada is allergic to nuts."));
//! assert_eq!(best("retry_layer"), Some("RetryLayer tries again."));
//! assert_eq!(best("something else"), None);
//! ```

mod bm25;
mod cosine;
mod fusion;

pub use self::{bm25::Bm25, cosine::cosine, fusion::fuse};

/// Splits a text into runs of letters, digits and `_`, without runs of `_` only.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.chars().any(char::is_alphanumeric))
}

/// Splits a name into its words: `retry_after` and `RetryAfter` both give *retry* and *after*,
/// `HTTPClient` gives *HTTP* and *Client*.
pub fn parts(name: &str) -> Vec<&str> {
    name.split('_').flat_map(humps).filter(|part| !part.is_empty()).collect()
}

/// Returns the words of a text in lower case. A compound name gives the whole and its parts, so
/// that either finds it.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    proptest! {
        #[test]
        fn parts_are_the_letters_and_digits_of_the_text_in_order(text in "\\PC{0,40}") {
            let letters: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
            prop_assert_eq!(names(&text).flat_map(parts).collect::<String>(), letters);
        }
    }
}
