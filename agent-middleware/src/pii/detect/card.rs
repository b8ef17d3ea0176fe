//! Payment card numbers.

use std::ops::Range;

use super::digits::{between, digits, groups};
use crate::pii::{Detector, Passage};

/// 13 to 19 digits with a valid check digit and a known network prefix (2 to 6), in groups with at
/// most one separator between them.
pub(super) struct CreditCard;

impl Detector for CreditCard {
    fn name(&self) -> &str {
        "credit_card"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '\u{a0}' | '\u{2011}' | '\u{2013}' | '\u{202f}')
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let groups = groups(text);
        let (mut found, mut first) = (Vec::new(), 0);
        while first < groups.len() {
            match card(text, &groups, first) {
                Some(last) => {
                    found.push(groups[first].start..groups[last].end);
                    first = last + 1;
                }
                None => first += 1,
            }
        }
        found
    }
}

/// Returns the last group of the longest card number that begins with this group.
fn card(text: &str, groups: &[Range<usize>], first: usize) -> Option<usize> {
    let (mut best, mut count) = (None, 0);
    for last in first..groups.len() {
        if last > first && between(text, groups, last - 1).chars().count() > 1 {
            break;
        }
        count += groups[last].len();
        if count > 19 {
            break;
        }
        let number = &text[groups[first].start..groups[last].end];
        if count >= 13 && number.starts_with(['2', '3', '4', '5', '6']) && luhn(number) {
            best = Some(last);
        }
    }
    best
}

fn luhn(number: &str) -> bool {
    let sum: u32 = digits(number)
        .rev()
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 => digit,
            _ if digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}
