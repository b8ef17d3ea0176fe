//! Tools as functions of a program: their names, and the mapping of arguments.

use std::collections::BTreeSet;

use agent_core::ToolSpec;
use ruff_python_stdlib::{builtins::is_python_builtin, keyword::is_keyword};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Minor version of the Python that programs are written in.
pub(super) const PYTHON: u8 = 14;

/// Reserved words in a program, besides keywords and builtins.
const TAKEN: &[&str] = &["asyncio", "case", "json", "match", "math", "re"];

/// A tool as a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Function {
    /// Name of the function in programs.
    pub(super) name: String,
    pub(super) tool: String,
    pub(super) params: Vec<Param>,
    /// True if it accepts keyword arguments that are not parameters.
    pub(super) open: bool,
}

/// A parameter of a [`Function`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Param {
    /// Name of the parameter in programs.
    pub(super) name: String,
    /// Name of the field in the tool's arguments.
    pub(super) field: String,
    pub(super) required: bool,
    /// True if `None` is a valid value, and does not omit the argument.
    pub(super) nullable: bool,
}

/// Returns the functions of these tools, ordered by the tools' names.
pub(super) fn functions<'a>(tools: impl IntoIterator<Item = &'a ToolSpec>) -> Vec<(Function, &'a ToolSpec)> {
    let mut tools: Vec<_> = tools.into_iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    // A tool whose name is a valid identifier keeps it, whichever tool comes first.
    let mut taken: BTreeSet<String> =
        tools.iter().filter(|tool| identifier(&tool.name) == tool.name).map(|tool| tool.name.clone()).collect();
    let named = tools.into_iter().map(|tool| {
        let name = if taken.contains(&tool.name) { tool.name.clone() } else { unused(&mut taken, &tool.name) };
        (Function::new(name, tool), tool)
    });
    named.collect()
}

impl Function {
    fn new(name: String, tool: &ToolSpec) -> Self {
        let schema = &tool.parameters;
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // Only `required` preserves the order of the schema; a map does not.
        let optional = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
        let mut taken = BTreeSet::new();
        let known = required.iter().copied().filter(|name| properties.contains_key(*name));
        let params = known.chain(optional).map(|field| Param {
            name: unused(&mut taken, field),
            field: field.to_owned(),
            required: required.contains(&field),
            nullable: is_nullable(&properties[field]),
        });
        let params = params.collect();
        let more = &schema["additionalProperties"];
        let open = if more.is_null() { properties.is_empty() } else { *more != Value::Bool(false) };
        Self { name, tool: tool.name.clone(), params, open }
    }

    /// Returns the parameter with this name, in programs or in the tool.
    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name || param.field == name)
    }

    /// Returns the tool's arguments for a call.
    ///
    /// # Errors
    /// The problem with the call, in Python's wording.
    pub(super) fn arguments(&self, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> Result<Value, String> {
        let (name, most) = (&self.name, self.params.len());
        if args.len() > most {
            return Err(format!("{name}() takes {most} positional arguments but {} were given", args.len()));
        }
        let mut given = Map::new();
        for (param, value) in self.params.iter().zip(args) {
            given.insert(param.field.clone(), value);
        }
        for (key, value) in kwargs {
            let field = match self.param(&key) {
                Some(param) => &param.field,
                None if self.open => &key,
                None => {
                    let names: Vec<_> = self.params.iter().map(|param| &*param.name).collect();
                    let names = names.join(", ");
                    return Err(format!("{name}() got an unexpected keyword argument '{key}': it has ({names})"));
                }
            };
            if given.insert(field.clone(), value).is_some() {
                return Err(format!("{name}() got multiple values for argument '{key}'"));
            }
        }
        for param in &self.params {
            if !param.required && !param.nullable && given.get(&param.field).is_some_and(Value::is_null) {
                given.remove(&param.field);
            }
            if param.required && !given.contains_key(&param.field) {
                return Err(format!("{name}() missing a required argument: '{}'", param.name));
            }
        }
        Ok(Value::Object(given))
    }
}

fn is_nullable(schema: &Value) -> bool {
    let any_of = |word: &str| schema[word].as_array().is_some_and(|kinds| kinds.iter().any(is_nullable));
    match &schema["type"] {
        Value::String(kind) => kind == "null",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
        _ => {
            any_of("anyOf")
                || any_of("oneOf")
                || schema["enum"].as_array().is_some_and(|all| all.contains(&Value::Null))
        }
    }
}

/// Returns a unique identifier for a name.
fn unused(taken: &mut BTreeSet<String>, name: &str) -> String {
    let base = identifier(name);
    let numbered = (2..).map(|n| format!("{base}_{n}"));
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// Returns a valid Python identifier for `name`.
fn identifier(name: &str) -> String {
    let mut mended: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if mended.is_empty() || mended.starts_with(|c: char| c.is_ascii_digit()) {
        mended.insert(0, '_');
    }
    if is_keyword(&mended) || is_python_builtin(&mended, PYTHON, false) || TAKEN.contains(&mended.as_str()) {
        mended.push('_');
    }
    mended
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, parameters: Value) -> ToolSpec {
        ToolSpec::new(name, "", parameters)
    }

    #[test]
    fn names_that_are_no_identifiers_are_mended_and_stay_apart() {
        let names = ["web-search", "web_search", "3d", "list", "web.search", "class"];
        let tools = names.map(|name| tool(name, json!({})));
        let named: Vec<_> = functions(&tools).into_iter().map(|(f, _)| (f.tool, f.name)).collect();
        let wanted = [
            ("3d", "_3d"),
            ("class", "class_"),
            ("list", "list_"),
            ("web-search", "web_search_2"),
            ("web.search", "web_search_3"),
            ("web_search", "web_search"),
        ];
        assert_eq!(named, wanted.map(|(tool, name)| (tool.to_owned(), name.to_owned())));
    }

    #[test]
    fn arguments_by_position_come_in_the_order_of_what_is_required_and_then_by_name() {
        let schema = json!({
            "properties": {"a-b": {"type": "integer"}, "z": {"type": "string"}, "c": {"type": ["string", "null"]}},
            "required": ["z"],
        });
        let tool = tool("f", schema);
        let f = functions([&tool]).remove(0).0;
        assert_eq!(f.arguments(vec![json!("x"), json!(1)], Vec::new()), Ok(json!({"z": "x", "a-b": 1})));
        let by_name = |pairs: &[(&str, Value)]| {
            f.arguments(Vec::new(), pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
        };
        assert_eq!(by_name(&[("a_b", json!(2)), ("z", json!(""))]), Ok(json!({"z": "", "a-b": 2})));
        let left_out = by_name(&[("z", json!("")), ("a_b", json!(null)), ("c", json!(null))]);
        assert_eq!(left_out, Ok(json!({"z": "", "c": null})));
        assert_eq!(by_name(&[("c", json!(""))]).expect_err("is refused"), "f() missing a required argument: 'z'");
        let unknown = by_name(&[("z", json!("")), ("y", json!(1))]).expect_err("is refused");
        assert_eq!(unknown, "f() got an unexpected keyword argument 'y': it has (z, a_b, c)");
        let twice = f.arguments(vec![json!("")], vec![("z".into(), json!(""))]).expect_err("is refused");
        assert_eq!(twice, "f() got multiple values for argument 'z'");
        let many = f.arguments(vec![json!(1); 4], Vec::new()).expect_err("is refused");
        assert_eq!(many, "f() takes 3 positional arguments but 4 were given");
    }
}
