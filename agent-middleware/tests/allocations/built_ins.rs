//! Allocations of built-in middlewares per step: exact on a busy machine too.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{
    AssistantMessage, Block, Budget, Caps, Effect, Middleware, Model, ModelInfo, ModelRequest, ModelResponse, Result,
    Tool, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage, async_trait,
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Approval, ContextCompaction, Events, Limits, Logging, LongToolOutput, PatchToolCalls, Telemetry, ToolRetry,
};
use serde_json::json;

use crate::{ALLOCATOR, alone};

/// Allocations and bytes so far, at each model call.
type Marks = Arc<Mutex<Vec<(usize, usize)>>>;

/// Calls the tool so often, then answers.
struct Rounds {
    rounds: usize,
    marks: Marks,
}

#[async_trait]
impl Model for Rounds {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("rounds").with_context_window(10_000_000)
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let now = ALLOCATOR.stats();
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push((now.allocations, now.bytes_allocated));
        let message = match marks.len() > self.rounds {
            true => AssistantMessage::from("done"),
            false => AssistantMessage::new(vec![Block::tool_call("c", "echo", r#"{"text":"hello"}"#)]),
        };
        let prompt = req.messages.len() as u64 * 10;
        Ok(ModelResponse::new(message).with_usage(Usage::new(prompt, 5)))
    }
}

struct Echo;

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("echo", "Gives back what it is given.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("hello"))
    }
}

/// Overrides nothing: what any middleware costs.
struct Idle;

impl Middleware for Idle {}

/// Allocations and bytes of a whole run, and its marks.
fn run(rounds: usize, with: impl FnOnce(AgentBuilder) -> AgentBuilder) -> ((usize, usize), Vec<(usize, usize)>) {
    let marks = Marks::default();
    marks.lock().expect("lock").reserve(rounds + 1);
    let model = Rounds { rounds, marks: marks.clone() };
    let agent =
        with(Agent::builder("a", model).tool(Echo).max_steps(u32::MAX).entries_kept(64)).build().expect("builds");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let before = ALLOCATOR.stats();
    runtime.block_on(agent.run("go")).expect("finishes");
    let after = ALLOCATOR.stats();
    let used = (after.allocations - before.allocations, after.bytes_allocated - before.bytes_allocated);
    let marks = marks.lock().expect("lock").clone();
    (used, marks)
}

#[test]
fn telemetry_that_nobody_listens_to_allocates_nothing_in_a_step() {
    let _counting = alone();
    // The fewest of several: the harness allocates too, in another thread.
    let fewest = |rounds, with: fn(AgentBuilder) -> AgentBuilder| {
        (0..5).map(|_| run(rounds, with).0.0 as i64).min().expect("five runs")
    };
    let more = |rounds| {
        fewest(rounds, |agent| agent.middleware(Telemetry::new())) - fewest(rounds, |agent| agent.middleware(Idle))
    };
    more(10); // what is only made once
    let (short, long) = (more(10), more(200));
    assert_eq!(short, long, "it costs a run something, and its steps nothing");
    assert!((0..=2).contains(&short), "{short} for its two hooks around the run");
}

/// The ten that most agents have, none of which has anything to do.
fn usual(agent: AgentBuilder) -> AgentBuilder {
    agent
        .budget(Budget::new(Caps::default().tokens(u64::MAX / 4).model_calls(u64::MAX / 4)))
        .middleware(PatchToolCalls::new())
        .middleware(Events::new())
        .middleware(Logging::new())
        .middleware(Limits::new().model_calls(100_000).tool_calls(100_000))
        .middleware(ContextCompaction::new())
        .middleware(LongToolOutput::new())
        .middleware(Approval::new().ask("send_mail"))
        .middleware(ToolRetry::new())
        .middleware(Telemetry::new())
}

#[test]
fn the_allocations_of_a_step_with_ten_built_ins_do_not_grow_with_the_history() {
    let _counting = alone();
    run(5, usual); // what is only made once
    let (_, marks) = run(1100, usual);
    // Over 64 steps, so that what happens every some steps, such as a list that grows, is in each of them.
    let over = |from: usize| {
        let ((allocations, bytes), (then, bytes_then)) = (marks[from + 64], marks[from]);
        ((allocations - then) as f64 / 64.0, (bytes - bytes_then) as f64 / 64.0)
    };
    let (early, late) = (over(100), over(1000));
    println!("a step around 100: {early:?}, around 1000: {late:?}");
    // A history's tree grows a level higher now and then: a step that appends copies one node more.
    assert!(late.0 <= early.0 + 1.0, "allocations: {} around step 100, {} around step 1000", early.0, late.0);
    // Lists that double make some difference in bytes, and are paid for once.
    assert!(late.1 <= early.1 * 1.5, "bytes: {} around step 100, {} around step 1000", early.1, late.1);
}
