//! Tool names that providers accept.

use std::collections::BTreeSet;

/// Maximum length of a tool name.
const LONGEST: usize = 64;

/// Names in use.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Returns a unique name similar to this one, of letters, digits, `_` and `-`.
    pub(super) fn give(&mut self, wanted: &str) -> String {
        let mut name = String::new();
        for c in wanted.chars() {
            let c = if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
            if !(c == '_' && name.ends_with('_')) {
                name.push(c);
            }
        }
        let name = name.trim_matches('_');
        let name = if name.is_empty() { "operation" } else { name };
        let with = |end: &str| format!("{}{end}", &name[..name.len().min(LONGEST - end.len())]);
        let numbered = (2..).map(|number| with(&format!("_{number}")));
        let free = std::iter::once(with("")).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.expect("there is always another number");
        self.0.insert(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_is_valid_and_no_two_are_one(wanted in prop::collection::vec("[a-zA-Zä/{} _.-]{0,100}", 1..30)) {
            let mut names = Names::default();
            let given: Vec<_> = wanted.iter().map(|wanted| names.give(wanted)).collect();
            for name in &given {
                prop_assert!((1..=64).contains(&name.len()), "{name}");
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{name}");
            }
            prop_assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
        }
    }
}
