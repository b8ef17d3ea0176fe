//! Lexemes for PostgreSQL's full-text index: the words of `agent_retrieval::search`, instead of those of
//! its own parser.

use std::collections::BTreeMap;

use agent_core::{Error, Result};
use agent_retrieval::{retrieval::Record, search::words};

/// Maximum size of an indexed word in bytes, well below the limit of the index. Longer words cannot
/// be searched.
const LONGEST: usize = 512;

pub(super) fn is_lexeme(word: &str) -> bool {
    word.len() <= LONGEST
}

/// Returns the words of a text as a `tsvector` with their positions, and the number of words.
pub(super) fn lexemes(text: &str) -> (String, i32) {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut length = 0;
    for word in words(text).into_iter().filter(|word| is_lexeme(word)) {
        length += 1;
        places.entry(word).or_default().push(i32::to_string(&length));
    }
    // Words consist of letters and digits only: no escaping is needed.
    let lexemes: Vec<_> = places.into_iter().map(|(word, places)| format!("'{word}':{}", places.join(","))).collect();
    (lexemes.join(" "), length)
}

/// Returns a `tsquery` that matches any of these words.
pub(super) fn tsquery(words: &[String]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" | ")
}

/// Rejects a record that PostgreSQL cannot store.
pub(super) fn check(record: &Record) -> Result<()> {
    let metadata = serde_json::Value::Object(record.metadata.clone()).to_string();
    if record.id.contains('\0') || record.text.contains('\0') || metadata.contains("\\u0000") {
        let message = "PostgreSQL cannot store NUL characters: remove them from the record";
        return Err(Error::config(message).with_context("record", record.id.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_once_with_all_its_places() {
        let (lexemes, length) = lexemes("Bees like RetryLayer, bees!");
        assert_eq!(lexemes, "'bees':1,6 'layer':5 'like':2 'retry':4 'retrylayer':3");
        assert_eq!(length, 6);
    }

    #[test]
    fn a_word_that_the_index_cannot_hold_is_left_out() {
        assert_eq!(lexemes(&format!("{} b", "a".repeat(3000))), ("'b':1".to_owned(), 1));
    }

    #[test]
    fn a_record_with_a_nul_is_refused_wherever_it_is() {
        for record in [Record::new("a\0", ""), Record::new("a", "\0"), Record::new("a", "").with("x", "\0")] {
            assert!(check(&record).is_err(), "{record:?}");
        }
        assert!(check(&Record::new("a", "b").with("x", "c")).is_ok());
    }
}
