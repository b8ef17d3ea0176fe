//! Configuration of [`CodeMode`](super::CodeMode).

use std::{collections::BTreeSet, time::Duration};

use agent_core::ToolSpec;
use serde::{Deserialize, Serialize};

use super::functions::{Function, functions};
use crate::permissions::wildcard::any_fits;

/// Configuration of `CodeMode`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CodeModeConfig {
    /// Name patterns of the tools that programs call; `*` matches any characters. The model cannot
    /// call them directly. Default: all.
    pub tools: BTreeSet<String>,
    /// Name patterns of tools that remain the model's own. Default: none.
    pub except: BTreeSet<String>,
    /// Name of the tool that runs programs. Default: `run_code`.
    pub tool: String,
    /// Maximum compute time of a program; waiting for tools does not count. In configuration files,
    /// seconds. Default: 1 second.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "agent_core::seconds::Seconds"))]
    pub time: Duration,
    /// Maximum recursion depth of a program, up to 2,000. Default: 500.
    pub recursion: usize,
    /// Maximum number of tool calls of one program. Default: 100.
    pub calls: usize,
    /// Maximum number of bytes of a program's output and result; the rest is omitted. Default:
    /// 20,000.
    pub output: usize,
    /// Approximate memory limit of a program in bytes, measured as the growth of the process (on
    /// Linux; other activity of the process counts too). On other platforms, each single value is
    /// limited to a quarter of it. Default: 128 MiB.
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
    /// True for a tool that programs call. Tools that run at the provider cannot be called from
    /// here.
    pub(super) fn is_callable(&self, tool: &ToolSpec) -> bool {
        let fits = |patterns| any_fits(patterns, &tool.name);
        tool.name != self.tool && !tool.is_server_side() && fits(&self.tools) && !fits(&self.except)
    }

    /// Returns the functions that programs have for these tools.
    pub(super) fn functions<'a>(&self, tools: &'a [ToolSpec]) -> Vec<(Function, &'a ToolSpec)> {
        functions(tools.iter().filter(|tool| self.is_callable(tool)))
    }
}
