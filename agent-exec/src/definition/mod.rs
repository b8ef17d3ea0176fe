//! Agents as data, and back.

mod part;
mod system;

use std::collections::BTreeMap;

use agent_core::{Deadlines, ModelParams, WhenBusy, WhenWaiting, tool::ServerTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    part::{ModelDefinition, PartDefinition},
    system::{MarkedText, SystemDefinition, SystemPart},
};
use crate::{RequiredVariables, executor::Limits};

/// An agent as data: what it is made of, by the names under which a [`Registry`](crate::Registry) has the parts.
///
/// Code and what is live is not part of it: models with their keys, stores, budgets, resources, tower layers. The registry
/// brings models, tools and middleware; the rest is given to the builder that [`Registry::builder`](crate::Registry::builder) makes. So there is no
/// secret in it unless somebody writes one into a text or a configuration.
///
/// ```
/// use agent_core::{RunEnd, testing::{ScriptedModel, Turn}};
/// use agent_exec::{AgentDefinition, Registry};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let registry = Registry::new().model("small", ScriptedModel::new([Turn::text("Hello!")]));
/// let definition: AgentDefinition =
///     serde_json::from_str(r#"{"name": "greeter", "model": "small", "system": "Be kind.", "max_steps": 3}"#).unwrap();
/// let agent = registry.builder(&definition)?.build()?;
/// assert_eq!(agent.definition()?, definition);
/// assert_eq!(agent.run("Hi").await?.finished().unwrap().answer, "Hello!");
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// The agent's name.
    pub name: String,
    /// The model.
    pub model: ModelDefinition,
    /// The system prompt, as it is: a text, or parts with marks for the provider's cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system: Option<SystemDefinition>,
    /// The template of the system prompt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system_prompt: Option<String>,
    /// The template of the user message after the messages of each run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user_prompt: Option<String>,
    /// Which variables of the prompts a run must be given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required_variables: RequiredVariables,
    /// What values the variables of the prompts take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inputs: BTreeMap<String, FieldDefinition>,
    /// The keys of the state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: BTreeMap<String, FieldDefinition>,
    /// The tools, and what tools are made from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: Vec<PartDefinition>,
    /// Sets of tools that may change while a run is under way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub toolsets: Vec<PartDefinition>,
    /// Tools that the provider of the model runs itself. What opens a remote server is not kept here: it comes
    /// from [`Registry::server_tool`](crate::Registry::server_tool).
    #[serde(default, skip_serializing_if = "is_default")]
    pub server_tools: Vec<ServerTool>,
    /// The middleware, outermost first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub middleware: Vec<PartDefinition>,
    /// Agents that code can call, by key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sub_agents: BTreeMap<String, SubAgentDefinition>,
    /// Tools that end a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exit_on: Vec<String>,
    /// The most steps of a run. Default: 100.
    #[serde(default = "steps")]
    pub max_steps: u32,
    /// Whether a run ends with a text at the step limit. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub final_answer: bool,
    /// How many calls of one message run at once. Default: 16.
    #[serde(default = "tool_concurrency")]
    pub tool_concurrency: usize,
    /// How many bytes of text a tool result may have. Default: 1 MiB.
    #[serde(default = "tool_output")]
    pub max_tool_output: usize,
    /// Whether a failing tool ends the run. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raise_tool_errors: bool,
    /// Whether the provider is asked to stream. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streaming: bool,
    /// How the model is to answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub params: ModelParams,
    /// How long the parts of a run may take.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deadlines: Deadlines,
    /// What a run does whose session is held by another.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_busy: WhenBusy,
    /// What a run does whose session waits for an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_waiting: WhenWaiting,
}

/// A key of the state, or an input, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FieldDefinition {
    /// JSON Schema of its values.
    pub schema: Value,
    /// How a new value joins the old: `replace`, `append`, `merge`, or the name of a handler. Default: lists are appended,
    /// everything else is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    /// The value at the start of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// A sub-agent as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SubAgentDefinition {
    /// What it is good for.
    pub description: String,
    /// The agent.
    pub agent: AgentDefinition,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn steps() -> u32 {
    Limits::default().steps
}

fn tool_concurrency() -> usize {
    Limits::default().tool_concurrency
}

fn tool_output() -> usize {
    Limits::default().tool_output
}
