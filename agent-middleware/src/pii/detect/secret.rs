//! Keys that open something.

use std::ops::Range;

use agent_core::API_KEY_PREFIXES;

use super::{is_at, is_before};
use crate::{Detector, Passage};

/// Keys of well-known services, and signed tokens (`eyJ..`).
pub(super) struct Secret;

impl Detector for Secret {
    fn name(&self) -> &str {
        "secret"
    }

    fn may_contain(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let mut found: Vec<Range<usize>> = Vec::new();
        for (prefix, least) in API_KEY_PREFIXES {
            for (at, _) in text.match_indices(prefix) {
                let end = text.trim_end_matches('.').len();
                let rest = text.get(at + prefix.len()..end).unwrap_or_default();
                // Words with hyphens between have no digits, and no capitals among small letters.
                let random =
                    rest.contains(|c: char| c.is_ascii_digit()) || rest.contains(|c: char| c.is_ascii_uppercase());
                let known = found.iter().any(|range| range.contains(&at));
                let within = is_before(text, at, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                if rest.len() >= *least && random && !known && !within && is_at(rest, 0, |b| b.is_ascii_alphanumeric())
                {
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
            assert_eq!(Secret.find(&passage), [0..key.len()], "{key}");
        }
    }
}
