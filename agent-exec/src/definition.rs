//! Agents as data, and back.

use std::collections::BTreeMap;

use agent_core::{Deadlines, ModelParams, WhenBusy, tool::ServerTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    pub model: String,
    /// The system prompt, as it is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system: Option<String>,
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
    /// The tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: Vec<String>,
    /// Sets of tools that may change while a run is under way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub toolsets: Vec<String>,
    /// Tools that the provider of the model runs itself. What opens a remote server is not kept here: it comes
    /// from [`Registry::server_tool`](crate::Registry::server_tool).
    #[serde(default, skip_serializing_if = "is_default")]
    pub server_tools: Vec<ServerTool>,
    /// The middleware, outermost first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub middleware: Vec<MiddlewareDefinition>,
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

/// A middleware as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Form", into = "Form")]
#[non_exhaustive]
pub struct MiddlewareDefinition {
    /// The name that the registry has it under.
    pub name: String,
    /// Its configuration; null if it takes none.
    pub config: Value,
    /// True if it covers every run below, too.
    pub for_all: bool,
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

/// What a middleware is written as: its name alone says all if there is nothing else to say.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Form {
    Name(String),
    Whole(Whole),
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Whole {
    name: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    config: Value,
    #[serde(default, skip_serializing_if = "is_default")]
    for_all: bool,
}

impl From<Form> for MiddlewareDefinition {
    fn from(form: Form) -> Self {
        match form {
            Form::Name(name) => Self { name, config: Value::Null, for_all: false },
            Form::Whole(Whole { name, config, for_all }) => Self { name, config, for_all },
        }
    }
}

impl From<MiddlewareDefinition> for Form {
    fn from(MiddlewareDefinition { name, config, for_all }: MiddlewareDefinition) -> Self {
        match config.is_null() && !for_all {
            true => Self::Name(name),
            false => Self::Whole(Whole { name, config, for_all }),
        }
    }
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
