//! Bank account numbers.

use std::ops::Range;

use crate::pii::{Detector, Passage};

/// International bank account numbers with valid check digits: in groups (upper case only), or
/// without spaces.
///
/// These are two detectors, since lower-case letters and spaces together would turn all prose into
/// one passage.
pub(super) struct Iban {
    pub(super) spaced: bool,
}

impl Detector for Iban {
    fn name(&self) -> &str {
        "iban"
    }

    fn may_contain(&self, c: char) -> bool {
        match self.spaced {
            true => c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ' || c == '\u{a0}',
            false => c.is_ascii_alphanumeric(),
        }
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let starts_word = |at: usize| match text[..at].chars().next_back().or(passage.before) {
            Some(c) => !c.is_alphanumeric(),
            None => true,
        };
        let (mut found, mut past) = (Vec::new(), 0);
        for (at, _) in text.char_indices() {
            if at >= past
                && starts_word(at)
                && let Some(length) = account(&text[at..], passage.after)
            {
                past = at + length;
                found.push(at..past);
            }
        }
        found
    }
}

/// Returns the length of the longest account number at the beginning of a text.
fn account(text: &str, after: Option<char>) -> Option<usize> {
    let form = text.as_bytes().get(..4)?;
    let starts = form[..2].iter().all(u8::is_ascii_alphabetic) && form[2..].iter().all(u8::is_ascii_digit);
    starts.then_some(())?;
    let mut number = String::new();
    let mut best = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !c.is_ascii_alphanumeric() {
            // At most one separator.
            if chars.peek().is_none_or(|(_, next)| !next.is_ascii_alphanumeric()) {
                break;
            }
            continue;
        }
        number.push(c.to_ascii_uppercase());
        let ends_word = chars.peek().map(|(_, next)| *next).or(after).is_none_or(|next| !next.is_alphanumeric());
        if number.len() > 34 {
            break;
        }
        if number.len() >= 15 && ends_word && remainder(&number) == 1 {
            best = Some(at + 1);
        }
    }
    best
}

/// Returns the number modulo 97, with its first four characters moved to the end and letters as 10
/// to 35.
fn remainder(number: &str) -> u32 {
    let (country, rest) = number.split_at(4);
    rest.chars().chain(country.chars()).filter_map(|c| c.to_digit(36)).fold(0, |sum, digit| {
        let shift = if digit > 9 { 100 } else { 10 };
        (sum * shift + digit) % 97
    })
}
