//! Network addresses: IPv4, IPv6 and MAC.

use std::{net::Ipv6Addr, ops::Range};

use super::{is_at, is_before};
use crate::pii::{Detector, Passage};

/// Maximum length of a written IPv6 address.
const LONGEST_V6: usize = 45;

pub(super) struct Ip;

impl Detector for Ip {
    fn name(&self) -> &str {
        "ip"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_hexdigit() || c == '.' || c == ':'
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let mut found = v4(passage.text);
        found.extend(v6(passage));
        found
    }
}

fn v4(text: &str) -> Vec<Range<usize>> {
    let starts =
        |at: &usize| is_at(text, *at, |b| b.is_ascii_digit()) && !is_before(text, *at, |b| b.is_ascii_hexdigit());
    let part_of_more = |range: &Range<usize>| {
        let digit = |b: u8| b.is_ascii_hexdigit();
        is_at(text, range.end, digit)
            || (is_at(text, range.end, |b| b == b'.') && is_at(text, range.end + 1, digit))
            || (is_before(text, range.start, |b| b == b'.') && is_before(text, range.start - 1, digit))
    };
    let ranges = (0..text.len()).filter(starts).filter_map(|start| Some(start..start + v4_length(&text[start..])?));
    ranges.filter(|range| !part_of_more(range)).collect()
}

/// Returns the length of four numbers up to 255, separated by dots.
fn v4_length(text: &str) -> Option<usize> {
    let mut at = 0;
    for part in 0..4 {
        if part > 0 {
            is_at(text, at, |b| b == b'.').then_some(())?;
            at += 1;
        }
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        (digits <= 3 && text[at..at + digits].parse::<u8>().is_ok()).then_some(())?;
        at += digits;
    }
    Some(at)
}

fn v6(passage: &Passage<'_>) -> Vec<Range<usize>> {
    let text = passage.text;
    let (mut found, mut at) = (Vec::new(), 0);
    if text.matches(':').count() < 2 {
        return found;
    }
    // A word that ends in hexadecimal letters, as in `std::vec`, is not part of an address.
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let border = |at: usize| {
        (at == 0 || is_before(text, at, |b| b == b':' || b == b'.'))
            && is_at(text, at, |b| b.is_ascii_hexdigit() || b == b':')
    };
    while at < text.len() {
        let longest = text.len().min(at + LONGEST_V6);
        let ends = (at + 2..=longest).rev().filter(|end| !is_at(text, *end, |b| b.is_ascii_hexdigit()));
        let ends = ends.filter(|end| *end < text.len() || !letter(passage.after));
        let address = (border(at) && (at > 0 || !letter(passage.before)))
            .then(|| ends.into_iter().find(|end| is_v6(&text[at..*end])))
            .flatten();
        match address {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// True for an address, but not for a path of names such as `a::b`.
fn is_v6(text: &str) -> bool {
    let groups: Vec<&str> = text.split(':').filter(|group| !group.is_empty()).collect();
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let long = groups.first().is_some_and(|first| first.len() > 2 && has_digit(first));
    has_digit(text) && (groups.len() > 2 || long) && text.parse::<Ipv6Addr>().is_ok()
}

pub(super) struct Mac;

impl Detector for Mac {
    fn name(&self) -> &str {
        "mac"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_hexdigit() || matches!(c, ':' | '-' | '.')
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let (mut found, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let forms = [(6, 2, b':'), (6, 2, b'-'), (3, 4, b'.')];
            match forms.into_iter().find_map(|form| mac(text, at, form)) {
                Some(end) => {
                    found.push(at..end);
                    at = end;
                }
                None => at += 1,
            }
        }
        found
    }
}

/// Returns the end of this many groups of this many digits, if no digit and no further group is
/// adjacent.
fn mac(text: &str, start: usize, (groups, digits, separator): (usize, usize, u8)) -> Option<usize> {
    let hex = |b: u8| b.is_ascii_hexdigit();
    let mut at = start;
    for group in 0..groups {
        if group > 0 {
            is_at(text, at, |b| b == separator).then_some(())?;
            at += 1;
        }
        (0..digits).all(|digit| is_at(text, at + digit, hex)).then_some(())?;
        at += digits;
    }
    let beside = |near: bool, far: bool, joined: bool| near || (joined && far);
    let before = beside(
        is_before(text, start, hex),
        start > 0 && is_before(text, start - 1, hex),
        is_before(text, start, |b| b == separator),
    );
    let after = beside(is_at(text, at, hex), is_at(text, at + 1, hex), is_at(text, at, |b| b == separator));
    (!before && !after).then_some(at)
}
