//! `command`: one program as a tool.

use std::sync::Arc;

use agent_core::{Effect, Error, Result, ToolSpec};
use agent_tools::{
    ToolSet,
    sandbox::{Command, ProgramTool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::shell::Place;
use crate::config::{
    file::seconds,
    parts::change::{EffectName, Permission},
};

/// One program as a tool: it reads the arguments as JSON from its standard input, and what it writes is the result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct CommandConfig {
    /// The tool's name.
    name: String,
    /// Description for the model.
    description: String,
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    run: Vec<String>,
    /// JSON Schema of the arguments. Default: none are taken.
    #[serde(default)]
    parameters: Option<Map<String, Value>>,
    /// Effect of repeating a call. Default: `at_most_once`.
    #[serde(default)]
    effect: Option<EffectName>,
    /// Seconds that a call may take. Default: 60.
    #[serde(default)]
    #[schemars(range(min = 0.001))]
    timeout: Option<f64>,
    /// Permission of calls (allow, ask, deny): a rule of the middleware `approval`.
    #[serde(default)]
    #[allow(dead_code, reason = "it became a rule before")]
    permission: Option<Permission>,
    #[serde(flatten)]
    place: Place,
}

pub(super) fn tools(config: CommandConfig) -> Result<ToolSet> {
    let [program, args @ ..] = config.run.as_slice() else {
        return Err(Error::config("a command names the program that it runs"));
    };
    if let Some(filled) = config.run.iter().find(|word| word.contains("{{")) {
        return Err(Error::config(format!(
            "'{filled}' is not filled in: the program reads its arguments as a JSON object from standard input"
        )));
    }
    let command = args.iter().fold(Command::new(program), Command::arg);
    let none = || json!({"type": "object", "additionalProperties": false});
    let spec = ToolSpec::new(&config.name, config.description, config.parameters.map_or_else(none, Value::Object));
    let mut tool = ProgramTool::new(spec, command, Arc::new(config.place.builder()?.build()?))
        .effect(config.effect.map_or(Effect::AtMostOnce, Effect::from));
    if let Some(time) = config.timeout {
        tool = tool.timeout(seconds(time)?);
    }
    Ok(ToolSet::new(config.name).tool(tool))
}
