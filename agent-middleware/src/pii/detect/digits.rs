//! Groups of digits: what card and telephone numbers are made of.

use std::ops::Range;

/// The groups of digits in a text, as ranges of bytes.
pub(super) fn groups(text: &str) -> Vec<Range<usize>> {
    let (mut groups, mut at) = (Vec::new(), 0);
    while let Some(skipped) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + skipped;
        at = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |len| start + len);
        groups.push(start..at);
    }
    groups
}

/// The separators between two groups that follow each other.
pub(super) fn between<'a>(text: &'a str, groups: &[Range<usize>], at: usize) -> &'a str {
    &text[groups[at].end..groups[at + 1].start]
}

/// The digits of a part of a text.
pub(super) fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.chars().filter_map(|c| c.to_digit(10))
}
