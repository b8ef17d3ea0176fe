//! Spans, metrics and events according to OpenTelemetry's conventions for generative AI.

mod attributes;
mod chat;
mod config;
mod content;
mod context;
mod metrics;
mod model;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp-tls")]
mod otlp_tls;
mod run;
mod span_events;
mod tool;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use agent_core::{Middleware, Model, PerRun, Placement, Result, RunCx, RunEnd, boxed, engine::SubRuns};
use async_trait::async_trait;
use tracing::{Level, Span};

#[cfg(feature = "otlp")]
pub use self::otlp::{Otlp, OtlpBuilder};
pub use self::{
    config::{Capture, TelemetryConfig, TokenMetrics},
    context::TraceContext,
    model::TracedModel,
};
use self::{content::Content, metrics::Instruments, run::Run, span_events::SpanEvents};
use crate::wrap::wrap;

/// Target of all `tracing` spans and events in this module.
const TARGET: &str = "agent::telemetry";

/// Spans, metrics and events of runs, model calls and tool calls, according to OpenTelemetry's
/// conventions for generative AI.
///
/// | span | kind | parent |
/// |---|---|---|
/// | `invoke_agent {agent}` | internal | the request's [`RunRequest::traceparent`](agent_core::RunRequest::traceparent), otherwise the caller's span; for a sub-agent, the tool call that started it |
/// | `chat {model}` | client | its run |
/// | `execute_tool {tool}` | internal | its run |
/// | `agent_step {number}` | internal | its run; parent of its calls, if [`steps`](Self::steps) is enabled |
///
/// Spans are `tracing` spans with the target `agent::telemetry` and the level info. The subscriber
/// enables everything, including metrics: if it does not want these spans, a step only checks a
/// flag and allocates nothing. With the layer of `tracing-opentelemetry`, which
/// [`Otlp`](crate::telemetry::Otlp) sets up, spans are exported with their attributes. Metrics go
/// to the meter provider that is global when the first span begins. Events are named `tracing`
/// events.
///
/// Tools run in their spans: the tool's own spans, a client's request with its headers
/// ([`TraceContext`]) and a sub-agent's run are part of the trace.
///
/// Token counts are only on `chat` spans, so that they can be summed; a run's total, including its
/// sub-agents, is under `gen_ai.aggregated_usage`. A run that waits, was paused, cancelled or
/// dropped has not failed: `agent.outcome` states its outcome.
///
/// Decisions of other layers become events of the run's span: the judgement of a
/// [`Judge`](crate::Judge) is `gen_ai.evaluation.result`, a compaction is `agent.compaction`, and
/// retries, failovers, hedges and circuit breakers are `agent.layer.decision`.
///
/// It is an observer: it changes nothing and cannot fail the run.
///
/// # Content
///
/// Prompts, responses, arguments and results are captured only if [`capture`](Self::capture)
/// enables it. Captured content, and every error message, is first redacted with
/// [`redact`](Self::redact) and then truncated, so that no partial secret remains. The bytes of
/// images and documents are never captured.
///
/// # Order
///
/// Inside middleware that repeats calls, so that each attempt has its span, and inside middleware
/// that answers instead of a model or tool, so that only calls that are made have one. Inside
/// [`Logging`](crate::Logging), whose spans would otherwise separate a tool from its sub-agents; an
/// agent with the opposite order is refused.
///
/// ```text
/// // right: each attempt has a span with its own error
/// builder.middleware(ToolRetry::new()).middleware(Telemetry::new())
/// // wrong: three attempts look like one slow call
/// builder.middleware(Telemetry::new()).middleware(ToolRetry::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Telemetry, telemetry::Capture};
///
/// let telemetry = Telemetry::new().capture(Capture::Spans).redact(|text| text.replace("hunter2", "[redacted]"));
/// # drop(telemetry);
/// ```
#[derive(Clone, Default)]
pub struct Telemetry {
    config: TelemetryConfig,
    content: Content,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    runs: PerRun<Run>,
    instruments: OnceLock<Arc<Instruments>>,
}

impl Telemetry {
    /// Creates the middleware with its defaults: spans and metrics, without content.
    pub fn new() -> Self {
        TelemetryConfig::default().into()
    }

    /// Sets the destination of captured content. Default: [`Capture::Off`].
    #[must_use]
    pub fn capture(mut self, capture: Capture) -> Self {
        self.config.capture = capture;
        self.content.capture = capture;
        self
    }

