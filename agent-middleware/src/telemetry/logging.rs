//! [`Logging`]: logs runs through `tracing`.

use agent_core::{
    Middleware, ModelNext, ModelRequest, ModelResponse, PerRun, Result, RunCx, RunEnd, ToolNext, ToolOutput,
    ToolRequest, boxed,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::wrap::wrap;

/// Level of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Finest level.
    Trace,
    /// For developers.
    Debug,
    /// For operators.
    #[default]
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
}

/// Configuration of `Logging`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LoggingConfig {
    /// Level of spans and of successful operations; failures are warnings. Default: info.
    pub level: LogLevel,
    /// Number of characters to log of each answer and each tool result; 0 logs none. Default: 0.
    pub content: usize,
    /// Number of characters to log of each tool call's arguments; 0 logs none. Default: 0.
    pub arguments: usize,
}

/// Writes spans and events of runs, model calls and tool calls to `tracing`, with the target
/// `agent`.
///
/// | span | events in it | fields |
/// |---|---|---|
/// | `run` | `run started`, `run ended`, `run failed`; `answer` and `result`, if content is enabled | agent, run, outcome, reason, steps, tokens, ms |
/// | `model_call` | `model answered`, `model call failed` | step, finish, input, cached and output tokens, ms |
/// | `tool_call` | `tool answered`, `tool call failed` | tool, call, error, ms |
///
/// Content and arguments are logged only if enabled. It is an observer: it changes nothing and
/// cannot fail the run. Spans of a sub-agent's run are children of the parent run's spans, if the
/// middleware covers both. A call that a hook answered instead of the model or tool was not made
/// and has no span.
///
/// # Order
///
/// It logs content as the inner middlewares left it. Inside a retry it logs every attempt, outside
/// it the call as a whole.
///
/// ```text
/// // right: secrets are redacted before the content is logged
/// builder.middleware(Logging::new().content(200)).middleware(redactor)
/// // wrong: the logged content is not redacted yet
/// builder.middleware(redactor).middleware(Logging::new().content(200))
/// ```
///
/// # Example
///
/// ```
/// use agent_middleware::{Logging, telemetry::LogLevel};
///
/// let logging = Logging::new().level(LogLevel::Debug).content(120);
/// # drop(logging);
/// ```
#[derive(Debug, Default)]
pub struct Logging {
    config: LoggingConfig,
    runs: PerRun<Run>,
}

#[derive(Debug)]
struct Run {
    span: Span,
    started: Instant,
}

/// `at!(level, event | span | enabled, ..)`: a tracing macro at a level that is only known at run
/// time.
macro_rules! at {
    ($level:expr, $what:ident $(, $($fields:tt)+)?) => {
        match $level {
            LogLevel::Trace => tracing::$what!(target: "agent", tracing::Level::TRACE $(, $($fields)+)?),
            LogLevel::Debug => tracing::$what!(target: "agent", tracing::Level::DEBUG $(, $($fields)+)?),
            LogLevel::Info => tracing::$what!(target: "agent", tracing::Level::INFO $(, $($fields)+)?),
            LogLevel::Warn => tracing::$what!(target: "agent", tracing::Level::WARN $(, $($fields)+)?),
            LogLevel::Error => tracing::$what!(target: "agent", tracing::Level::ERROR $(, $($fields)+)?),
        }
    };
}

impl Logging {
    /// Logs at level info, without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the level of spans and of successful operations; failures are warnings. Default:
    /// [`LogLevel::Info`].
    #[must_use]
    pub fn level(mut self, level: LogLevel) -> Self {
        self.config.level = level;
        self
    }

    /// Logs this many characters of each answer and each tool result. Default: 0.
    #[must_use]
    pub fn content(mut self, characters: usize) -> Self {
        self.config.content = characters;
        self
    }

    /// Logs this many characters of each tool call's arguments. Default: 0.
    #[must_use]
    pub fn arguments(mut self, characters: usize) -> Self {
        self.config.arguments = characters;
        self
    }

    fn run(&self, cx: &RunCx) -> Run {
        let ids = cx.ids();
        let above = ids.parent_run_id.as_ref().and_then(|run| self.runs.of_id(run));
        let make = || at!(self.config.level, span, "run", agent = %ids.path, run = %ids.run_id);
        let span = above.map_or_else(make, |above| above.span.in_scope(make));
        Run { span, started: Instant::now() }
    }

