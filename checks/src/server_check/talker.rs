//! Agent of the measured servers: streams as many pieces as requested.

use std::{
    convert::Infallible,
    time::{SystemTime, UNIX_EPOCH},
};

use agent::{
    Agent, Error, Message, Model, ModelRequest, ModelResponse, Result, ToolOutput, async_trait,
    core::{AssistantMessage, Block, Chunk, ModelInfo},
    tools::from_schema,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::child::PAUSE;

/// Name of the agent.
pub(super) const NAME: &str = "talker";

/// Maximum of pieces of one response: a request for more gets several responses.
const OF_ONE: usize = 10_000;

/// Nanoseconds since the Unix epoch, to measure the delay of a piece.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Streams the requested pieces: `100` means 100 timestamps at a steady pace, `100!` 100 pieces as
/// fast as possible; `wait` never responds.
struct Talker;

#[async_trait]
impl Model for Talker {
    fn info(&self) -> ModelInfo {
        ModelInfo::new(NAME)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let (mut asked, mut answers) = (String::new(), 0);
        for message in req.messages.iter() {
            match message {
                Message::User(_) => (asked, answers) = (message.text(), 0),
                Message::Assistant(_) => answers += 1,
                _ => {}
            }
        }
        if asked == "wait" {
            std::future::pending::<Infallible>().await;
        }
        let pieces: usize = asked.trim_end_matches('!').parse().unwrap_or(1);
        let left = pieces.saturating_sub(answers * OF_ONE);
        let (began, mut answer) = (Instant::now(), String::new());
        for n in 0..left.min(OF_ONE) {
            let delta = if asked.ends_with('!') {
                tokio::task::yield_now().await;
                ".".to_owned()
            } else {
                sleep_until(began + PAUSE * u32::try_from(n).unwrap_or(u32::MAX)).await;
                format!("{} ", now())
            };
            answer.push_str(&delta);
            req.sink.push(Chunk::Text { index: 0, delta })?;
        }
        let mut blocks = vec![Block::text(answer)];
        if left > OF_ONE {
            blocks.push(Block::tool_call(answers.to_string(), "go_on", "{}"));
        }
        Ok(ModelResponse::new(AssistantMessage::new(blocks)))
    }
}

pub(super) fn agent() -> Result<Agent> {
    let go_on = |_: Value, _| async { Ok::<_, Error>(ToolOutput::text("Go on.")) };
    let go_on = from_schema("go_on", "Lets it go on.", json!({"type": "object"}), go_on);
    Agent::builder(NAME, Talker).tool(go_on).max_steps(u32::MAX).build()
}
