//! Text as comparable words: lower case, stemmed, identifiers whole and in parts.

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
        (0..times).for_each(|_| push_stems(name, &mut stems));
        defined = DEFINES.contains(&name);
    }
    stems
}

fn push_stems(name: &str, stems: &mut Vec<String>) {
    let parts = parts(name);
    stems.push(stem(&parts.concat()));
    if parts.len() > 1 {
        stems.extend(parts.iter().map(|part| stem(part)));
    }
}

/// The runs of letters, digits and `_` in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.chars().any(char::is_alphanumeric))
}

/// The words that an identifier is made of: `retry_after` and `RetryAfter` are both *retry* and *after*.
pub(super) fn parts(identifier: &str) -> Vec<&str> {
    identifier.split('_').flat_map(humps).filter(|part| !part.is_empty()).collect()
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
    fn identifiers_fall_apart_at_underscores_and_humps() {
        assert_eq!(parts("max_retry_count"), ["max", "retry", "count"]);
        assert_eq!(parts("MessageBuilder"), ["Message", "Builder"]);
        assert_eq!(parts("HTTPServer2"), ["HTTP", "Server2"]);
        assert_eq!(stems("ChunkSink"), stems("chunk_sink"));
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
