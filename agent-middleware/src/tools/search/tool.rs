//! The tool that finds deferred tools.

use std::sync::Arc;

use agent_core::{Effect, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::{LOADED, ToolSearchConfig, words::Query};

pub(super) struct SearchTool(pub(super) Arc<ToolSearchConfig>);

#[derive(Deserialize)]
struct Args {
    query: String,
    max_results: Option<usize>,
}

#[async_trait]
impl Tool for SearchTool {
    fn spec(&self) -> ToolSpec {
        let most = self.0.max_results;
        let what = "What the tool should do, in a few words. A word with a + before it must be in the tool's name.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": what},
                "max_results": {"type": "integer", "minimum": 1, "description": format!("Most tools to load, up to {most}.")},
            },
            "required": ["query"],
        });
        let about = "Finds tools that are not shown to you yet, and loads those that fit: from then on you can call them. \
                     Search before you say that something cannot be done.";
        ToolSpec::new(self.0.search_tool.as_str(), about, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { query: text, max_results } = req.parse()?;
        let query = Query::read(&text);
        if query.is_empty() {
            return Ok(ToolOutput::text("No tool keywords provided. Say in a few words what the tool should do."));
        }
        let most = max_results.unwrap_or(usize::MAX).min(self.0.max_results);
        let found = query.best(&self.0.deferred(&req.offered), |name| self.0.hints.get(name), most);
        if found.is_empty() {
            let help = "Try other or fewer keywords.";
            return Ok(ToolOutput::text(format!("No tools found matching these keywords: {}. {help}", text.trim())));
        }
        LOADED.update(&req.cx, |loaded| {
            for name in &found {
                if !loaded.iter().any(|known| known == name) {
                    loaded.push((*name).to_owned());
                }
            }
        })?;
        let (count, names) = (found.len(), found.join(", "));
        Ok(ToolOutput::text(format!("Found and loaded {count} tool(s): {names}. Use them directly as tools.")))
    }
}
