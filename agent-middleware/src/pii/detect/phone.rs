//! Telephone numbers.

use std::ops::Range;

use super::digits::{between, groups};
use crate::pii::{Detector, Passage};

/// Maximum number of groups in a number: 15 single digits.
const MOST_GROUPS: usize = 15;

/// International numbers (`+49 30 123456`), grouped North American ones (`(555) 123-4567`), and
/// national ones that begin with a zero (`020 7946 0958`, `01 23 45 67 89`).
pub(super) struct Phone;

impl Detector for Phone {
    fn name(&self) -> &str {
        "phone"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_digit() || matches!(c, '+' | ' ' | '-' | '.' | '(' | ')' | '/' | '\u{a0}' | '\u{2011}' | '\u{202f}')
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let groups = groups(text);
        let (mut found, mut first) = (Vec::new(), 0);
        while first < groups.len() {
            let start = groups[first].start;
            let ways =
                [international(text, &groups, first), american(text, &groups, first), national(text, &groups, first)];
            match ways.into_iter().flatten().max() {
                Some(last) => {
                    let open = text[..start].ends_with(['(', '+']);
                    let before = if open { text[..start].trim_end_matches(['(', '+']).len() } else { start };
                    found.push(before..groups[last].end);
                    first = last + 1;
                }
                None => first += 1,
            }
        }
        found
    }
}

/// Counts the groups from `first` on that belong together: their separators are short and accepted.
/// Stops after the maximum length of a number, so that a long line of numbers takes linear time.
fn together(text: &str, groups: &[Range<usize>], first: usize, accept: impl Fn(char) -> bool) -> usize {
    let near = |last: &usize| {
        let between = between(text, groups, *last);
        between.chars().count() <= 3 && between.chars().all(&accept)
    };
    1 + (first..groups.len() - 1).take(MOST_GROUPS).take_while(near).count()
}

fn international(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    if !text[..groups[first].start].trim_end_matches('(').ends_with('+') {
        return None;
    }
    longest(groups, first, together(text, groups, first, |c| c != '+'), 8..=15)
}

fn american(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    let count = together(text, groups, first, |c| c != '+' && c != '/');
    let lengths: Vec<usize> = groups[first..first + count].iter().map(Range::len).collect();
    match lengths[..] {
        [1, 3, 3, 4, ..] if text[groups[first].start..].starts_with('1') => Some(first + 3),
        [3, 3, 4, ..] => Some(first + 2),
        _ => None,
    }
}

fn national(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    if !text[groups[first].start..].starts_with('0') {
        return None;
    }
    let pairs = together(text, groups, first, |c| c != '+');
    let pairs = groups[first..first + pairs].iter().take_while(|group| group.len() == 2).count();
    if pairs == 5 {
        return Some(first + 4);
    }
    // With dots, decimal fractions would match.
    let count = together(text, groups, first, |c| c != '+' && c != '.');
    (groups[first].len() > 2).then(|| longest(groups, first, count, 9..=14)).flatten()
}

/// Returns the last group of the longest sequence with an allowed number of digits.
fn longest(
    groups: &[Range<usize>],
    first: usize,
    count: usize,
    allowed: std::ops::RangeInclusive<usize>,
) -> Option<usize> {
    let mut digits = 0;
    let ends = (first..first + count).filter(|last| {
        digits += groups[*last].len();
        allowed.contains(&digits)
    });
    ends.last()
}
