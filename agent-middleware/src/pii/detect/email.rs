//! E-mail addresses.

use std::ops::Range;

use super::is_letter;
use crate::pii::{Detector, Passage};

pub(super) struct Email;

impl Detector for Email {
    fn name(&self) -> &str {
        "email"
    }

    fn may_contain(&self, c: char) -> bool {
        is_letter(c) || c.is_ascii_digit() || "@.-_+%'&=~".contains(c)
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let mut found: Vec<Range<usize>> = Vec::new();
        for (at, _) in text.match_indices('@') {
            let since = found.last().map_or(0, |last| last.end);
            let local = text[since..at].rfind('@').map_or(since, |other| since + other + 1);
            let local = local + text[local..at].len() - text[local..at].trim_start_matches(['.', '\'', '=', '&']).len();
            if let Some(end) = domain(&text[at + 1..]).filter(|_| local < at) {
                found.push(local..at + 1 + end);
            }
        }
        found
    }
}

/// Returns the length of the domain name at the beginning of a text.
fn domain(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !(is_letter(c) || c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (mut at, mut good) = (0, None);
    for (labels, label) in text[..end].split('.').enumerate() {
        let label_end = at + label.trim_end_matches('-').len();
        if label_end == at || label.starts_with('-') {
            break;
        }
        // The last label must be a name: `x@1.2` is not an address.
        if labels > 0 && label.chars().count() > 1 && label.starts_with(is_letter) {
            good = Some(label_end);
        }
        at += label.len() + 1;
    }
    good
}
