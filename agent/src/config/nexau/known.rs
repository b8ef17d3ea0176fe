//! [`Known`]: what a program has beside what NexAU has itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{
    references::References,
    registry::{Naming, Registry},
};

/// The names of a program's parts.
#[derive(Clone, Debug)]
pub(in crate::config) struct Known {
    /// Its tools, and whether a file may give them arguments.
    tools: BTreeMap<String, bool>,
    middlewares: BTreeSet<String>,
    references: References,
}

impl Known {
    pub(in crate::config) fn of(registry: &Registry, references: &References) -> Self {
        let names = registry.tools.keys().chain(registry.toolsets.keys());
        let takes_arguments = |name: &String| registry.naming.get(name) == Some(&Naming::Tool);
        Self {
            tools: names.map(|name| (name.clone(), takes_arguments(name))).collect(),
            middlewares: registry.middlewares.keys().cloned().collect(),
            references: references.clone(),
        }
    }

    /// The first of these environment variables that is set.
    pub(super) fn first_set<'a>(&self, variables: &[&'a str]) -> Option<&'a str> {
        let is_set = |name: &&&str| (self.references.environment)(name).is_some_and(|value| !value.is_empty());
        variables.iter().find(is_set).copied()
    }

    /// The value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.references.environment)(name)
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// True if a file may give arguments of this tool that the model neither sees nor sets.
    pub(super) fn takes_arguments(&self, name: &str) -> bool {
        self.tools.get(name).copied().unwrap_or_default()
    }

    pub(super) fn has_middleware(&self, name: &str) -> bool {
        self.middlewares.contains(name)
    }
}
