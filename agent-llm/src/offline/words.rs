//! Text as comparable words: lower case, stemmed, identifiers whole and in parts.

use agent_core::search::{names, words};

/// Words after which a name is defined.
const DEFINES: &[&str] = &[
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "interface",
    "macro_rules",
    "mod",
    "struct",
    "trait",
    "type",
];

/// Endings that a word loses. Of several that fit, the first counts.
const ENDINGS: &[&str] =
    &["ations", "ation", "ings", "ing", "ions", "ion", "ies", "ied", "ers", "er", "ed", "es", "ly"];

/// Letters that must be left of a word that loses an ending.
const LEAST: usize = 4;

/// The stems of a text's words. An identifier counts as a whole and as its parts; a name counts three times where it is
/// defined, since that is where people want to be led.
pub(super) fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    let mut defined = false;
    for name in names(text) {
        let times = if defined { 3 } else { 1 };
        (0..times).for_each(|_| stems.extend(words(name).iter().map(|word| stem(word))));
        defined = DEFINES.contains(&name);
    }
    stems
}

/// The part that forms of a word have in common. It is a prefix of the word, but for its case, so that it finds them.
pub(super) fn stem(word: &str) -> String {
    let mut stem = word.to_lowercase();
    let long = |rest: &&str| rest.chars().count() >= LEAST;
    let ending = ENDINGS.iter().find_map(|ending| stem.strip_suffix(ending).filter(long));
    let plural = || stem.strip_suffix('s').filter(|rest| rest.len() > 2 && !rest.ends_with(['s', 'u', 'i']));
    if let Some(rest) = ending.or_else(plural) {
        stem.truncate(rest.len());
    }
    if let Some(rest) = stem.strip_suffix(['e', 'y']).filter(long) {
        stem.truncate(rest.len());
    }
    let mut last = stem.chars().rev();
    if last.next() == last.next() && stem.chars().count() > LEAST {
        stem.pop();
    }
    stem
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["retry", "retries", "retried", "retrying"][..],
            &["cancel", "cancels", "cancelled", "cancelling", "cancellation"],
            &["token", "tokens"],
            &["schedule", "schedules", "scheduled", "scheduler", "scheduling"],
            &["call", "calls", "calling", "called"],
            &["policy", "policies"],
            &["file", "files"],
            &["process", "processes", "processing"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|s| *s == stems[0]), "{forms:?} became {stems:?}");
        }
    }

    #[test]
    fn a_name_weighs_more_where_it_is_defined() {
        let count = |text| stems(text).iter().filter(|s| *s == "retr").count();
        assert_eq!((count("fn retry() {"), count("retry()")), (3, 1));
    }

    proptest! {
        #[test]
        fn a_stem_begins_its_word(word in "[A-Za-z]{1,14}") {
            let stem = stem(&word);
            prop_assert!(!stem.is_empty());
            prop_assert!(word.to_lowercase().starts_with(&stem), "{} of {}", stem, word);
        }
    }
}
