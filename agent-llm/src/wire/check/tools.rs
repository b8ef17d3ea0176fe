//! Repair of tools on offer: number, descriptions and schemas.

use std::borrow::Cow;

use agent_core::{Error, ErrorKind, Result, Retry, ToolSpec, model::ToolFinding};
use serde_json::Value;

use super::{Rules, schemas};

/// Description and schema of a tool, as sent to the provider.
pub(in crate::wire) struct ToolText<'a> {
    pub(in crate::wire) description: Cow<'a, str>,
    pub(in crate::wire) parameters: Value,
}

/// Remedy for more tools than the provider accepts.
const FEWER: &str =
    "offer fewer (allow or deny tools of a server by name), or let the model find them with tool_search";

/// Rejects more tools than the provider accepts.
pub(super) fn check_count(specs: &[ToolSpec], rules: &Rules) -> Result<()> {
    match rules.tools.count {
        Some(most) if specs.len() > most => {
            let message = format!("the request offers {} tools, and the provider takes {most}: {FEWER}", specs.len());
            Err(Error::new(ErrorKind::InvalidRequest, message).with_retry(Retry::Permanent))
        }
        _ => Ok(()),
    }
}

/// Lists the rules that these tools violate.
pub(in crate::wire) fn check_tools(specs: &[ToolSpec], rules: &Rules) -> Vec<ToolFinding> {
    let most = rules.tools.count.filter(|most| specs.len() > *most);
    let mut findings: Vec<_> = most.into_iter().map(|most| too_many(specs.len(), most)).collect();
    for spec in specs.iter().filter(|spec| spec.server.is_none()) {
        let schemas = schemas::violated(&spec.parameters, &rules.tools).into_iter().map(|rule| {
            ToolFinding::new(rule.rule, rule.source, rule.remedy).with_repair(rule.repair).with_tool(&spec.name)
        });
        let length = spec.description.chars().count();
        let most = rules.tools.description.filter(|most| length > *most);
        findings.extend(schemas.chain(most.map(|most| too_long(length, most).with_tool(&spec.name))));
    }
    findings
}

fn too_many(tools: usize, most: usize) -> ToolFinding {
    let source = "OpenAI: \"array too long. Expected an array with maximum length 128\" (2025-08)";
    ToolFinding::new(format!("at most {most} tools (there are {tools})"), source, FEWER)
}

fn too_long(length: usize, most: usize) -> ToolFinding {
    let rule = format!("descriptions of at most {most} characters (it has {length})");
    let source = "OpenAI: \"string too long. Expected a string with maximum length 1024\" (2025-06)";
    let repair = "the rest of the description moves into the schema";
    ToolFinding::new(rule, source, "shorten the description").with_repair(repair)
}

/// Returns the tool's description and schema in a form that the provider accepts.
pub(in crate::wire) fn text_of<'a>(spec: &'a ToolSpec, rules: &Rules) -> ToolText<'a> {
    let (mut parameters, choice) = schemas::repaired(&spec.parameters, &rules.tools);
    let mut description = Cow::Borrowed(spec.description.as_str());
    if let Some(choice) = choice {
        let blank = if description.is_empty() { "" } else { "\n" };
        description = format!("{description}{blank}{choice}").into();
    }
    if let Some(most) = rules.tools.description.filter(|most| description.chars().count() > *most) {
        let (kept, rest) = cut(&description, most);
        // The schema's description has no length limit.
        if let Some(fields) = parameters.as_object_mut() {
            let own =
                fields.get("description").and_then(Value::as_str).map(|own| format!("\n{own}")).unwrap_or_default();
            fields.insert("description".into(), format!("(The tool's description goes on:) {rest}{own}").into());
        }
        description = kept.into();
    }
    ToolText { description, parameters }
}

/// Splits the text at a word boundary; the first part has at most `most` characters.
fn cut(text: &str, most: usize) -> (String, String) {
    const MORE: &str = " ..";
    let end = text.char_indices().nth(most - MORE.len()).map_or(text.len(), |(at, _)| at);
    let end = text[..end].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(end);
    (format!("{}{MORE}", &text[..end]), text[end..].trim_start().to_owned())
}
