//! A middleware that records the hooks that ran.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::{
    cx::RunCx,
    error::Result,
    flow::{Flow, Verdict},
    llm::{Chunk, ModelResponse},
    middleware::{ChunkHook, Middleware, ModelNext, ToolNext},
    model::ModelRequest,
    state::{Exit, RunEnd},
    tool::{ToolBatch, ToolRequest},
    tooling::{ToolOutput, ToolResults},
};

/// Records the hooks that ran, in order, as `name.hook`. Several traces may share one log.
///
/// ```
/// use agent_core::testing::HookTrace;
///
/// let outer = HookTrace::new("outer");
/// let inner = outer.beside("inner");
/// outer.note("model>");
/// inner.note("model>");
/// inner.note("<model");
/// outer.note("<model");
/// outer.assert_order(&["outer.model>", "inner.<model"]);
/// outer.assert_times("inner.model>", 1);
/// outer.assert_nested();
/// ```
#[derive(Clone, Debug)]
pub struct HookTrace {
    name: &'static str,
    log: Arc<Mutex<Vec<String>>>,
}

impl HookTrace {
    /// Creates a trace with a new log.
    pub fn new(name: &'static str) -> Self {
        Self { name, log: Arc::default() }
    }

    /// Creates a trace that shares this log.
    #[must_use]
    pub fn beside(&self, name: &'static str) -> Self {
        Self { name, log: self.log.clone() }
    }

    /// All lines so far, of all traces of this log.
    pub fn seen(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The lines so far that contain `what`.
    pub fn seen_of(&self, what: &str) -> Vec<String> {
        self.seen().into_iter().filter(|line| line.contains(what)).collect()
    }

    /// Asserts that these lines were recorded in this order; other lines may be in between.
    ///
    /// # Panics
    /// If a line is missing, with the whole trace.
    #[track_caller]
    pub fn assert_order(&self, lines: &[&str]) {
        let seen = self.seen();
        let mut rest = seen.iter();
        for line in lines {
            assert!(rest.any(|had| had == line), "'{line}' is not in its place: wanted {lines:#?}, seen {seen:#?}");
        }
    }

    /// Asserts that a line was recorded this number of times.
    ///
    /// # Panics
    /// If it was recorded more or less often, with the whole trace.
    #[track_caller]
    pub fn assert_times(&self, line: &str, times: usize) {
        let seen = self.seen();
        let found = seen.iter().filter(|had| *had == line).count();
        assert_eq!(found, times, "'{line}' was seen {found} times: {seen:#?}");
    }

    /// Asserts that the hooks of all traces of this log were properly nested: each hook that began
    /// inside another ended before it.
    ///
    /// # Panics
    /// If a hook ended out of order, or did not end, with the whole trace.
    #[track_caller]
    pub fn assert_nested(&self) {
        let seen = self.seen();
        let mut open: Vec<(&str, &str)> = Vec::new();
        for line in &seen {
            let (name, hook) = line.rsplit_once('.').unwrap_or(("", line));
            let ends = match hook {
                "model>" | "tool>" => {
                    open.push((name, hook.trim_end_matches('>')));
                    continue;
                }
                "<model" | "<tool" => hook.trim_start_matches('<'),
                _ => continue,
            };
            assert_eq!(open.pop(), Some((name, ends)), "'{line}' is not in its place: {seen:#?}");
        }
        assert!(open.is_empty(), "{open:?} did not end: {seen:#?}");
    }

    /// Records a custom line.
    pub fn note(&self, what: &str) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{}.{what}", self.name));
    }
}

#[cfg_attr(not(doc), async_trait)]
impl Middleware for HookTrace {
    fn name(&self) -> &str {
        self.name
    }

    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        self.note("before_agent");
        Ok(())
    }

    async fn after_agent(&self, _: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        self.note(&format!("after_agent({})", end.as_ref().map_or("failed", RunEnd::as_str)));
        Ok(())
    }

    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        self.note("before_model");
        Ok(Flow::Continue)
    }

    async fn after_model(&self, _: &RunCx, _: &mut ModelResponse) -> Result<()> {
        self.note("after_model");
        Ok(())
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        self.note("model>");
        let result = next.run(req).await;
        self.note("<model");
        result
    }

    fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
        Some(self)
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        self.note("before_tools");
        Ok(())
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        self.note("after_tools");
        Ok(Verdict::Proceed)
    }

    async fn before_tool(&self, _: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        self.note(&format!("before_tool({})", req.call.name));
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, _: &RunCx, req: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        self.note(&format!("after_tool({})", req.call.name));
        Ok(())
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        self.note("tool>");
        let result = next.run(req).await;
        self.note("<tool");
        result
    }

    async fn on_exit(&self, _: &RunCx, exit: &mut Exit) -> Result<Verdict> {
        self.note(&format!("on_exit({})", exit.reason));
        Ok(Verdict::Proceed)
    }
}

impl ChunkHook for HookTrace {
    fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
        self.note("chunk");
        Ok(Some(chunk))
    }
}
