//! Groups of digits, the elements of card and telephone numbers.

use std::ops::Range;

/// Returns the groups of digits in a text, as byte ranges.
pub(super) fn groups(text: &str) -> Vec<Range<usize>> {
    let (mut groups, mut at) = (Vec::new(), 0);
    while let Some(skipped) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + skipped;
        at = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |len| start + len);
        groups.push(start..at);
    }
    groups
}

/// Returns the separators between two adjacent groups.
pub(super) fn between<'a>(text: &'a str, groups: &[Range<usize>], at: usize) -> &'a str {
    &text[groups[at].end..groups[at + 1].start]
}

/// Returns the digits of a text.
pub(super) fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.chars().filter_map(|c| c.to_digit(10))
}
