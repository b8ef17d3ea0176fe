//! What clients ask of resources, prompts and completions, as their authors see it.

use std::collections::BTreeMap;

/// Which resource a client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// The resource's URI.
    pub uri: String,
    /// What stands in the URI for the names of the template; nothing for a resource of its own.
    pub values: BTreeMap<String, String>,
}

/// What a client makes a prompt of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptRequest {
    /// The arguments. Those that are required are there.
    pub arguments: BTreeMap<String, String>,
}

/// What a user has typed of an argument of a prompt, or of a name in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// What is there of it.
    pub typed: String,
    /// The other arguments, as far as they are known.
    pub arguments: BTreeMap<String, String>,
}

impl ResourceRequest {
    /// What stands for this name of the template; empty if there is no such name.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }
}

impl PromptRequest {
    /// The argument of this name; empty if it was left out.
    pub fn get(&self, name: &str) -> &str {
        self.arguments.get(name).map_or("", String::as_str)
    }
}
