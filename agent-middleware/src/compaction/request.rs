//! The tool with which a model requests a compaction.

use std::sync::Arc;

use agent_core::{Effect, Result, RunCx, RunEnd, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::run_value::RunValue;

/// The model's pending request; it survives a pause and a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Wish {
    asked: bool,
    pub(super) focus: Option<String>,
}

const WISH: RunValue<Wish> = RunValue::new("context_compaction", "request");

/// Takes the model's pending request, if there is one.
pub(super) fn take(cx: &RunCx) -> Result<Option<Wish>> {
    let wish = WISH.update(cx, std::mem::take)?;
    Ok(wish.asked.then_some(wish))
}

pub(super) fn end(cx: &RunCx, end: &Result<RunEnd>) {
    WISH.end(cx, end);
}

/// Records the request: the conversation is compacted before the next model call, when the
/// requesting turn is complete.
#[derive(Debug)]
struct CompactContext;

pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(CompactContext)
}

#[derive(Deserialize)]
struct Args {
    focus: Option<String>,
}

#[async_trait]
impl Tool for CompactContext {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {"focus": {"type": "string", "description": "What must not be lost."}},
            "additionalProperties": false,
        });
        let what = "Makes this conversation shorter before your next turn. Call it between tasks, when much of what was \
                    said is no longer needed.";
        ToolSpec::new("compact_context", what, parameters)
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Idempotent)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let Args { focus } = req.parse()?;
        WISH.update(&req.cx, |wish| *wish = Wish { asked: true, focus: focus.clone() })?;
        Ok(ToolOutput::text("The conversation will be made shorter before your next turn."))
    }
}
