//! Helpers of the tests.

pub(crate) mod crew;
pub(crate) mod mortal;
pub(crate) mod release;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent_core::{
    AssistantMessage, Message, Model, ModelInfo, ModelRequest, ModelResponse, Result, Usage, async_trait,
    run::Clock,
    testing::{ScriptedModel, Turn},
};
use agent_exec::Agent;
use agent_team::{Team, TeamBuilder};

/// A clock that follows the paused time of the runtime. Create it within the runtime.
pub(crate) fn clock() -> Clock {
    let began = tokio::time::Instant::now();
    Clock::new(move || -> SystemTime { UNIX_EPOCH + Duration::from_secs(1_000) + began.elapsed() })
}

/// An agent that replies with these turns.
pub(crate) fn scripted(name: &str, turns: impl IntoIterator<Item = Turn>) -> Agent {
    Agent::builder(name, ScriptedModel::new(turns)).build().expect("builds")
}

/// A team with a scripted leader.
pub(crate) fn led_by(turns: impl IntoIterator<Item = Turn>) -> TeamBuilder {
    Team::builder("team").leader(scripted("lead", turns)).clock(clock())
}

/// A model whose answer depends only on the conversation, so that a call may be repeated.
#[derive(Clone)]
pub(crate) struct Thinker(Arc<Think>);

type Think = dyn Fn(&[Message]) -> AssistantMessage + Send + Sync;

impl Thinker {
    pub(crate) fn new(think: impl Fn(&[Message]) -> AssistantMessage + Send + Sync + 'static) -> Self {
        Self(Arc::new(think))
    }
}

#[async_trait]
impl Model for Thinker {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("thinker")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let messages: Vec<_> = req.messages.iter().cloned().collect();
        let message = req.sink.collect((self.0)(&messages))?;
        Ok(ModelResponse::new(message).with_usage(Usage::new(1, 1)))
    }
}
