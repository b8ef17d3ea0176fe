//! Tool descriptions for prompts.

use agent_core::{Error, Result, ToolSpec};
use agent_tools::ArgumentSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Description of a tool in prompts. Fields that the tool's spec contains are filled in; the others
/// can be added with [`SolverBuilder::describe`](crate::SolverBuilder::describe).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetadata {
    /// Name of the tool.
    pub tool_name: String,
    /// Description of the tool.
    pub tool_description: String,
    /// Version of the tool. Default: `1.0.0`.
    pub tool_version: String,
    /// JSON Schema of the arguments.
    pub input_types: Value,
    /// Output of the tool, as a description or a schema. Default: null (unknown).
    #[serde(default)]
    pub output_type: Value,
    /// Examples of arguments, each with its effect. Default: none.
    #[serde(default)]
    pub demo_commands: Vec<Value>,
    /// Limitations, best practices and similar notes. Default: null.
    #[serde(default)]
    pub user_metadata: Value,
    /// True if the tool calls a model itself. Default: false.
    #[serde(default)]
    pub require_llm_engine: bool,
}

impl ToolMetadata {
    /// Creates the description from a tool's spec.
    pub fn of(spec: &ToolSpec) -> Self {
        Self {
            tool_name: spec.name.clone(),
            tool_description: spec.description.clone(),
            tool_version: "1.0.0".into(),
            input_types: spec.parameters.clone(),
            output_type: Value::Null,
            demo_commands: Vec::new(),
            user_metadata: Value::Null,
            require_llm_engine: false,
        }
    }
}

/// Tools of a solver, by name.
pub(crate) struct Toolbox(Vec<(ToolMetadata, ArgumentSchema)>);

impl Toolbox {
    /// Creates the toolbox from the agent's tools, with the descriptions in `described`.
    pub(crate) fn new(specs: &[ToolSpec], described: Vec<ToolMetadata>) -> Result<Self> {
        let tools = specs.iter().filter(|spec| !spec.is_server_side());
        let tools = tools.map(|spec| Ok((ToolMetadata::of(spec), ArgumentSchema::compile(spec)?)));
        let mut tools = tools.collect::<Result<Vec<_>>>()?;
        tools.sort_by(|(a, _), (b, _)| a.tool_name.cmp(&b.tool_name));
        for metadata in described {
            let Some((known, _)) = tools.iter_mut().find(|(tool, _)| tool.tool_name == metadata.tool_name) else {
                let names: Vec<_> = tools.iter().map(|(tool, _)| tool.tool_name.as_str()).collect();
                let (name, names) = (&metadata.tool_name, names.join(", "));
                return Err(Error::config(format!("tool '{name}' is described and not there; there are: {names}")));
            };
            *known = metadata;
        }
        Ok(Self(tools))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &ToolMetadata> {
        self.0.iter().map(|(metadata, _)| metadata)
    }

    /// Finds the tool that a planner named: case, spaces, underscores, hyphens and quotes around
    /// the name are ignored.
    pub(crate) fn find(&self, written: &str) -> Option<&(ToolMetadata, ArgumentSchema)> {
        let meant = normalised(written);
        let exact = self.0.iter().find(|(tool, _)| tool.tool_name == written.trim());
        exact.or_else(|| self.0.iter().find(|(tool, _)| normalised(&tool.tool_name) == meant))
    }
}

fn normalised(name: &str) -> String {
    let bare = name.trim().trim_matches(['`', '\'', '"', '*', '.']);
    let words = bare.split([' ', '_', '-']).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_found_however_its_name_is_written() {
        let tool = |name: &str| ToolSpec::new(name, "", json!({"type": "object"}));
        let tools = Toolbox::new(&[tool("Web_RAG_Search_Tool"), tool("web")], Vec::new()).expect("valid");
        for written in
            ["web rag__search tool", "`Web_RAG_Search_Tool`", "web-rag-search-tool", " **Web RAG Search Tool**"]
        {
            assert_eq!(tools.find(written).expect(written).0.tool_name, "Web_RAG_Search_Tool");
        }
        assert!(tools.find("Nope").is_none());
        assert!(tools.find("").is_none());
    }
}
