//! The keys of a file beside those of a definition.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{Budget, Caps, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    network::{ProvidersKey, TransportKeys},
    store::StoreAddress,
    telemetry::TelemetryKeys,
};

/// Keys of a file beside the definition of its agent.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FileKeys {
    /// The file that this one begins with: maps are joined key by key, everything else is replaced.
    pub(super) extends: Option<String>,
    /// Purpose of the agent, for people and for agents that have it as a sub-agent.
    pub(super) description: Option<String>,
    /// Texts that `${variables.NAME}` stands for, or `${variables.GROUP.NAME}`. Each may refer to those above it.
    pub(super) variables: BTreeMap<String, Variable>,
    /// Models under names of the file's own.
    pub(super) models: BTreeMap<String, ModelConfig>,
    /// Budget of a run with its sub-agents.
    pub(super) budget: BudgetConfig,
    /// Values of the storage that a run and its sub-agents share, at the start.
    pub(super) globals: BTreeMap<String, Value>,
    /// Store of runs: `memory`, `sqlite:PATH` or `postgres://USER@HOST/DATABASE`. Default: none.
    pub(super) store: Option<StoreAddress>,
    /// Offers the sub-agents to the model by the middleware `delegation`, unless the file names that middleware.
    /// Default: true.
    pub(super) offer_sub_agents: Option<bool>,
    /// Export of runs by OpenTelemetry. Default: none.
    pub(super) telemetry: Option<TelemetryKeys>,
    /// Providers of the file's models beside those that are known: a JSON file, or a list.
    pub(super) providers: Option<ProvidersKey>,
    /// Transport of requests to the file's models. Default: that of the process.
    pub(super) transport: Option<TransportKeys>,
}

impl FileKeys {
    /// The keys.
    pub(super) const ALL: [&str; 11] = [
        "extends",
        "description",
        "variables",
        "models",
        "budget",
        "globals",
        "store",
        "offer_sub_agents",
        "telemetry",
        "providers",
        "transport",
    ];

    /// Those that a sub-agent has of its own.
    pub(super) const OF_SUB_AGENTS: [&str; 4] = ["extends", "description", "variables", "offer_sub_agents"];
}

/// A path of the file in which it stands.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(inline, extend("format" = "path"))]
pub(super) struct FilePath(pub(super) String);

/// A secret, which a file refers to.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[schemars(inline, extend("format" = "secret"))]
pub(super) struct SecretText(pub(super) String);

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[hidden]")
    }
}

/// A word, a number, true or false, or a group of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Variable {
    Text(#[allow(dead_code, reason = "the check reads it, and references are followed before")] String),
    Number(#[allow(dead_code, reason = "as above")] f64),
    Bool(#[allow(dead_code, reason = "as above")] bool),
    Group(#[allow(dead_code, reason = "as above")] BTreeMap<String, Self>),
}

/// A model of a file: its name, or its configuration.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ModelRef {
    /// `provider:model`, or a name of the file's own table `models`.
    Name(String),
    /// The whole.
    Config(Box<ModelConfig>),
}

/// Connection to a model. It holds secrets, so there is no `Debug`.
#[derive(Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelConfig {
    /// The model: `provider:model`, such as `anthropic:claude-opus-4-5`.
    #[schemars(required)]
    pub(super) name: String,
    /// The key. Default: the variable of the environment that the provider names.
    #[schemars(extend("format" = "secret"))]
    pub(super) api_key: Option<String>,
    /// The address of the provider's API. Default: the provider's own.
    pub(super) base_url: Option<String>,
    /// Headers that go with each request.
    pub(super) headers: BTreeMap<String, String>,
    /// Further options of the provider, such as a region, by name.
    pub(super) options: Map<String, Value>,
    /// Number of retries of a call that failed temporarily. Default: 2.
    pub(super) retries: Option<u32>,
    /// Tokens that a request and its answer may have together. Default: what is known of the model.
    pub(super) context_window: Option<u64>,
    /// Tokens that one answer may have. Default: what is known of the model.
    pub(super) max_output: Option<u64>,
    /// Seconds until the answer begins, at most.
    #[schemars(range(min = 0.001))]
    pub(super) first_timeout: Option<f64>,
    /// Seconds between two parts of an answer, at most.
    #[schemars(range(min = 0.001))]
    pub(super) idle_timeout: Option<f64>,
    /// Describes and calls tools in text, for a model without tool calls. Default: false.
    pub(super) xml_tools: bool,
    /// Models that are asked when this one fails, in this order.
    pub(super) fallbacks: Vec<ModelRef>,
}

/// Budget of a run with its sub-agents. Omitted amounts are unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BudgetConfig {
    /// Tokens, in and out.
    pub(super) tokens: Option<u64>,
    /// Money, in US dollars.
    #[schemars(range(min = 0.0))]
    pub(super) cost_usd: Option<f64>,
    /// Model calls, counting each attempt.
    pub(super) model_calls: Option<u64>,
    /// Tool calls, counting each attempt.
    pub(super) tool_calls: Option<u64>,
    /// Duration of a run in seconds, without the time that it waits for answers.
    #[schemars(range(min = 0.001))]
    pub(super) wall_time: Option<f64>,
    /// Levels of sub-agents: 0 allows none.
    pub(super) depth: Option<u32>,
    /// Sub-agents that a run may start, in all.
    pub(super) fan_out: Option<u32>,
}

impl BudgetConfig {
    /// None if nothing is limited.
    pub(super) fn budget(self) -> Result<Option<Budget>> {
        let Some(caps) = self.caps()? else { return Ok(None) };
        let budget = Budget::builder().caps(caps);
        match self.cost_usd {
            Some(_) => budget.prices(agent_llm::models::Catalogue::builtin()).build().map(Some),
            None => budget.build().map(Some),
        }
    }

    /// The caps; none if nothing is limited.
    pub(super) fn caps(self) -> Result<Option<Caps>> {
        if self == Self::default() {
            return Ok(None);
        }
        let mut caps = Caps::default();
        caps.tokens = self.tokens;
        caps.model_calls = self.model_calls;
        caps.tool_calls = self.tool_calls;
        caps.depth = self.depth;
        caps.fan_out = self.fan_out;
        caps.wall_time = self.wall_time.map(seconds).transpose()?;
        Ok(Some(match self.cost_usd {
            // Dollars of a file are far from the 2^53 millionths that a float counts one by one.
            Some(dollars) => caps.cost((dollars * 1e6).round() as u64),
            None => caps,
        }))
    }
}

/// # Errors
/// Invalid durations.
pub(super) fn seconds(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| Error::config(format!("{seconds} is no time in seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_keys_are_those_of_the_type() {
        let schema = schemars::schema_for!(FileKeys);
        let known: Vec<_> = schema.get("properties").and_then(Value::as_object).expect("a map").keys().collect();
        let mut all = FileKeys::ALL;
        all.sort_unstable();
        assert_eq!(known, all);
    }
}
