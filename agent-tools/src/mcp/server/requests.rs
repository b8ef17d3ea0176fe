//! Requests that the handlers of resources, prompts and completions receive.

use std::collections::BTreeMap;

/// Request to read a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// URI of the resource.
    pub uri: String,
    /// Values of the template's names in the URI; empty for a resource without a template.
    pub values: BTreeMap<String, String>,
}

/// Request for a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptRequest {
    /// Arguments, including all required ones.
    pub arguments: BTreeMap<String, String>,
}

/// Request to complete an argument of a prompt, or a name in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// Text typed so far.
    pub typed: String,
    /// Other arguments that are already known.
    pub arguments: BTreeMap<String, String>,
}

impl ResourceRequest {
    /// Returns the value of a name of the template; empty if the name is unknown.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }
}

impl PromptRequest {
    /// Returns the argument of this name; empty if it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.arguments.get(name).map_or("", String::as_str)
    }
}
