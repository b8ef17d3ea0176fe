//! Agent of the server that is killed: it executes one external effect, and asks a question.

use std::time::Duration;

use agent::{
    Agent, Model, ModelRequest, ModelResponse, Result,
    core::{
        AssistantMessage, Block, Chunk, Effect, Error, Message, ModelInfo, Tool, ToolOptions, ToolOutput, ToolRequest,
        ToolSpec, async_trait,
    },
    tools::AskUser,
};
use serde_json::json;

use super::child::PAUSE;
use crate::kill_test::counter::Counter;

/// Name of the agent.
pub(super) const NAME: &str = "clerk";
/// Number of pieces of each response.
const PIECES: u32 = 15;
/// Time between the external effect and its result, as an opportunity for a kill.
const UNKNOWN: Duration = Duration::from_millis(100);

/// Model that stamps, asks and finishes, by the step of the conversation.
struct Clerk;

#[async_trait]
impl Model for Clerk {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(NAME)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        for _ in 0..PIECES {
            tokio::time::sleep(PAUSE).await;
            req.sink.push(Chunk::Text { index: 0, delta: "so ".into() })?;
        }
        let mut blocks = vec![Block::text("so ".repeat(PIECES as usize))];
        match req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count() {
            0 => blocks.push(Block::tool_call("stamp", "stamp", "{}")),
            1 => {
                let asked = json!({"questions": [{"question": "Shall it go out?"}]});
                blocks.push(Block::tool_call("ask", "ask_user", asked.to_string()));
            }
            _ => {}
        }
        Ok(ModelResponse::new(AssistantMessage::new(blocks)))
    }
}

/// Tool that must not be called twice.
struct Stamp(Counter);

#[async_trait]
impl Tool for Stamp {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("stamp", "Stamps a letter.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::AtMostOnce)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.0.add(&req.idempotency_key()).map_err(|e| Error::tool("the counter failed").with_source(e))?;
        tokio::time::sleep(UNKNOWN).await;
        Ok(ToolOutput::text("stamped"))
    }
}

pub(super) fn agent(counter: Counter) -> Result<Agent> {
    Agent::builder(NAME, Clerk).tool(Stamp(counter)).tool(AskUser::new()).build()
}
