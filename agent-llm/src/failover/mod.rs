//! Failover to another model: [`Failover`].

mod builder;
mod course;
mod rules;
mod sticky;

use std::{fmt, sync::Arc};

use agent_core::{
    EventKind, Model, ModelInfo, ModelRequest, ModelResponse, Result, ToolSpec, async_trait,
    model::{Spoken, ToolFinding},
};

pub use self::{builder::FailoverBuilder, sticky::Sticky};
use self::{course::Course, rules::Rules, sticky::Memory};
use crate::attempt::unless_cancelled;

/// A model composed of several, in order of preference: when one fails, the next is called.
///
/// The models may use any providers and wires. Each receives the original request, with all tools
/// and parameters, and its codec encodes the conversation in its own protocol: turns of another
/// provider by their content, never by their raw JSON. Parameters for a single provider
/// (`ModelParams::extra`) reach all of them; see [below](#each-model-its-own) to keep them from the
/// others.
///
/// # Default
///
/// Errors that another model may avoid move on: rate limits, overload, an exhausted quota, rejected
/// credentials, timeouts, broken connections, truncated or malformed answers and the provider's
/// internal errors. A conversation that is too long moves on to the next model whose context window
/// is not known to be equally small. Invalid requests and content-filtered answers do not move on.
/// Each call begins with the first model again.
///
/// # Notes
///
/// * Each move emits an [`EventKind::Failover`].
/// * If chunks of the failed model were sent, a [`Chunk::Restart`](agent_core::Chunk::Restart)
///   precedes the next model's chunks.
/// * When no model is left, the last error is returned. Its context `attempts` lists the error of
///   each model, and it is [retryable](agent_core::Retry) if retrying may help with any of them,
///   after the longest delay that one asked for.
/// * [`ModelResponse::model`] names the model that answered.
/// * A cancelled run calls no further model.
///
/// `Failover` is a model rather than a layer: a layer around the agent's model call could only fall
/// back to calls that the journal and the budget do not see. Here a call with all its moves is one
/// call of the run.
///
/// # Order
///
/// ```text
/// // right: a temporary failure of `a` is retried with `a`; after its last attempt, `b` is called
/// Failover::builder(LayeredModel::new(a, RetryLayer::new().retries(1))).fallback(b)
/// // usually wrong: each temporary failure changes the model; while `a` is down each attempt tries it
/// LayeredModel::new(Failover::builder(a).fallback(b).build()?, RetryLayer::new())
/// ```
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::{Error, ErrorKind, History, Message, Model, ModelRequest, testing::detached_run};
/// use agent_llm::{Failover, ScriptedModel, Turn, failover::Sticky};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let primary = ScriptedModel::new([Turn::error(|| Error::new(ErrorKind::Overloaded, "busy"))]);
/// let model = Failover::builder(primary)
///     .fallback(ScriptedModel::new([Turn::text("42")]))
///     .sticky(Sticky::For(Duration::from_secs(60)))
///     .build()?;
/// let run = detached_run(History::from_messages([Message::user("What is 6 x 7?")])?);
/// let response = model.call(ModelRequest::new(run.cx().clone())).await?;
/// assert_eq!(response.message.text(), "42");
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("answers");
/// ```
///
/// # Each model its own
///
/// [`LayeredModel`](crate::LayeredModel) wraps one model in layers; one of tower's own changes its
/// requests:
///
/// ```
/// use std::sync::Arc;
///
/// use agent_core::ModelRequest;
/// use agent_llm::{Failover, LayeredModel, model};
/// use tower::util::MapRequestLayer;
///
/// let hosted = model("openai:gpt-5").api_key("sk-..").retries(0).build()?;
/// let local = model("ollama:llama3.2").build()?;
/// let plain = MapRequestLayer::new(|mut req: ModelRequest| {
///     Arc::make_mut(&mut req.params).extra.clear();
///     req
/// });
/// let model = Failover::builder(hosted).fallback(LayeredModel::new(local, plain)).build()?;
/// # Ok::<(), agent_core::Error>(())
/// ```
pub struct Failover {
    candidates: Vec<Candidate>,
    rules: Rules,
    memory: Memory,
    info: ModelInfo,
}

/// One of the models, with the known facts about it.
struct Candidate {
    model: Arc<dyn Model>,
    label: String,
    window: Option<u64>,
}

impl Failover {
    /// Returns a builder that starts with the preferred model.
    pub fn builder(primary: impl Model) -> FailoverBuilder {
        FailoverBuilder::new(Arc::new(primary))
    }
}

#[async_trait]
impl Model for Failover {
    /// Returns the first model's name and provider with the smallest of the known windows and
    /// output limits, and tools and schemas only if all models support them; or the info set with
    /// [`FailoverBuilder::info`].
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let spoken = Spoken::default();
        let mut course = Course::new(&self.candidates, self.memory.first(&req.cx));
        loop {
            let asked = course.now();
            let error = match asked.model.call(spoken.listen(req.clone())).await {
                Ok(response) => {
                    self.memory.keep(&req.cx, &course);
                    return Ok(response);
                }
                Err(error) => error,
            };
            let Some(next) = course.advance(&error, &self.rules) else { return Err(course.explain(error)) };
            let error = unless_cancelled(Some(&req.cx), error)?;
            let (from, to) = (asked.label.clone(), next.label.clone());
            req.cx.emit(EventKind::Failover { from, to, kind: error.kind(), error: error.to_string() });
            spoken.take_back(&req.sink)?;
        }
    }

    fn check_tools(&self, tools: &[ToolSpec]) -> Vec<ToolFinding> {
        self.candidates.iter().flat_map(|candidate| candidate.model.check_tools(tools)).collect()
    }

    async fn warm_up(&self) -> Result<()> {
        for candidate in &self.candidates {
            candidate.model.warm_up().await?;
        }
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        let mut closed = Ok(());
        for candidate in &self.candidates {
            closed = closed.and(candidate.model.close().await);
        }
        closed
    }
}

impl fmt::Debug for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.candidates.iter().map(|c| &c.label).collect();
        f.debug_struct("Failover").field("models", &models).field("rules", &self.rules).finish_non_exhaustive()
    }
}
