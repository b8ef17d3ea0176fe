//! Reverse matching of URI templates: extracts the values from a URI.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Error, Result};
use regex::Regex;

use crate::text::percent_decoded;

/// Parsed URI template.
#[derive(Clone, Debug)]
pub(super) struct Template {
    names: Vec<String>,
    pattern: Regex,
}

impl Template {
    /// Parses a template: text with `{name}`, which matches a segment between two `/`, and
    /// `{+name}`, which matches anything.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](agent_core::ErrorKind::Config) for any other expression, and for a
    /// duplicate name.
    pub(super) fn parse(template: &str) -> Result<Self> {
        let wrong = |why: &str| Error::config(format!("the template '{template}' of a server's resources: {why}"));
        let (mut names, mut pattern, mut rest) = (Vec::new(), String::from("^"), template);
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}').ok_or_else(|| wrong("'{' has no '}'"))?;
            let (name, piece) = expression.strip_prefix('+').map_or((expression, "([^/?#]+)"), |name| (name, "(.+)"));
            if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') {
                return Err(wrong("write {name} for a piece, or {+name} for all that follows"));
            }
            pattern.push_str(&regex::escape(before));
            pattern.push_str(piece);
            names.push(name.to_owned());
            rest = after;
        }
        if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
            return Err(wrong("a name stands in it twice"));
        }
        let pattern = format!("{pattern}{}$", regex::escape(rest));
        let pattern = Regex::new(&pattern).map_err(|e| wrong("it is too long").with_source(e))?;
        Ok(Self { names, pattern })
    }

    /// Returns the names in the template.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the values with which the template expands to this URI, if it matches.
    pub(super) fn values(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        let found = self.pattern.captures(uri)?;
        let pieces = found.iter().skip(1).map(|piece| piece.map_or("", |piece| piece.as_str()));
        Some(self.names.iter().cloned().zip(pieces.map(percent_decoded)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_uri_gives_back_the_values_that_made_it_and_another_one_none() {
        let template = Template::parse("db://{table}/rows/{id}").expect("a template");
        let values = template.values("db://users/rows/a%20b+c").expect("fits");
        assert_eq!((&*values["table"], &*values["id"]), ("users", "a b+c"));
        for other in ["db://users/rows/", "db://users/rows/1/2", "db://users/rows/1?x", "DB://users/rows/1", ""] {
            assert!(template.values(other).is_none(), "{other}");
        }
        let files = Template::parse("skill://{name}/{+path}").expect("a template");
        assert_eq!(files.values("skill://a/b/c.md").expect("fits")["path"], "b/c.md");
    }

    #[test]
    fn a_template_that_cannot_be_read_backwards_is_refused() {
        for wrong in ["a://{", "a://{}", "a://{?q}", "a://{/path*}", "a://{b}/{b}", "a://{a-b}"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn whatever_stands_for_a_name_comes_back(id in "[a-zA-Z0-9._~-]{1,20}", path in "[a-z/]{1,20}") {
            let template = Template::parse("x://{id}/y/{+path}").expect("a template");
            let values = template.values(&format!("x://{id}/y/{path}")).expect("fits");
            prop_assert_eq!((&values["id"], &values["path"]), (&id, &path));
        }
    }
}
