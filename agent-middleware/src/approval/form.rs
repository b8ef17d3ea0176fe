//! The form of a question: the shown request, and the schema of its answers.

use std::collections::BTreeSet;

use agent_core::{ToolRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{ApprovalConfig, ApprovalRequest, DecisionKind};
#[cfg(feature = "shell")]
use crate::permissions::{Match, covering, fits};

/// Placeholder for a redacted argument.
const HIDDEN: &str = "[redacted]";

/// Returns the request as shown to the deciding person.
pub(super) fn request(config: &ApprovalConfig, req: &ToolRequest, why: String) -> ApprovalRequest {
    let tool = &req.call.name;
    let mut arguments = (*req.args).clone();
    for name in config.hidden(tool) {
        if let Some(value) = arguments.get_mut(name) {
            *value = HIDDEN.into();
        }
    }
    ApprovalRequest {
        call_id: req.call.id.to_string(),
        tool: tool.to_string(),
        description: config.descriptions.get(&**tool).cloned().or_else(|| told(req)),
        arguments,
        prefixes: prefixes(config, req).map(|(_, prefixes)| prefixes).unwrap_or_default(),
        why,
        decisions: config.accepted(),
    }
}

/// Returns the argument that holds the command line of a call, with the prefixes that cover the line.
/// It is one that a rule reads as a command line, or else `command`.
#[cfg(feature = "shell")]
pub(super) fn prefixes(config: &ApprovalConfig, req: &ToolRequest) -> Option<(String, Vec<String>)> {
    let tool = &*req.call.name;
    let rules = config
        .permissions
        .iter()
        .flat_map(|permissions| &permissions.rules)
        .filter(|rule| fits(&rule.tool, tool, None));
    let named = rules.flat_map(|rule| &rule.when).find(|(_, wanted)| matches!(wanted, Match::Command(_)));
    let argument = named.map_or("command", |(argument, _)| argument);
    let line = req.args.get(argument)?.as_str()?;
    let is_hidden = config.hidden(tool).any(|hidden| hidden == argument);
    Some((argument.to_owned(), covering(line).filter(|_| !is_hidden)?))
}

#[cfg(not(feature = "shell"))]
pub(super) fn prefixes(_: &ApprovalConfig, _: &ToolRequest) -> Option<(String, Vec<String>)> {
    None
}

/// Returns the tool's description, as the model sees it.
fn told(req: &ToolRequest) -> Option<String> {
    req.tool.as_ref().map(|spec| spec.description.clone()).filter(|description| !description.is_empty())
}

/// Returns the arguments as edited by a person, with redacted placeholders replaced by the original
/// values.
pub(super) fn edited(config: &ApprovalConfig, req: &ToolRequest, mut arguments: Value) -> Value {
    for name in config.hidden(&req.call.name) {
        if let (Some(value), Some(real)) = (arguments.get_mut(name), req.args.get(name))
            && value == HIDDEN
        {
            *value = real.clone();
        }
    }
    arguments
}

/// Returns the JSON Schema of a [`Decision`](super::Decision) about a call. `place` distinguishes
/// the schemas in one document.
pub(super) fn schema(config: &ApprovalConfig, req: &ToolRequest, place: usize, keeps_rules: bool) -> Value {
    let accepted = config.accepted();
    let scopes: &[&str] = if prefixes(config, req).is_some() { &["call", "prefix", "tool"] } else { &["call", "tool"] };
    let mut remember = Map::from_iter([("remember".to_owned(), json!({"enum": scopes}))]);
    if keeps_rules {
        remember.insert("always".to_owned(), json!({"type": "boolean"}));
    }
    let then = |kind: DecisionKind| match kind {
        DecisionKind::Approve => fields(remember.clone(), &[]),
        DecisionKind::Reject => {
            let reason = ("reason".to_owned(), json!({"type": "string"}));
            fields(remember.clone().into_iter().chain([reason]).collect(), &[])
        }
        DecisionKind::Edit => {
            let arguments = arguments(config, &req.call.name, req.tool.as_deref(), place);
            fields(Map::from_iter([("arguments".to_owned(), arguments)]), &["arguments"])
        }
        DecisionKind::Respond => {
            let content = json!({"type": "string", "minLength": 1});
            fields(Map::from_iter([("content".to_owned(), content)]), &["content"])
        }
    };
    let cases = accepted.iter().map(|kind| {
        let is_kind = json!({"properties": {"decision": {"const": kind}}, "required": ["decision"]});
        json!({"if": is_kind, "then": then(*kind)})
    });
    json!({
        "type": "object",
        "required": ["decision"],
        "properties": {"decision": {"enum": accepted}},
        "allOf": cases.collect::<Vec<_>>(),
    })
}

fn fields(mut properties: Map<String, Value>, required: &[&str]) -> Value {
    properties.insert("decision".to_owned(), true.into());
    json!({"properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of the tool's parameters for editing.
fn arguments(config: &ApprovalConfig, tool: &str, spec: Option<&ToolSpec>, place: usize) -> Value {
    let mut schema = spec.map_or_else(|| json!({"type": "object"}), |spec| spec.parameters.clone());
    let hidden: BTreeSet<&str> = config.hidden(tool).collect();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (_, shape) in properties.iter_mut().filter(|(name, _)| hidden.contains(name.as_str())) {
            *shape = json!({"anyOf": [shape.take(), {"const": HIDDEN}]});
        }
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("minProperties".to_owned(), 1.into());
        // base of its references
        schema.entry("$id").or_insert_with(|| format!("urn:arguments:{place}").into());
    }
    schema
}
