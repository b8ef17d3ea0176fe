//! Regular expressions.

use std::ops::Range;

use agent_core::{Error, Result};
use regex::{Regex, RegexBuilder};

use super::Scope;
use crate::pii::{Detector, Passage, PiiPattern};

/// Maximum size of a compiled expression in bytes.
const LARGEST: usize = 1 << 20;

/// Detector for matches of a regular expression.
pub(super) struct Regular {
    name: String,
    regex: Regex,
    scope: Scope,
}

impl Regular {
    pub(super) fn new(pattern: &PiiPattern) -> Result<Self> {
        let PiiPattern { name, regex, scope } = pattern;
        let compiled = RegexBuilder::new(regex).size_limit(LARGEST).dfa_size_limit(LARGEST).build().map_err(|e| {
            Error::config(format!("pii: the pattern '{name}' is no regular expression that can be used: {e}"))
        })?;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return Err(Error::config(format!("pii: '{name}' cannot name a pattern: use a-z, 0-9 and _")));
        }
        Ok(Self { name: name.clone(), regex: compiled, scope: *scope })
    }
}

impl Detector for Regular {
    fn name(&self) -> &str {
        &self.name
    }

    fn may_contain(&self, c: char) -> bool {
        match self.scope {
            Scope::Word => !c.is_whitespace(),
            Scope::Line => c != '\n',
            Scope::Text => true,
        }
    }

    fn find(&self, passage: &Passage<'_>) -> Vec<Range<usize>> {
        self.regex.find_iter(passage.text).map(|found| found.range()).collect()
    }
}
