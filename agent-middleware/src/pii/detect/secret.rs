//! Keys that open something.

use std::ops::Range;

use super::{is_at, is_before};
use crate::pii::{Detector, Passage};

/// What the keys of well-known services begin with, and how many characters follow at least.
const KEYS: [(&str, usize); 26] = [
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("whsec_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("SG.", 20),
    ("eyJ", 20),
];

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
        let text = passage.text.trim_end_matches('.');
        let end = text.len();
        // Words with hyphens between have no digits, and no capitals among small letters.
        let random = text.rfind(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
        let mut found: Vec<Range<usize>> = Vec::new();
        for (prefix, least) in KEYS {
            for (at, _) in text.match_indices(prefix) {
                let rest = at + prefix.len();
                let known = found.iter().any(|range| range.contains(&at));
                let within = is_before(text, at, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
                let is_key = end - rest >= least && is_at(text, rest, |b| b.is_ascii_alphanumeric());
                if is_key && !known && !within && random.is_some_and(|at| at >= rest) {
                    found.push(at..end);
                }
            }
        }
        found
    }
}
