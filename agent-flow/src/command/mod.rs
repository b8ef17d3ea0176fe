//! Commands: the worker's planned calls of one tool, as data.

mod program;
mod reference;

use agent_core::OutputFormat;
use agent_tools::ArgumentSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(crate) use self::reference::{Known, references, resolve};
use crate::{
    read::{field, object_with},
    schemas::{Unreadable, form},
};

/// Maximum number of calls per command.
pub(crate) const MOST_CALLS: usize = 16;

/// The worker's plan for one step: calls of the step's tool, which the executor runs like any other
/// calls.
///
/// An argument may be a reference to an earlier result, `{"$ref": "call-1"}`, or to a part of one
/// by its JSON Pointer, `{"$ref": "call-1#/rows/0"}`; results of earlier steps are `step-1/call-1`
/// and so on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCommand {
    /// Requirements of the step.
    pub analysis: String,
    /// Explanation of how the calls fulfil them.
    pub explanation: String,
    /// The calls, in order; at least one.
    pub calls: Vec<PlannedCall>,
    /// True if each call waits for the previous one, like the lines of a program. Otherwise only
    /// references cause waits.
    #[serde(default)]
    pub in_order: bool,
}

/// One call of a [`ToolCommand`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedCall {
    /// Id of the call in references: `call-1` and so on.
    pub id: String,
    /// The arguments, which may contain references.
    pub arguments: Map<String, Value>,
}

impl ToolCommand {
    pub(crate) fn format(parameters: &Value) -> OutputFormat {
        let mut format = form(
            "tool_command",
            &[("analysis", "What the step asks for."), ("explanation", "How the calls reach it.")],
        );
        // No `additionalProperties` here: only the tool knows its arguments.
        let call = json!({
            "type": "object",
            "properties": {"id": {"type": "string", "description": "call-1, call-2 and so on."}, "arguments": parameters},
            "required": ["id", "arguments"],
        });
        format.schema["properties"]["calls"] = json!({"type": "array", "items": call});
        format.schema["required"] = json!(["analysis", "explanation", "calls"]);
        format
    }

    /// Parses a command: JSON with `calls`; or Python of the form
    /// `execution = tool.execute(query="..")`, as the JSON field `command`, in a code fence, or as
    /// plain text. The Python is parsed for literals and never executed.
    ///
    /// # Errors
    /// A description of the problem. A command without calls is an error too.
    pub fn read(text: &str) -> Result<Self, Unreadable> {
        let json = object_with(text, &["calls"]).or_else(|| object_with(text, &["command"]));
        let command = match &json {
            Some(object) => Self {
                analysis: field(object, "analysis"),
                explanation: field(object, "explanation"),
                ..match object.get("calls") {
                    Some(calls) => Self { calls: planned(calls)?, ..Self::default() },
                    None => program(&field(object, "command"))?,
                }
            },
            None => program(text)?,
        };
        match command.calls.len() {
            0 => Err("it has no call".into()),
            n if n > MOST_CALLS => Err(format!("it has {n} calls; {MOST_CALLS} are the most")),
            _ => command.with_unique_ids(),
        }
    }

    /// Validates the arguments without references against the tool's schema, and repairs obvious
    /// deviations. Arguments with references are validated when these are resolved.
    ///
    /// # Errors
    /// A description of all problems.
    pub(crate) fn checked(mut self, schema: &ArgumentSchema) -> Result<Self, Unreadable> {
        let mut problems = Vec::new();
        for call in &mut self.calls {
            let arguments = Value::Object(std::mem::take(&mut call.arguments));
            let read = match references(&arguments).is_empty() {
                true => schema.parse(&arguments.to_string()).value,
                false => arguments,
            };
            if references(&read).is_empty()
                && let Err(e) = schema.check(&read, &[])
            {
                problems.push(format!("{}: {}", call.id, e.message()));
            }
            if let Value::Object(read) = read {
                call.arguments = read;
            }
        }
        if problems.is_empty() { Ok(self) } else { Err(problems.join(" ")) }
    }

