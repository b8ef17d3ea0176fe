//! Configuration of [`ToolSearch`](super::ToolSearch).

use std::collections::{BTreeMap, BTreeSet};

use agent_core::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::permissions::wildcard::any_fits;

/// Configuration of `ToolSearch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolSearchConfig {
    /// Name patterns of the deferred tools; `*` matches any characters. Default: none.
    pub tools: BTreeSet<String>,
    /// Search keywords of a tool in addition to its name and description, by the tool's name.
    pub hints: BTreeMap<String, String>,
    /// Minimum number of deferred tools in a run; with fewer, all of them are offered from the
    /// beginning. Default: 0, which always defers.
    pub threshold: usize,
    /// Maximum number of tools that one search loads. Default: 5.
    pub max_results: usize,
    /// Name of the search tool. Default: `search_tools`.
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
    /// Returns the deferred tools of a run. Returns none if there are too few, or if the run does
    /// not offer the search tool, since they could not be found then.
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
