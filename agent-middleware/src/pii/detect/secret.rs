//! API keys and tokens.

use std::ops::Range;

use agent_core::model::API_KEY_PREFIXES;

use super::{is_at, is_before};
use crate::pii::{Detector, Passage};

/// API keys of well-known services, and signed tokens (`eyJ..`).
pub(super) struct Secret;

impl Detector for Secret {
    fn name(&self) -> &str {
        "secret"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text.trim_end_matches('.');
        let end = text.len();
        // Hyphenated words contain no digits, and no upper-case letters among lower-case ones.
        let random = text.rfind(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
        let mut found: Vec<Range<usize>> = Vec::new();
        for (prefix, least) in API_KEY_PREFIXES {
            for (at, _) in text.match_indices(prefix) {
                let rest = at + prefix.len();
                let known = found.iter().any(|range| range.contains(&at));
                let within = is_before(text, at, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                let is_key = end - rest >= *least && is_at(text, rest, |b| b.is_ascii_alphanumeric());
                if is_key && !known && !within && random.is_some_and(|at| at >= rest) {
                    found.push(at..end);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_every_service_on_the_list_is_found() {
        for (prefix, least) in API_KEY_PREFIXES {
            let key = format!("{prefix}{}", "a1".repeat(least.div_ceil(2)));
            let passage = Passage { text: &key, before: None, after: None };
            assert_eq!(Secret.find(&passage), vec![0..key.len()], "{key}");
        }
    }
}
