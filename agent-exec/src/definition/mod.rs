//! Agents as data: conversion to and from definitions.

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

/// An agent as data: its settings, and the names under which a [`Registry`](crate::Registry) holds
/// its parts.
///
/// Code and live values are not part of it: models with their keys, stores, budgets, resources,
/// tower layers. The registry supplies models, tools and middleware; add the rest to the builder
/// that [`Registry::builder`](crate::Registry::builder) returns. A definition therefore contains no
/// secret unless somebody writes one into a text or a configuration.
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
    /// The literal system prompt: a text, or parts with marks for the provider's cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system: Option<SystemDefinition>,
    /// Template of the system prompt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system_prompt: Option<String>,
    /// Template of the user message that is appended to the messages of each run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user_prompt: Option<String>,
    /// Variables of the prompts that each run must supply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required_variables: RequiredVariables,
    /// Values that the variables of the prompts accept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inputs: BTreeMap<String, FieldDefinition>,
    /// The keys of the state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: BTreeMap<String, FieldDefinition>,
    /// The tools, and the configurations from which tools are made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: Vec<PartDefinition>,
    /// Tool sets whose tools may change during a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub toolsets: Vec<PartDefinition>,
    /// Tools that the model's provider runs itself. Credentials of a remote server are not stored
    /// here: they come from [`Registry::server_tool`](crate::Registry::server_tool).
    #[serde(default, skip_serializing_if = "is_default")]
    pub server_tools: Vec<ServerTool>,
    /// The middleware, outermost first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub middleware: Vec<PartDefinition>,
    /// Sub-agents that code can call, by key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sub_agents: BTreeMap<String, SubAgentDefinition>,
    /// Tools whose result ends a run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exit_on: Vec<String>,
    /// Maximum number of steps of a run. Default: 100.
    #[serde(default = "steps")]
    pub max_steps: u32,
    /// Makes a run end with a text at the step limit. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub final_answer: bool,
    /// Maximum number of calls of one message that run concurrently. Default: 16.
    #[serde(default = "tool_concurrency")]
    pub tool_concurrency: usize,
    /// Maximum number of bytes of text in a tool result. Default: 1 MiB.
    #[serde(default = "tool_output")]
    pub max_tool_output: usize,
    /// Makes a failing tool end the run. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raise_tool_errors: bool,
    /// Requests streamed responses from the provider. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub streaming: bool,
    /// Model parameters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub params: ModelParams,
    /// Deadlines of a run and its parts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deadlines: Deadlines,
    /// Policy of a run whose session is held by another run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_busy: WhenBusy,
    /// Policy of a run whose session waits for an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub when_waiting: WhenWaiting,
}

/// A state key or an input, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FieldDefinition {
    /// JSON Schema of the values.
    pub schema: Value,
    /// Merge rule for new values: `replace`, `append`, `merge`, or the name of a handler. Default:
    /// lists are appended, everything else is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<String>,
    /// Initial value of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// A sub-agent as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SubAgentDefinition {
    /// Purpose of the sub-agent, for the caller.
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
