//! Text as comparable words: lower case, stemmed, identifiers both whole and in parts.

use agent_retrieval::search::{names, words};

use crate::language::stem;

/// Keywords that precede a definition.
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

/// Returns the stems of a text's words. An identifier counts as a whole and as its parts; a name
/// counts three times at its definition, which is usually what a reader looks for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_weighs_more_where_it_is_defined() {
        let count = |text| stems(text).iter().filter(|s| *s == "retr").count();
        assert_eq!((count("fn retry() {"), count("retry()")), (3, 1));
    }
}
