//! The agent of the servers that are measured: it says as many pieces as it is asked for.

use std::{
    convert::Infallible,
    time::{SystemTime, UNIX_EPOCH},
};

use agent::{
    Agent, Message, Model, ModelRequest, ModelResponse, Result, async_trait,
    core::{Chunk, ModelInfo},
};
use tokio::time::{Instant, sleep_until};

use super::child::PAUSE;

/// The agent's name.
pub(super) const NAME: &str = "talker";

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
        let asked = req.messages.last().map(Message::text).unwrap_or_default();
        if asked == "wait" {
            std::future::pending::<Infallible>().await;
        }
        let pieces: usize = asked.trim_end_matches('!').parse().unwrap_or(1);
        let (began, mut answer) = (Instant::now(), String::new());
        for n in 0..pieces {
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
        Ok(ModelResponse::new(answer.as_str()))
    }
}

pub(super) fn agent() -> Result<Agent> {
    Agent::builder(NAME, Talker).build()
}
