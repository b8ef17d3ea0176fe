//! Which tools are deferred, and how they are found.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::permissions::wildcard::any_fits;

/// Which tools are deferred, and how they are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolSearchConfig {
    /// The tools that are deferred, by name; `*` stands for any characters. Default: none.
    pub tools: BTreeSet<String>,
    /// Words by which a tool is found beside those of its name and its description, by the tool's name.
    pub hints: BTreeMap<String, String>,
    /// With fewer deferred tools than this in a run, all of them are offered from the beginning. Default: 0, which always
    /// defers.
    pub threshold: usize,
    /// Most tools that one search loads. Default: 5.
    pub max_results: usize,
    /// What the tool that searches is called. Default: `search_tools`.
    pub search_tool: String,
}

impl Default for ToolSearchConfig {
    fn default() -> Self {
        Self {
            tools: BTreeSet::new(),
            hints: BTreeMap::new(),
            threshold: 0,
            max_results: 5,
            search_tool: "search_tools".into(),
        }
    }
}

impl ToolSearchConfig {
    /// The deferred ones among the tools of a run. None if they are too few, or if the run does not offer the search: what
    /// cannot be found must not be hidden.
    pub(super) fn deferred<'a>(&self, offered: &'a [ToolSpec]) -> Vec<&'a ToolSpec> {
        if !offered.iter().any(|tool| tool.name == self.search_tool) {
            return Vec::new();
        }
        let named = |name: &str| self.tools.contains(name) || any_fits(&self.tools, name);
        let is_deferred = |tool: &&ToolSpec| tool.name != self.search_tool && named(&tool.name);
        let deferred: Vec<_> = offered.iter().filter(is_deferred).collect();
        if deferred.len() < self.threshold { Vec::new() } else { deferred }
    }
}
