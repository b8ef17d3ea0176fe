//! URLs.

use std::ops::Range;

use crate::pii::{Detector, Passage};

/// URLs with a scheme and `://`, or that begin with `www.`.
pub(super) struct Url;

impl Detector for Url {
    fn name(&self) -> &str {
        "url"
    }

    fn may_contain(&self, c: char) -> bool {
        !c.is_whitespace() && !c.is_control() && !"<>\"`".contains(c) && (c as u32) < 0x2E80
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        let text = passage.text;
        let scheme = |at: usize| {
            let before = text[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
            text[before.len()..at].find(|c: char| c.is_ascii_alphabetic()).map(|skipped| before.len() + skipped)
        };
        let full = text.match_indices("://").filter_map(|(at, _)| Some((scheme(at)?, at + 3)));
        let www = text.match_indices("www.").filter(|(at, _)| !text[..*at].ends_with(char::is_alphanumeric));
        let end = text.trim_end_matches(|c| ".,;:!?)]}'*_".contains(c)).len();
        let starts = full.chain(www.map(|(at, _)| (at, at + 4)));
        starts.filter(|(_, name)| *name < end).map(|(start, _)| start..end).collect()
    }
}
