//! Parameters and descriptions of a tool.

use agent_core::ToolSpec;
use agent_retrieval::search::{names, parts};
use serde_json::{Map, Value};

/// Parameters of a tool.
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

    /// Returns the parameter that matches the earliest of `names`, ignoring case and separators:
    /// `startLine` matches `startline`.
    pub(super) fn first_of(&self, names: &[&str]) -> Option<&'a str> {
        let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
        let all = self.properties?;
        names.iter().find_map(|wanted| all.keys().map(String::as_str).find(|name| plain(name) == **wanted))
    }

    /// Returns true if the required parameters are all among `given`.
    pub(super) fn need_only(&self, given: &[&str]) -> bool {
        self.required.iter().all(|name| given.contains(name))
    }

    /// Returns the schema of a parameter.
    pub(super) fn schema(&self, param: &str) -> Option<&'a Value> {
        self.properties?.get(param)
    }

    /// Returns the description of a parameter; empty if it has none.
    pub(super) fn description(&self, param: &str) -> &'a str {
        self.schema(param).and_then(|schema| schema.get("description")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns true if the parameter's description, or else the tool's, contains one of `words`.
    pub(super) fn is_about(&self, param: &str, tool: &ToolSpec, words: &[&str]) -> bool {
        let own = self.description(param);
        let text = format!("{param} {}", if own.is_empty() { &tool.description } else { own }).to_lowercase();
        words.iter().any(|word| text.contains(word))
    }
}

/// Splits a name or a text into lower-case words.
pub(super) fn name_words(name: &str) -> Vec<String> {
    names(name).flat_map(parts).map(str::to_lowercase).collect()
}

pub(super) fn has(list: &[&str], words: &[String]) -> bool {
    words.iter().any(|word| list.contains(&word.as_str()))
}
