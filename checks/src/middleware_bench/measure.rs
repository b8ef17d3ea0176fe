//! Measured runs with a model and a tool that respond immediately.

use std::{
    alloc::System,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use agent::{
    Agent, AssistantMessage, Block, Middleware, Model, ModelRequest, ModelResponse, Result, Tool, ToolOptions,
    ToolOutput, ToolRequest,
    core::{Effect, Error, ModelInfo, ToolSpec},
};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Model that calls the tool once per step, and records the allocations until each call.
#[derive(Clone)]
pub(crate) struct Instantly {
    steps: usize,
    allocations: Arc<Mutex<Vec<usize>>>,
}

impl Instantly {
    pub(crate) fn new(steps: usize) -> Self {
        Self { steps, allocations: Arc::new(Mutex::new(Vec::with_capacity(steps))) }
    }
}

#[agent::async_trait]
impl Model for Instantly {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("instantly")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let mut marks = self.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        if req.messages.len() <= 1 {
            marks.clear();
        }
        marks.push(ALLOCATOR.stats().allocations);
        Ok(ModelResponse::new(match marks.len() < self.steps {
            true => AssistantMessage::new(vec![Block::tool_call("c", "noop", "{}")]),
            false => AssistantMessage::from("done"),
        }))
    }
}

pub(crate) struct Noop;

#[agent::async_trait]
impl Tool for Noop {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("noop", "Does nothing.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("ok"))
    }
}

/// Middleware that overrides nothing.
pub(crate) struct Idle;
impl Middleware for Idle {}

/// Cost of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) ns: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.0} {:>13.1} {:>10.0}", self.ns, self.allocations, self.bytes)
    }
}

/// Returns the best time, and the allocations of one run, per step.
pub(crate) fn cost(agent: &Agent, steps: usize, batches: usize) -> Result<Cost> {
    let runtime = runtime()?;
    let per = steps as f64;
    runtime.block_on(agent.run("go"))?;
    let mut ns = f64::MAX;
    for _ in 0..batches {
        let start = Instant::now();
        runtime.block_on(agent.run("go"))?;
        ns = ns.min(start.elapsed().as_nanos() as f64 / per);
    }
    let region = Region::new(ALLOCATOR);
    runtime.block_on(agent.run("go"))?;
    let change = region.change();
    Ok(Cost { ns, allocations: change.allocations as f64 / per, bytes: change.bytes_allocated as f64 / per })
}

/// Returns the allocations of an early and a late step in one long run, averaged over 64 steps
/// each.
pub(crate) fn marks(agent: &Agent, model: &Instantly, steps: usize) -> Result<(f64, f64)> {
    if steps < 300 {
        return Err(Error::config("--long must be at least 300"));
    }
    runtime()?.block_on(agent.run("go"))?;
    let marks = model.allocations.lock().unwrap_or_else(PoisonError::into_inner);
    let over = |from: usize| (marks[from + 64] - marks[from]) as f64 / 64.0;
    Ok((over(64), over(steps - 66)))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map_err(|e| Error::config("there is no runtime").with_source(e))
}
