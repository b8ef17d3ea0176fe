//! Worker process: reports each step, and counts external effects.

use std::{
    io::Write,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agent::{
    Agent, Error, Model, ModelRequest, ModelResponse, PostgresJournal, PostgresQueue, Result, Worker,
    core::{
        AssistantMessage, Block, Effect, Message, ModelInfo, Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec,
        async_trait,
    },
};
use serde_json::json;

use crate::kill_test::counter::Counter;

/// Name of the agent.
pub(super) const AGENT: &str = "week";
/// Number of steps of a run that does not wait.
pub(super) const STEPS: usize = 10;
/// Duration of a model call.
pub(super) const MODEL: Duration = Duration::from_millis(20);

/// Works until it receives a shutdown signal; then brings its runs to a safe point.
pub(super) async fn live(dir: &Path, url: &str) -> Result<()> {
    let counter = Counter::open(dir).map_err(|e| Error::config("no counter").with_source(e))?;
    let journal = PostgresJournal::builder(url).connect().await?;
    let agent = Agent::builder(AGENT, Steps).tool(Asks).tool(Does(counter)).store(journal).build()?;
    let queue = PostgresQueue::builder(url).connect().await?;
    let worker = Worker::builder(Arc::new(queue)).agent(agent).at_once(32).build()?;
    worker.run_until(async { drop(agent::shutdown_signal().await) }).await;
    Ok(())
}

/// Microseconds since the Unix epoch.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// Model that reports its calls.
struct Steps;

#[async_trait]
impl Model for Steps {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("steps")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let step = req.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        // A single write, so that the parent reads all of the line or nothing.
        let line = format!("step {} {step} {}\n", req.cx.ids().run_id, now());
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
        let waits = req.messages.iter().next().is_some_and(|message| message.text() == "wait");
        let (tool, steps) = if waits { ("asks", 2) } else { ("does", STEPS) };
        if !waits {
            tokio::time::sleep(MODEL).await;
        }
        let call = || AssistantMessage::new(vec![Block::tool_call(format!("c{step}"), tool, "{}")]);
        Ok(ModelResponse::new(if step + 1 < steps { call() } else { "done".into() }))
    }
}

/// Tool that waits for an answer.
struct Asks;

#[async_trait]
impl Tool for Asks {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("asks", "Asks.", json!({"type": "object"}))
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        let may: bool = req.ask("may", json!("May I?"))?;
        Ok(ToolOutput::text(may.to_string()))
    }
}

/// Tool that must not be repeated.
struct Does(Counter);

#[async_trait]
impl Tool for Does {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("does", "Does something outside.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::AtMostOnce)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.0.add(&req.idempotency_key()).map_err(|e| Error::tool("the counter failed").with_source(e))?;
        Ok(ToolOutput::text("done"))
    }
}
