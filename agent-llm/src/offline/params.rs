//! The parameters of a tool, and the words that it is described with.

use agent_core::{
    ToolSpec,
    search::{names, parts},
};
use serde_json::{Map, Value};

/// The parameters of a tool.
pub(super) struct Params<'a> {
    properties: Option<&'a Map<String, Value>>,
    required: Vec<&'a str>,
}

impl<'a> Params<'a> {
    pub(super) fn of(tool: &'a ToolSpec) -> Self {
        let required = tool.parameters.get("required").and_then(Value::as_array);
        Self {
            properties: tool.parameters.get("properties").and_then(Value::as_object),
            required: required.into_iter().flatten().filter_map(Value::as_str).collect(),
        }
    }

    /// The parameter whose name is the earliest of `names`, however it is spelt: `startLine` is `startline`.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<&'a str> {
        let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
        let all = self.properties?;
        names.iter().find_map(|wanted| all.keys().map(String::as_str).find(|name| plain(name) == **wanted))
    }

    /// True if a call that gives only these is complete.
    pub(super) fn need_only(&self, given: &[&str]) -> bool {
        self.required.iter().all(|name| given.contains(name))
    }

    /// The schema of a parameter.
    pub(super) fn schema(&self, param: &str) -> Option<&'a Value> {
        self.properties?.get(param)
    }

    /// The description of a parameter; empty if it has none.
    pub(super) fn description(&self, param: &str) -> &'a str {
        self.schema(param).and_then(|schema| schema.get("description")).and_then(Value::as_str).unwrap_or_default()
    }

    /// True if the parameter's description, or the tool's where it has none, has one of `words`.
    pub(super) fn is_about(&self, param: &str, tool: &ToolSpec, words: &[&str]) -> bool {
        let own = self.description(param);
        let text = format!("{param} {}", if own.is_empty() { &tool.description } else { own }).to_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

/// The words of a name or a text, in lower case.
pub(super) fn name_words(name: &str) -> Vec<String> {
    names(name).flat_map(parts).map(str::to_lowercase).collect()
}

pub(super) fn has(list: &[&str], words: &[String]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}
