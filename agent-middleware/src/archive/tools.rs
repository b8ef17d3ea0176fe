//! The tools with which a model reads an archive.

use std::sync::Arc;

use agent_core::{Effect, Part, Result, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::Archive;

/// Name of the tool that finds texts by words.
pub(crate) const SEARCH_HISTORY: &str = "search_history";
/// Name of the tool that shows a text by its handle.
pub(crate) const READ_ARCHIVED: &str = "read_archived";

/// Maximum number of characters per page.
const PAGE: usize = 4_000;

/// Name of the tool that shows a tool's output by its handle. A separate name, so that different
/// middlewares can offer both kinds of texts.
pub(crate) const READ_OUTPUT: &str = "read_output";

/// Returns the tools for texts that compactions removed.
pub(crate) fn history_tools(archive: &Arc<dyn Archive>) -> Vec<Arc<dyn Tool>> {
    let what = "Shows a message that was shortened in or removed from this conversation.";
    let read = ReadArchived { archive: archive.clone(), name: READ_ARCHIVED, what };
    vec![Arc::new(SearchHistory(archive.clone())), Arc::new(read)]
}

/// Returns the tool for outputs that were too long.
pub(crate) fn output_tool(archive: &Arc<dyn Archive>) -> Arc<dyn Tool> {
    let what = "Shows parts of a tool's output that was too long to be shown whole.";
    Arc::new(ReadArchived { archive: archive.clone(), name: READ_OUTPUT, what })
}

struct SearchHistory(Arc<dyn Archive>);

struct ReadArchived {
    archive: Arc<dyn Archive>,
    name: &'static str,
    what: &'static str,
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Deserialize)]
struct Range {
    handle: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

#[async_trait]
impl Tool for SearchHistory {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words that stood in it."}},
            "required": ["query"],
            "additionalProperties": false,
        });
        ToolSpec::new(SEARCH_HISTORY, "Finds earlier messages that were removed from this conversation.", parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        /// More would fill the conversation that was just compacted.
        const MOST: usize = 8;
        let Query { query } = req.parse()?;
        let hits = self.0.search(&req.cx, &query, MOST).await?;
        if hits.is_empty() {
            return Ok(ToolOutput::text("Nothing was found."));
        }
        let lines = hits.iter().map(|hit| format!("handle \"{}\", from {}: {}", hit.handle, hit.from, hit.excerpt));
        Ok(ToolOutput::text(lines.collect::<Vec<_>>().join("\n\n")))
    }
}

#[async_trait]
impl Tool for ReadArchived {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "The handle that was given with the text."},
                "offset": {"type": "integer", "minimum": 0, "description": "Characters to skip. Default: 0."},
                "limit": {"type": "integer", "minimum": 1, "description": "Most characters. Default and most: 4000."},
            },
            "required": ["handle"],
            "additionalProperties": false,
        });
        ToolSpec::new(self.name, self.what, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Range { handle, offset, limit } = req.parse()?;
        let Some(archived) = self.archive.get(&req.cx, &handle).await? else {
            return Ok(ToolOutput::error(format!("Nothing is archived under the handle \"{handle}\".")));
        };
        let total = archived.text.chars().count();
        if offset >= total {
            return Ok(ToolOutput::error(format!(
                "The text has {total} characters: the offset {offset} is behind its end."
            )));
        }
        let page: String = archived.text.chars().skip(offset).take(limit.unwrap_or(PAGE).min(PAGE)).collect();
        let end = offset + page.chars().count();
        let rest = if end < total { format!("; offset {end} shows more") } else { String::new() };
        let page = Part::text(format!("[Characters {offset} to {end} of {total}{rest}]\n{page}"));
        let media = archived.media.into_iter().filter(|_| offset == 0); // only with the first page
        Ok(ToolOutput::parts([page].into_iter().chain(media).collect()))
    }
}
