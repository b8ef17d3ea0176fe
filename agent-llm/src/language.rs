//! English stemming and stop words.

use std::{collections::HashSet, sync::LazyLock};

/// Suffixes to strip. The first match wins.
const ENDINGS: &[&str] =
    &["ations", "ation", "ings", "ing", "ions", "ion", "ies", "ied", "ers", "er", "ed", "es", "ly"];

/// Minimum number of letters that stripping a suffix must leave.
const LEAST: usize = 4;

/// Stop words: words that say nothing about the topic of a query. Interrogatives are in [`ASKS`].
const STOP: &str = "a about above after again all also am an and any are as at be because been before being below \
    between both but by can cannot could did do does doing down during each either else etc ever every explain \
    few find for from further get gets give given go goes had happen happens has have having he hello help her here hers \
    hey hi him his i if in into is it its itself just know let like list look many may me might more most much must \
    my need no nor not now of off on once one only onto or other our out over own per please quote same say says \
    search shall she should show since so some something such tell than thank thanks that the their them then there these \
    they thing things this those through to together too under until up us use used uses using very want was way we \
    were will with within without work working works would you your describe e.g i.e";

/// Words that begin a question.
const ASKS: &str = "how what when where which who whom whose why is are does do did was were has have can";

/// Returns the stem: the part that all forms of a word share. Apart from case it is a prefix of the
/// word, so that a prefix search for it finds every form.
pub(crate) fn stem(word: &str) -> String {
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

/// Returns true for stop words and interrogatives, which carry no topic.
pub(crate) fn is_stop(lower: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP.split_whitespace().collect());
    WORDS.contains(lower) || is_interrogative(lower)
}

/// Returns true for words that begin a question.
pub(crate) fn is_interrogative(lower: &str) -> bool {
    has(ASKS, lower)
}

/// Returns true if the space-separated `list` contains `word`.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
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

    proptest! {
        #[test]
        fn a_stem_begins_its_word(word in "[A-Za-z]{1,14}") {
            let stem = stem(&word);
            prop_assert!(!stem.is_empty());
            prop_assert!(word.to_lowercase().starts_with(&stem), "{} of {}", stem, word);
        }
    }
}
