//! Python stubs of tools, generated from their JSON Schemas for the model.

use std::fmt::Write;

use agent_core::ToolSpec;
use serde_json::Value;

use super::functions::{Function, Param};

/// Maximum nesting depth of described types.
const DEEPEST: usize = 4;

/// Maximum number of bytes of a parameter's described fields; longer descriptions are omitted.
const LONGEST: usize = 600;

/// Returns the signature of a function: its parameters with types and defaults.
pub(super) fn signature(function: &Function, tool: &ToolSpec) -> String {
    let types = Types(&tool.parameters);
    let params = function.params.iter().map(|param| types.param(param));
    let params: Vec<_> = params.chain(function.open.then(|| "**more: Any".to_owned())).collect();
    format!("{}({})", function.name, params.join(", "))
}

/// Returns the stub of a function.
pub(super) fn stub(function: &Function, tool: &ToolSpec) -> String {
    let types = Types(&tool.parameters);
    let none = Value::Bool(true);
    let output = Types(tool.output.as_ref().unwrap_or(&none));
    let mut stub = format!("async def {} -> {}:\n", signature(function, tool), output.kind(output.0, 0));
    let mut told: Vec<String> = tool.description.trim().lines().map(str::to_owned).collect();
    for param in &function.params {
        let schema = &tool.parameters["properties"][&param.field];
        let about = schema["description"].as_str().unwrap_or_default().trim().replace('\n', " ");
        let shape = types.shape(schema, 0).filter(|shape| shape.len() <= LONGEST);
        match (about.is_empty(), shape) {
            (true, None) => {}
            (false, None) => told.push(format!("{}: {about}", param.name)),
            (true, Some(shape)) => told.push(format!("{}: {shape}", param.name)),
            (false, Some(shape)) => told.push(format!("{}: {about} {shape}", param.name)),
        }
    }
    if let Some(shape) = output.shape(output.0, 0).filter(|shape| shape.len() <= LONGEST) {
        told.push(format!("returns: {shape}"));
    }
    if told.is_empty() {
        stub.push_str("    ...\n");
        return stub;
    }
    let quoted = told.join("\n    ").replace("\"\"\"", "'''");
    let end = if told.len() > 1 { "\n    " } else { "" };
    let _ = writeln!(stub, "    \"\"\"{quoted}{end}\"\"\"");
    stub
}

/// The types of a schema; references are resolved in its own definitions.
struct Types<'a>(&'a Value);

impl<'a> Types<'a> {
    fn param(&self, param: &Param) -> String {
        let schema = &self.0["properties"][&param.field];
        let kind = self.kind(schema, 0);
        match (&schema["default"], param.required) {
            (_, true) => format!("{}: {kind}", param.name),
            (Value::Null, false) => format!("{}: {kind} = ...", param.name),
            (default, false) => format!("{}: {kind} = {}", param.name, literal(default)),
        }
    }

    /// Returns the Python type of a schema's values.
    fn kind(&self, schema: &Value, depth: usize) -> String {
        let schema = self.resolved(schema);
        if depth > DEEPEST {
            return "Any".into();
        }
        if let Some(only) = schema.get("const") {
            return format!("Literal[{}]", literal(only));
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return format!("Literal[{}]", values.iter().map(literal).collect::<Vec<_>>().join(", "));
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(kinds) = schema[word].as_array() {
                return union(kinds.iter().map(|kind| self.kind(kind, depth + 1)));
            }
        }
        if let Some(kinds) = schema["type"].as_array() {
            return union(kinds.iter().filter_map(Value::as_str).map(|kind| self.named(kind, schema, depth)));
        }
        schema["type"].as_str().map_or("Any".into(), |kind| self.named(kind, schema, depth))
    }

    fn named(&self, kind: &str, schema: &Value, depth: usize) -> String {
        match kind {
            "string" => "str".into(),
            "integer" => "int".into(),
            "number" => "float".into(),
            "boolean" => "bool".into(),
            "null" => "None".into(),
            "array" => match self.kind(&schema["items"], depth + 1).as_str() {
                "Any" => "list".into(),
                items => format!("list[{items}]"),
            },
            "object" => match &schema["additionalProperties"] {
                Value::Object(_) => format!("dict[str, {}]", self.kind(&schema["additionalProperties"], depth + 1)),
                _ => "dict".into(),
            },
            _ => "Any".into(),
        }
    }

