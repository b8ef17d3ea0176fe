//! Tool descriptions for the system prompt.

use std::fmt::Write;

use agent_core::{ToolChoice, ToolSpec};
use serde_json::Value;

use super::{call::CALLS, read::SEVERAL};

/// Describes the tools, one after the other.
pub(super) fn tools(specs: &[ToolSpec]) -> String {
    let mut out = String::from("# Tools\n\nYou can call these tools and no others.\n");
    for spec in specs {
        let _ = write!(out, "\n## {}\n\n{}\n", spec.name, spec.description.trim());
        parameters(&spec.parameters, &mut out);
    }
    out
}

fn parameters(schema: &Value, out: &mut String) {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let properties = schema["properties"].as_object();
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        out.push_str("\nIt has no parameters.\n");
        return;
    };
    out.push_str("\nParameters:\n");
    for (name, property) in properties {
        let needed = if required.iter().any(|required| *required == name) { "required" } else { "optional" };
        let kind = kind(property);
        let _ = write!(out, "- `{name}` ({}{needed})", kind.map(|kind| kind + ", ").unwrap_or_default());
        if let Some(description) = property["description"].as_str() {
            let _ = write!(out, ": {description}");
        }
        if says_more(property) {
            let _ = write!(out, " JSON Schema: {property}");
        }
        out.push('\n');
    }
    if let Some(definitions) = schema.get("$defs") {
        let _ = writeln!(out, "`$defs` of these schemas: {definitions}");
    }
}

fn kind(property: &Value) -> Option<String> {
    match &property["type"] {
        Value::String(one) => Some(one.clone()),
        Value::Array(many) => Some(many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}

/// Returns true if the property's schema contains more than type and description.
fn says_more(property: &Value) -> bool {
    property.as_object().is_some_and(|fields| fields.keys().any(|name| name != "type" && name != "description"))
}

/// Describes the syntax of calls.
pub(super) fn calling(choice: Option<&ToolChoice>, several: bool) -> String {
    let [call, in_group] = CALLS;
    let body = "<tool_name>NAME OF THE TOOL</tool_name>\n<parameter>\n<NAME OF A PARAMETER>ITS VALUE</NAME OF A PARAMETER>\n\
                </parameter>";
    let mut out =
        format!("\n# How to call a tool\n\nWrite this, and nothing after it:\n\n<{call}>\n{body}\n</{call}>\n");
    if several {
        let _ = write!(
            out,
            "\nTo call several tools at once, write:\n\n<{SEVERAL}>\n<{in_group}>\n{body}\n</{in_group}>\n<{in_group}>\n\
             {body}\n</{in_group}>\n</{SEVERAL}>\n"
        );
    }
    out.push_str(
        "\nText is written as it is, with &lt; for < and &amp; for &. Any other value is written as JSON. Leave out \
         parameters that you do not need. The results come in the next message: never write them yourself.\n",
    );
    match choice {
        Some(ToolChoice::Required) => out.push_str("\nYour answer must be a call.\n"),
        Some(ToolChoice::Tool(name)) => {
            let _ = write!(out, "\nYour answer must be a call of `{name}`.\n");
        }
        _ => {}
    }
    out
}