    /// True if a subscriber is interested; failures are logged as warnings.
    fn is_heard(&self) -> bool {
        tracing::enabled!(target: "agent", tracing::Level::WARN) || at!(self.config.level, enabled)
    }

    async fn model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        let run = self.runs.of(&req.cx, || self.run(&req.cx));
        let span = run.span.in_scope(|| at!(self.config.level, span, "model_call", step = req.cx.step()));
        let started = Instant::now();
        let result = next.run(req).instrument(span.clone()).await;
        let ms = milliseconds(started);
        span.in_scope(|| match &result {
            Ok(res) => {
                let (usage, finish) = (&res.usage, &res.finish);
                let (input, cached, output) = (usage.prompt(), usage.cached, usage.output);
                at!(self.config.level, event, ?finish, input, cached, output, ms, "model answered");
            }
            Err(e) => tracing::warn!(target: "agent", error = %e, ms, "model call failed"),
        });
        result
    }

    async fn tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let run = self.runs.of(&req.cx, || self.run(&req.cx));
        let (tool, call) = (&*req.call.name, &*req.call.id);
        let arguments = match self.config.arguments {
            0 => None,
            most => Some(preview(&req.args.to_string(), most)),
        };
        let span = run.span.in_scope(|| at!(self.config.level, span, "tool_call", tool, call, arguments));
        let started = Instant::now();
        let result = next.run(req).instrument(span.clone()).await;
        let ms = milliseconds(started);
        span.in_scope(|| match &result {
            Ok(out) => at!(self.config.level, event, error = out.is_error(), ms, "tool answered"),
            // A tool's error message is meant for the model, so it counts as content, like its
            // results.
            Err(e) => tracing::warn!(target: "agent", error = %e.kind(), ms, "tool call failed"),
        });
        result
    }
}

fn preview(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl From<LoggingConfig> for Logging {
    fn from(config: LoggingConfig) -> Self {
        Self { config, runs: PerRun::default() }
    }
}

#[async_trait]
impl Middleware for Logging {
    fn name(&self) -> &str {
        "logging"
    }

    fn observer(&self) -> bool {
        true
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let run = self.runs.of(cx, || self.run(cx));
        run.span.in_scope(|| at!(self.config.level, event, "run started"));
        Ok(())
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        let Some(run) = self.runs.end(cx) else { return Ok(()) };
        let (steps, tokens, ms) = (cx.step(), cx.tree_usage().total(), milliseconds(run.started));
        run.span.in_scope(|| match end {
            Ok(end) => {
                let reason = match end {
                    RunEnd::Finished(finished) => Some(finished.reason.to_string()),
                    _ => None,
                };
                at!(self.config.level, event, outcome = end.as_str(), reason, steps, tokens, ms, "run ended");
            }
            Err(e) => tracing::warn!(target: "agent", error = %e, steps, tokens, ms, "run failed"),
        });
        Ok(())
    }

    wrap! {
        wrap_model_call(self, req: ModelRequest, next: ModelNext) -> ModelResponse {
            if self.is_heard() { boxed(|| self.model_call(req, next)) } else { boxed(|| next.run(req)) }
        }
    }

    wrap! {
        wrap_tool_call(self, req: ToolRequest, next: ToolNext) -> ToolOutput {
            if self.is_heard() { boxed(|| self.tool_call(req, next)) } else { boxed(|| next.run(req)) }
        }
    }

    async fn after_model(&self, cx: &RunCx, res: &mut ModelResponse) -> Result<()> {
        if self.config.content > 0 {
            let content = preview(&res.message.text(), self.config.content);
            let run = self.runs.of(cx, || self.run(cx));
            run.span.in_scope(|| at!(self.config.level, event, content, "answer"));
        }
        Ok(())
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, out: &mut ToolOutput) -> Result<()> {
        if self.config.content > 0 {
            let (tool, call) = (&*req.call.name, &*req.call.id);
            let content = preview(&out.to_text(), self.config.content);
            let run = self.runs.of(cx, || self.run(cx));
            run.span.in_scope(|| at!(self.config.level, event, tool, call, content, "result"));
        }
        Ok(())
    }
}
