//! The agent with which a middleware is tested, and the observations made of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use agent_core::{
    AssistantMessage, Block, Effect, Error, ErrorKind, Middleware, Model, ModelInfo, ModelNext, ModelRequest,
    ModelResponse, Result, Retry, RunCx, RunIds, Tool, ToolNext, ToolOptions, ToolOutput, ToolRequest, ToolSpec, Usage,
    async_trait,
};
use serde_json::json;

use super::drive::Driven;
use crate::Agent;

/// The scenario: a model that calls three tools, and then answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    stream: bool,
    models_fail: bool,
    tools_fail: bool,
    asks: bool,
    record: Record,
}

/// Observations of one run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Inputs of the model and the tools, in order.
    pub(super) seen: Vec<String>,
    /// Description of the run's end.
    pub(super) end: String,
}

/// The middlewares, outermost first.
#[derive(Default)]
pub(super) struct Stack(Vec<Arc<dyn Middleware>>);

impl Stack {
    pub(super) fn alone(middleware: Arc<dyn Middleware>) -> Self {
        Self(vec![middleware])
    }

    pub(super) fn between(outer: impl Middleware, middle: Option<Arc<dyn Middleware>>, inner: impl Middleware) -> Self {
        let (outer, inner): (Arc<dyn Middleware>, Arc<dyn Middleware>) = (Arc::new(outer), Arc::new(inner));
        Self([Some(outer), middle, Some(inner)].into_iter().flatten().collect())
    }
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn streaming(mut self) -> Self {
        self.stream = true;
        self
    }

    /// Makes the model, and optionally the tools, fail once with a temporary error; they are
    /// retried outside of the middleware.
    pub(super) fn failing_once(mut self, tools: bool) -> Self {
        (self.models_fail, self.tools_fail) = (true, tools);
        self
    }

    /// Makes a tool ask a person.
    pub(super) fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    pub(super) fn agent(&self, stack: Stack) -> Agent {
        let mut builder = Agent::builder("conformance", self.clone())
            .system("Be exact.")
            .streaming(self.stream)
            .max_steps(12)
            .tools(["look", "fail", "confirm"].map(|name| Arc::new(Prop { name, scene: self.clone() }) as _));
        if self.models_fail {
            builder = builder.middleware(Again);
        }
        builder.middlewares(stack.0).build().expect("the scene is sound with any middleware that can stand alone")
    }

    /// Returns the observations of a run that has ended.
    pub(super) fn outcome(&self, driven: Driven) -> Outcome {
        let end = driven.finished;
        let seen = self.record.lock().seen.remove(&end.ids.run_id).unwrap_or_default();
        let messages: Vec<_> = end.history.iter().collect();
        let (calls, state) = (&end.tool_calls, &end.state);
        let end = format!("{:?} {} {} {messages:?} {calls:?} {state:?}", end.answer, end.reason, end.steps);
        Outcome { seen, end }
    }

    /// Lets aborted tasks end.
    pub(super) async fn settle(&self) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Returns the number of runs that are still referenced.
    pub(super) fn living_runs(&self) -> usize {
        self.record.lock().runs.iter().filter(|run| run.strong_count() > 0).count()
    }

    /// Records an input of the model or of a tool; returns an error if the first attempt is to
    /// fail.
    fn note(&self, cx: &RunCx, what: &str, given: &str) -> Result<()> {
        let mut record = self.record.lock();
        let ids = cx.ids();
        if !record.runs.iter().any(|run| Weak::ptr_eq(run, &Arc::downgrade(ids))) {
            record.runs.push(Arc::downgrade(ids));
        }
        let given = given.replace(&*ids.run_id, "RUN");
        record.seen.entry(ids.run_id.clone()).or_default().push(format!("{what} {given}"));
        let fails = if what == "model" { self.models_fail } else { self.tools_fail };
        if fails && record.failed.insert(format!("{} {} {what}", ids.run_id, cx.step())) {
            let e = Error::new(ErrorKind::Overloaded, "for a moment");
            return Err(e.with_retry(Retry::Temporary(None)));
        }
        Ok(())
    }
}

/// Observations by run.
#[derive(Clone, Debug, Default)]
struct Record(Arc<Mutex<Records>>);

#[derive(Debug, Default)]
struct Records {
    seen: BTreeMap<Arc<str>, Vec<String>>,
    runs: Vec<Weak<RunIds>>,
    failed: BTreeSet<String>,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Scene {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("conformance")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        tokio::task::yield_now().await;
        let given = format!("{:?} {:?} {:?} {:?}", req.system, req.messages, req.tools, req.params);
        self.note(&req.cx, "model", &given)?;
        let spoke = req.messages.iter().filter(|message| message.as_assistant().is_some()).count();
        let message = AssistantMessage::new(match spoke {
            0 => vec![
                Block::reasoning("hm"),
                Block::text("Let me see."),
                Block::tool_call("c1", "look", r#"{"x":1}"#),
                Block::tool_call("c2", "fail", "{}"),
            ],
            1 => vec![Block::tool_call("c3", "confirm", "{}")],
            _ => vec![Block::text("It is 42.")],
        });
        let message = req.sink.collect(message)?;
        tokio::task::yield_now().await;
        Ok(ModelResponse::new(message).with_usage(Usage::new(5, 7)))
    }
}

/// A tool of the scenario.
struct Prop {
    name: &'static str,
    scene: Scene,
}

#[async_trait]
impl Tool for Prop {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "", json!({"type": "object", "properties": {"x": {"type": "integer"}}}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        tokio::task::yield_now().await;
        if self.name == "confirm" && self.scene.asks {
            req.ask::<bool>("conformance", json!({}))?;
        }
        let kept: Vec<_> = req.cx.globals().snapshot().into_keys().collect();
        self.scene.note(&req.cx, self.name, &format!("{:?} {:?} {kept:?}", req.call, req.args))?;
        tokio::task::yield_now().await;
        match self.name {
            "look" => Ok(ToolOutput::value(json!({"n": 42}))),
            "fail" => Err(Error::tool("there is nothing")),
            _ => Ok(ToolOutput::text("confirmed")),
        }
    }
}

/// Retries temporary errors.
struct Again;

#[async_trait]
impl Middleware for Again {
    fn name(&self) -> &str {
        "again"
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        match next.run(req.clone()).await {
            Err(e) if e.kind() == ErrorKind::Overloaded => next.run(req).await,
            result => result,
        }
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        match next.run(req.clone()).await {
            Err(e) if e.kind() == ErrorKind::Overloaded => next.run(req).await,
            result => result,
        }
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|m| m.name())).finish()
    }
}
