//! What programs may call, and how much they may do.

use std::{collections::BTreeSet, time::Duration};

use agent_core::ToolSpec;
use serde::{Deserialize, Serialize};

use super::functions::{Function, functions};
use crate::permissions::wildcard::any_fits;

/// What programs may call, and how much they may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CodeModeConfig {
    /// The tools that programs call, by name; `*` stands for any characters. The model is not offered them by themselves.
    /// Default: all.
    pub tools: BTreeSet<String>,
    /// The tools among these that stay the model's own. Default: none.
    pub except: BTreeSet<String>,
    /// What the tool that runs programs is called. Default: `run_code`.
    pub tool: String,
    /// How long a program may compute, from its beginning; waiting for tools does not count. In configuration files, seconds.
    /// Default: 1 second.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "agent_core::seconds::Seconds"))]
    pub time: Duration,
    /// How deep functions of a program may call each other, up to 2,000. Default: 500.
    pub recursion: usize,
    /// Most calls of tools in one program. Default: 100.
    pub calls: usize,
    /// Most bytes of what a program prints and gives back; the rest is left out. Default: 20,000.
    pub output: usize,
    /// About how many bytes a program may use, by what the process grows meanwhile (on Linux; whatever else the process does
    /// counts too). Elsewhere, no single value may have more than a quarter. Default: 128 MiB.
    pub memory: usize,
}

impl Default for CodeModeConfig {
    fn default() -> Self {
        Self {
            tools: BTreeSet::from(["*".into()]),
            except: BTreeSet::new(),
            tool: "run_code".into(),
            time: Duration::from_secs(1),
            recursion: 500,
            calls: 100,
            output: 20_000,
            memory: 128 << 20,
        }
    }
}

impl CodeModeConfig {
    /// True for a tool that programs call. What runs at the provider cannot be called from here.
    pub(super) fn is_callable(&self, tool: &ToolSpec) -> bool {
        let fits = |patterns| any_fits(patterns, &tool.name);
        tool.name != self.tool && !tool.is_server_side() && fits(&self.tools) && !fits(&self.except)
    }

    /// The functions that programs have of these tools.
    pub(super) fn functions<'a>(&self, tools: &'a [ToolSpec]) -> Vec<(Function, &'a ToolSpec)> {
        functions(tools.iter().filter(|tool| self.is_callable(tool)))
    }
}
