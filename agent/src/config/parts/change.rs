//! Changes of a tool by a file.

use std::{collections::BTreeMap, sync::Arc};

use agent_core::{Effect, Result, Tool, ToolOptions};
use agent_tools::{ToolExt, ToolSet};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::config::file::seconds;

/// Overrides of a tool's own properties.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct ToolChange {
    /// The name that the model knows it by.
    name: Option<String>,
    /// Description for the model.
    description: Option<String>,
    /// Arguments that the file gives, and the model neither sees nor sets.
    fixed: BTreeMap<String, Value>,
    /// Seconds that a call may take.
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Effect of repeating a call.
    effect: Option<EffectName>,
    /// Permission of calls (allow, ask, deny): a rule of the middleware `approval`.
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
}

/// Permission of calls.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Permission {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask,
    /// It never runs, and nobody is asked.
    Deny,
}

/// Effect of repeating a call.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum EffectName {
    /// It changes nothing: it is made again after a crash.
    Pure,
    /// Twice is as good as once: it is made again after a crash.
    Idempotent,
    /// Twice is not once: a person is asked after a crash in its middle.
    AtMostOnce,
}

impl From<EffectName> for Effect {
    fn from(name: EffectName) -> Self {
        match name {
            EffectName::Pure => Self::Pure,
            EffectName::Idempotent => Self::Idempotent,
            EffectName::AtMostOnce => Self::AtMostOnce,
        }
    }
}

impl ToolChange {
    /// # Errors
    /// Invalid durations.
    pub(in crate::config) fn applied(self, tool: Arc<dyn Tool>) -> Result<Arc<dyn Tool>> {
        let mut tool = tool;
        let timeout = self.timeout.map(seconds).transpose()?;
        if let Some(name) = self.name {
            tool = Arc::new(tool.named(name));
        }
        if let Some(description) = self.description {
            tool = Arc::new(tool.described(description));
        }
        for (argument, value) in self.fixed {
            tool = Arc::new(tool.fixed(&argument, value));
        }
        if timeout.is_none() && self.effect.is_none() {
            return Ok(tool);
        }
        Ok(Arc::new(tool.with_options(|mut options: ToolOptions| {
            if let Some(timeout) = timeout {
                options = options.timeout(timeout);
            }
            if let Some(effect) = self.effect {
                options = options.effect(effect.into());
            }
            options
        })))
    }
}

/// Selection of the tools of a set, and their changes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(in crate::config) struct Choice {
    /// Their names. Default: all.
    tools: Vec<String>,
    /// Prefix of each name.
    prefix: String,
    /// Changes of single tools, by their own names.
    change: BTreeMap<String, ToolChange>,
}

impl Choice {
    /// # Errors
    /// A tool that the set does not have.
    pub(in crate::config) fn of(self, set: ToolSet) -> Result<ToolSet> {
        let names: Vec<_> = self.tools.iter().map(String::as_str).collect();
        let set = if names.is_empty() { set } else { set.named(&names)? };
        let changed: Vec<_> = self.change.keys().map(String::as_str).collect();
        set.named(&changed)?;
        let mut chosen = ToolSet::new("tools");
        for tool in set {
            let change = self.change.get(&tool.spec().name).cloned().unwrap_or_default();
            chosen = chosen.shared(change.applied(tool)?);
        }
        Ok(if self.prefix.is_empty() { chosen } else { chosen.prefixed(&self.prefix) })
    }
}
