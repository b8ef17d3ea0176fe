//! OpenTelemetry's spans, metrics and events for generative AI.

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

/// The target of everything that goes through `tracing` here.
const TARGET: &str = "agent::telemetry";

/// Spans, metrics and events of runs, model calls and tool calls, by OpenTelemetry's conventions for generative AI.
///
/// | span | kind | lies below |
/// |---|---|---|
/// | `invoke_agent {agent}` | internal | the span that the request names ([`RunRequest::traceparent`](agent_core::RunRequest::traceparent)), or else the caller's; for a sub-agent, the tool call that started it |
/// | `chat {model}` | client | its run |
/// | `execute_tool {tool}` | internal | its run |
/// | `agent_step {number}` | internal | its run, and above its calls, if [`steps`](Self::steps) says so |
///
/// Spans are `tracing` spans of the target `agent::telemetry` and level info. The subscriber is the switch for everything,
/// metrics too: where none wants these spans, a step costs a look at a flag and nothing is allocated. With the layer of
/// `tracing-opentelemetry`, which [`Otlp`](crate::telemetry::Otlp) sets up, they leave the process with their attributes. Metrics go to
/// the meter provider that is the process's when the first span begins. Events are `tracing` events with names.
///
/// Tools run in their spans: what a tool does in spans of its own, a client's request with its headers
/// ([`TraceContext`]) and a sub-agent's run are parts of the trace.
///
/// Tokens stand on `chat` spans alone, so that they can be added up; a run's total, with those of its sub-agents, is under
/// `gen_ai.aggregated_usage`. A run that waits, was paused, cancelled or dropped has not failed: `agent.outcome` says
/// what became of it.
///
/// What other layers decide is told as events of the run's span: a [`Judge`](crate::Judge)'s judgement as
/// `gen_ai.evaluation.result`, a compaction as `agent.compaction`, and retries, failovers, hedges and breaker as
/// `agent.layer.decision`.
///
/// It is an observer: it changes nothing and cannot fail the run.
///
/// # Content
///
/// Prompts, answers, arguments and results are not captured unless [`capture`](Self::capture) says so. What is captured,
/// and every error's text, goes through [`redact`](Self::redact) first and is cut afterwards, so no half of a secret is
/// left. The bytes of images and documents are never captured.
///
/// # Order
///
/// Inside whatever makes a call more than once, so that each attempt has its span, and inside whatever answers in a
/// model's or a tool's place, so that only calls that are made have one. Inside [`Logging`](crate::Logging), whose spans
/// would else stand between a tool and its sub-agents; an agent with the two the other way round is refused.
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
    /// Spans and metrics, without content.
    pub fn new() -> Self {
        TelemetryConfig::default().into()
    }

    /// Sets whether and where content is captured. Default: [`Capture::Off`].
    #[must_use]
    pub fn capture(mut self, capture: Capture) -> Self {
        self.config.capture = capture;
        self.content.capture = capture;
        self
    }

    /// Sets the most bytes of text that one attribute holds. Default: 32 KiB.
    #[must_use]
    pub fn content_bytes(mut self, bytes: usize) -> Self {
        self.config.content_bytes = bytes;
        self.content.bytes = bytes;
        self
    }

    /// Sets the names under which tokens are counted. Default: [`TokenMetrics::Current`].
    #[must_use]
    pub fn token_metrics(mut self, names: TokenMetrics) -> Self {
        self.config.token_metrics = names;
        self
    }

    /// Gives each step of a run a span of its own, with the model call and the tool calls of the step below it. It has the
    /// step's number as `agent.step`, counted from 1, and lasts from its first call until the next step's. Default: no.
    #[must_use]
    pub fn steps(mut self) -> Self {
        self.config.steps = true;
        self
    }

    /// Changes every text before it is captured, error texts too: each text of a message by itself, and each name, text and
    /// number in JSON. A second one gets what the first one left.
    #[must_use]
    pub fn redact(mut self, redact: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        self.content.redact = Some(match self.content.redact {
            Some(first) => Arc::new(move |text| redact(first(text))),
            None => Arc::new(redact),
        });
        self
    }

    /// `model`, whose calls have spans: for models that middlewares call beside the agent's own, such as one that writes
    /// summaries. The agent's own model has them by the middleware, and needs no more.
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

    /// True if an agent above spread one of these over the run: that one has it all.
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

/// True if anybody wants the spans.
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
            // A task that nobody gave a span to is still below the run that started it.
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