    /// Returns the fields of the objects in a value, if any are known.
    fn shape(&self, schema: &Value, depth: usize) -> Option<String> {
        let schema = self.resolved(schema);
        if depth > DEEPEST {
            return None;
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(kinds) = schema[word].as_array() {
                let shapes: Vec<_> = kinds.iter().filter_map(|kind| self.shape(kind, depth + 1)).collect();
                return (!shapes.is_empty()).then(|| shapes.join(" | "));
            }
        }
        if schema["items"].is_object() {
            return Some(format!("[{}, ...]", self.shape(&schema["items"], depth + 1)?));
        }
        let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty())?;
        let is_required =
            |name: &String| schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
        let fields = properties.iter().map(|(name, field)| {
            let value = self.shape(field, depth + 1).unwrap_or_else(|| self.kind(field, depth + 1));
            format!("{}: {value}{}", literal(&name.as_str().into()), if is_required(name) { "" } else { " (optional)" })
        });
        Some(format!("{{{}}}", fields.collect::<Vec<_>>().join(", ")))
    }

    fn resolved<'b>(&self, schema: &'b Value) -> &'b Value
    where
        'a: 'b,
    {
        let mut schema = schema;
        for _ in 0..DEEPEST {
            let target =
                schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')).map(|path| self.0.pointer(path));
            match target {
                Some(target) => schema = target.unwrap_or(&Value::Null),
                None => break,
            }
        }
        schema
    }
}

fn union(kinds: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for kind in kinds {
        if !all.contains(&kind) {
            all.push(kind);
        }
    }
    if all.is_empty() || all.iter().any(|kind| kind == "Any") { "Any".into() } else { all.join(" | ") }
}

/// Formats a JSON value as a Python literal.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{}: {}", literal(&name.as_str().into()), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::code_mode::functions::functions;

    fn stub_of(name: &str, about: &str, parameters: Value) -> String {
        let tool = ToolSpec::new(name, about, parameters);
        let (function, tool) = functions([&tool]).remove(0);
        stub(&function, tool)
    }

    #[test]
    fn a_stub_has_the_types_the_defaults_and_the_words_of_the_schema() {
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "default": 10},
                "kind": {"enum": ["a", null]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"$ref": "#/$defs/Place"},
                "score": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "extra": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "any": true,
            },
            "required": ["query", "where"],
            "additionalProperties": false,
            "$defs": {"Place": {
                "type": "object",
                "description": "Where.",
                "properties": {"city": {"type": "string"}, "near": {"type": "array", "items": {"$ref": "#/$defs/Place"}}},
                "required": ["city"],
            }},
        });
        let told = stub_of("web-search", "Searches.\nAll of it.", parameters);
        let signature = "async def web_search(query: str, where: dict, any: Any = ..., extra: dict[str, bool] = ..., \
                         kind: Literal[\"a\", None] = ..., limit: int = 10, score: float | None = ..., \
                         tags: list[str] = ...) -> Any:\n";
        let signature = signature.replace("any: Any", "any_: Any");
        assert!(told.starts_with(&signature), "{told}");
        let words =
            "    \"\"\"Searches.\n    All of it.\n    query: What to look for.\n    where: {\"city\": str, \"near\": [";
        assert!(told[signature.len()..].starts_with(words), "{told}");
        assert!(told.ends_with("\n    \"\"\"\n"), "{told}");
    }

    #[test]
    fn a_tool_that_says_what_it_gives_has_a_type_that_it_returns() {
        let place = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let output = json!({"type": "array", "items": {"$ref": "#/$defs/Place"}, "$defs": {"Place": place}});
        let tool = ToolSpec::new("places", "", json!({"properties": {}, "additionalProperties": false}));
        let tool = tool.with_output(Some(output));
        let (function, tool) = functions([&tool]).remove(0);
        let told = "async def places() -> list[dict]:\n    \"\"\"returns: [{\"city\": str}, ...]\"\"\"\n";
        assert_eq!(stub(&function, tool), told);
    }

    #[test]
    fn a_tool_of_which_nothing_is_known_takes_anything() {
        assert_eq!(stub_of("f", "", json!({"type": "object"})), "async def f(**more: Any) -> Any:\n    ...\n");
        let plain = stub_of("f", "Does it.", json!({"properties": {}, "additionalProperties": false}));
        assert_eq!(plain, "async def f() -> Any:\n    \"\"\"Does it.\"\"\"\n");
    }
}
