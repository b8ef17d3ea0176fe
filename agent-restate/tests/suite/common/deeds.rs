//! Scripted model and configurable tool.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Ask, AssistantMessage, Block, Effect, Key, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Tool,
    ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
};
use serde_json::{Value, json};

/// Model that makes the calls for the number of results since the newest user message, and answers
/// `heard N` at the end.
#[derive(Clone)]
pub(crate) struct Steps(pub(crate) Vec<Call>);

/// Tool call: its id, tool and arguments.
pub(crate) type Call = (&'static str, &'static str, Value);

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let said = req.messages.iter().rev().take_while(|message| !matches!(message, Message::User(_)));
        let step = said.filter(|message| matches!(message, Message::Assistant(_))).count();
        let users = req.messages.iter().filter(|message| matches!(message, Message::User(_))).count();
        let says = match self.0.get(step) {
            Some((id, name, args)) => AssistantMessage::new(vec![Block::tool_call(*id, *name, args.to_string())]),
            None => AssistantMessage::from(format!("heard {users}").as_str()),
        };
        Ok(ModelResponse::new(says).with_usage(Usage::new(1, 1)))
    }
}

const COUNT: Key<i64> = Key::new("count");

/// Tool that counts its calls; its arguments let it ask questions, count in the shared storage,
/// sleep or return large results.
#[derive(Clone, Default)]
pub(crate) struct Deed(pub(crate) Arc<AtomicU32>);

#[async_trait]
impl Tool for Deed {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("deed", "", json!({"type": "object", "additionalProperties": true}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let args = req.args.clone();
        if args["asks"] == true {
            let may: bool = req.ask("may", json!("May I?"))?;
            return Ok(ToolOutput::text(may.to_string()));
        }
        if let Some(choices) = args["chooses"].as_array() {
            let chosen = Ask::new("which", json!("Which?")).schema(json!({"enum": choices}));
            let chosen = req.ask_with(chosen)?.value;
            return Ok(ToolOutput::text(format!("it is {}", chosen.as_str().unwrap_or_default())));
        }
        if args["counts"] == true {
            req.cx.globals().update(&COUNT, |count| count.unwrap_or(0) + 1)?;
        }
        if let Some(ms) = args["sleeps"].as_u64() {
            req.cx.sleep("a while", Duration::from_millis(ms)).await?;
        }
        if let Some(ms) = args["takes"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        let bytes = usize::try_from(args["gives"].as_u64().unwrap_or(4)).expect("fits");
        Ok(ToolOutput::text("x".repeat(bytes)))
    }
}
