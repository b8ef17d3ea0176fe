//! The agent of the servers that are measured: it says as many pieces as it is asked for.

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

/// The agent's name.
pub(super) const NAME: &str = "talker";

/// Pieces of one answer: who asks for more gets several.
const OF_ONE: usize = 10_000;

/// Nanoseconds since 1970, for whoever wants to know how long a piece was under way.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Says so many pieces: for `100` with the time at a pace, for `100!` as fast as can be, and none for `wait`.
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