    fn with_unique_ids(self) -> Result<Self, Unreadable> {
        for (at, call) in self.calls.iter().enumerate() {
            if call.id.is_empty() || call.id.contains(['#', '/']) {
                return Err(format!("'{}' is no id of a call: write call-1, call-2 and so on", call.id));
            }
            if self.calls[..at].iter().any(|earlier| earlier.id == call.id) {
                return Err(format!("two calls have the id '{}'", call.id));
            }
        }
        Ok(self)
    }
}

/// Parses the calls from a list of objects; a missing id defaults to the call's number.
fn planned(calls: &Value) -> Result<Vec<PlannedCall>, Unreadable> {
    let list = calls.as_array().ok_or("`calls` is no list")?;
    let call = |(n, call): (usize, &Value)| {
        let id = call.get("id").and_then(Value::as_str).map_or_else(|| format!("call-{n}"), str::to_owned);
        match call.get("arguments") {
            Some(Value::Object(arguments)) => Ok(PlannedCall { id, arguments: arguments.clone() }),
            _ => Err(format!("{id} has no object `arguments`")),
        }
    };
    (1..).zip(list).map(call).collect()
}

/// Parses the calls of a program; if there are several code fences, the longest is used.
fn program(text: &str) -> Result<ToolCommand, Unreadable> {
    let fenced = text.split("```").skip(1).step_by(2).map(|code| code.strip_prefix("python").unwrap_or(code));
    let calls = program::calls(fenced.max_by_key(|code| code.len()).unwrap_or(text))?;
    Ok(ToolCommand { calls, in_order: true, ..ToolCommand::default() })
}

#[cfg(test)]
mod tests {
    use agent_core::ToolSpec;

    use super::*;

    #[test]
    fn a_command_is_read_from_json_and_from_literal_python() {
        let json = r#"{"analysis": "a", "explanation": "e", "calls": [{"id": "call-1", "arguments": {"query": "a"}}]}"#;
        let python = r#"{"analysis": "a", "explanation": "e", "command": "execution = tool.execute(query=\"a\")"}"#;
        let fence = "Analysis: a\n```python\n# all of it\nexecution = tool.execute(\n    query=\"a\",\n)\n```";
        for text in [json, python, fence, "execution = tool.execute(query='a')"] {
            let command = ToolCommand::read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(command.calls.len(), 1);
            assert_eq!(json!(command.calls[0]), json!({"id": "call-1", "arguments": {"query": "a"}}), "{text}");
        }
    }

    #[test]
    fn what_is_no_plan_of_calls_is_refused() {
        for (text, problem) in [
            ("import os", "line 1"),
            (r#"{"calls": []}"#, "it has no call"),
            ("I would rather not.", "line 1"),
            ("", "it has no call"),
            (r#"{"calls": [{"arguments": {}}, {"id": "call-1", "arguments": {}}]}"#, "two calls have the id 'call-1'"),
            (r#"{"calls": [{"id": "call-1"}]}"#, "no object `arguments`"),
        ] {
            let e = ToolCommand::read(text).expect_err(text);
            assert!(e.contains(problem), "{text}: {e}");
        }
    }

    #[test]
    fn arguments_are_checked_before_anything_runs_and_references_later() {
        let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let schema = ArgumentSchema::compile(&ToolSpec::new("square", "", parameters)).expect("valid");
        let command = |arguments: &str| {
            let text = format!(r#"{{"calls": [{{"arguments": {arguments}}}]}}"#);
            ToolCommand::read(&text).and_then(|command| command.checked(&schema))
        };
        assert_eq!(json!(command(r#"{"n": "5"}"#).expect("obvious").calls[0].arguments), json!({"n": 5}));
        assert!(command(r#"{"n": {"$ref": "step-1/call-1"}}"#).is_ok());
        assert!(command(r#"{"m": 1}"#).expect_err("wrong").contains("call-1: Invalid arguments for tool 'square'"));
    }
}