    /// Sets the maximum number of bytes of text in one attribute. Default: 32 KiB.
    #[must_use]
    pub fn content_bytes(mut self, bytes: usize) -> Self {
        self.config.content_bytes = bytes;
        self.content.bytes = bytes;
        self
    }

    /// Sets the names of the token metrics. Default: [`TokenMetrics::Current`].
    #[must_use]
    pub fn token_metrics(mut self, names: TokenMetrics) -> Self {
        self.config.token_metrics = names;
        self
    }

    /// Creates a span for each step of a run, as the parent of its model call and tool calls. It
    /// has the step's number as `agent.step`, starting at 1, and lasts from its first call until
    /// the next step's. Default: false.
    #[must_use]
    pub fn steps(mut self) -> Self {
        self.config.steps = true;
        self
    }

    /// Sets a function that redacts every text before it is captured, including error messages:
    /// each text of a message separately, and each name, text and number in JSON. A second function
    /// receives the result of the first.
    #[must_use]
    pub fn redact(mut self, redact: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        self.content.redact = Some(match self.content.redact {
            Some(first) => Arc::new(move |text| redact(first(text))),
            None => Arc::new(redact),
        });
        self
    }

    /// Wraps `model` so that its calls have spans: for models that middlewares call in addition to
    /// the agent's own, such as one that writes summaries. The middleware covers the agent's own
    /// model, which needs no wrapper.
    ///
    /// ```
    /// use agent_core::testing::ScriptedModel;
    /// use agent_middleware::{ContextCompaction, Telemetry};
    ///
    /// # let small = ScriptedModel::new([]);
    /// let telemetry = Telemetry::new();
    /// let compaction = ContextCompaction::builder().model(telemetry.model(small)).build()?;
    /// # drop(compaction);
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn model<M: Model>(&self, model: M) -> TracedModel<M> {
        TracedModel::new(self.clone(), model)
    }

    /// True if a parent agent's telemetry covers the run already.
    fn is_doubled(&self, cx: &RunCx) -> bool {
        let is_other = |m: &Arc<dyn Middleware>| m.name() == self.name() && !std::ptr::addr_eq(Arc::as_ptr(m), self);
        SubRuns::of(cx).inherited().iter().any(is_other)
    }

    fn run(&self, cx: &RunCx) -> Option<Arc<Run>> {
        self.shared.runs.get(cx)
    }

    fn instruments(&self) -> &Arc<Instruments> {
        self.shared.instruments.get_or_init(|| Arc::new(Instruments::new()))
    }
}

/// True if a subscriber wants the spans.
fn is_wanted() -> bool {
    tracing::span_enabled!(target: TARGET, Level::INFO)
}

impl From<TelemetryConfig> for Telemetry {
    fn from(config: TelemetryConfig) -> Self {
        let content = Content { capture: config.capture, bytes: config.content_bytes, redact: None };
        Self { config, content, shared: Arc::default() }
    }
}

#[async_trait]
impl Middleware for Telemetry {
    fn name(&self) -> &str {
        "telemetry"
    }

    fn observer(&self) -> bool {
        true
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("logging").unique()
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        if is_wanted() && !self.is_doubled(cx) {
            // A task without a span still belongs to the run that started it.
            let above = cx.ids().parent_run_id.as_ref().filter(|_| Span::current().is_none());
            let above = above.and_then(|run| self.shared.runs.of_id(run));
            let begin = || Run::begin(cx, above.as_deref(), self.instruments().clone(), self);
            let run = self.shared.runs.of(cx, begin);
            cx.attach(Arc::new(SpanEvents::of(cx, &run, self.content.clone())));
        }
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Some(run) = self.shared.runs.end(cx) {
            run.end(cx, end, &self.content);
        }
        Ok(())
    }

    wrap! {
        wrap_model_call(self, req: ModelRequest, next: ModelNext) -> ModelResponse {
            if is_wanted() && !self.is_doubled(&req.cx) {
                boxed(|| self.chat(req, move |req| next.run(req)))
            } else {
                boxed(|| next.run(req))
            }
        }
    }

    wrap! {
        wrap_tool_call(self, req: ToolRequest, next: ToolNext) -> ToolOutput {
            if is_wanted() && !self.is_doubled(&req.cx) { boxed(|| self.tool(req, next)) } else { boxed(|| next.run(req)) }
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry")
            .field("config", &self.config)
            .field("content", &self.content)
            .field("runs", &self.shared.runs)
            .finish()
    }
}
