//! Kind of a request.

use agent_retrieval::search::names;

use crate::language::{is_interrogative, is_stop};

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Information that exists somewhere.
    Lookup,
    /// The result of a calculation.
    Arithmetic,
    /// Something new, or a change.
    Making,
}

const POLITE: &[&str] = &["can", "could", "hello", "hey", "hi", "kindly", "now", "please", "then", "would", "you"];

const MAKING: &[&str] = &[
    "add",
    "build",
    "change",
    "compose",
    "create",
    "delete",
    "design",
    "draft",
    "edit",
    "fix",
    "generate",
    "implement",
    "imagine",
    "invent",
    "make",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "translate",
    "update",
    "write",
];

const CREATIVE: &[&str] = &["haiku", "joke", "limerick", "lyrics", "poem", "poetry", "riddle", "song", "story"];

const ARITHMETIC: &[&str] = &[
    "add",
    "added",
    "calculate",
    "compute",
    "cubed",
    "divide",
    "divided",
    "equal",
    "equals",
    "minus",
    "multiplied",
    "multiply",
    "percent",
    "plus",
    "power",
    "product",
    "root",
    "square",
    "squared",
    "subtract",
    "sum",
    "times",
    "x",
];

impl Intent {
    pub(super) fn of(question: &str) -> Self {
        let words: Vec<String> = names(question).map(str::to_lowercase).collect();
        let is = |list: &[&str], word: &str| list.contains(&word);
        let (numbers, rest): (Vec<_>, Vec<_>) = words.iter().partition(|w| w.chars().all(|c| c.is_ascii_digit()));
        if numbers.len() > 1 && rest.iter().all(|w| is(ARITHMETIC, w) || is_stop(w)) {
            return Self::Arithmetic;
        }
        let asks = words.first().is_some_and(|w| is_interrogative(w) && !is(POLITE, w));
        let leading = words.iter().find(|w| !is(POLITE, w));
        let makes = leading.is_some_and(|w| is(MAKING, w)) || words.iter().any(|w| is(CREATIVE, w));
        if makes && !asks { Self::Making } else { Self::Lookup }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculations_and_new_things_are_told_from_questions_about_what_is_there() {
        for (question, intent) in [
            ("What is 17 * 23?", Intent::Arithmetic),
            ("Calculate the sum of 3 and 4.", Intent::Arithmetic),
            ("What is 6 x 7", Intent::Arithmetic),
            ("What changed between 1.2 and 1.3?", Intent::Lookup),
            ("Could you please write a test for the parser?", Intent::Making),
            ("Tell me a joke", Intent::Making),
            ("How do I create an agent?", Intent::Lookup),
            ("Where is the story of the project told?", Intent::Lookup),
            ("Can you find where retries are counted?", Intent::Lookup),
            ("Summarise the changelog", Intent::Lookup),
        ] {
            assert_eq!(Intent::of(question), intent, "{question}");
        }
    }
}
