//! Span of a run.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use agent_core::{Error, ExitReason, ModelRequest, Result, RunCx, RunEnd};
use opentelemetry::{KeyValue, StringValue};
use tokio::time::Instant;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{
    Capture, TARGET, Telemetry,
    attributes::{self, OPERATION, PROVIDER, shared},
    content::Content,
    context::TraceContext,
    metrics::Instruments,
};

/// A running run. It is dropped with the run, so that the span ends even if the run is no longer
/// polled.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) span: Span,
    /// Current step with its number; `None` if steps have no spans.
    step: Option<Mutex<(u32, Span)>>,
    started: Instant,
    instruments: Arc<Instruments>,
    /// Attributes of the run's metrics.
    labels: Mutex<Vec<KeyValue>>,
    knows_model: AtomicBool,
    model_calls: AtomicU64,
    tool_calls: AtomicU64,
    finish: Mutex<Option<String>>,
    ended: AtomicBool,
}

impl Run {
    /// Begins the run's span inside the current span; for a child run whose task has none, below
    /// `above`.
    pub(super) fn begin(cx: &RunCx, above: Option<&Self>, instruments: Arc<Instruments>, of: &Telemetry) -> Self {
        let content = &of.content;
        let ids = cx.ids();
        let make = || {
            info_span!(
                target: TARGET,
                "invoke_agent",
                otel.name = %format_args!("invoke_agent {}", ids.agent),
                otel.kind = "internal",
                gen_ai.operation.name = "invoke_agent",
                gen_ai.agent.name = %ids.agent,
            )
        };
        let span = above.map_or_else(make, |above| above.span.in_scope(make));
        if let Some(asked) = ids.traceparent.as_deref().and_then(TraceContext::of_header) {
            asked.above(&span);
        }
        span.set_attribute("gen_ai.agent.id", shared(&ids.agent_id));
        span.set_attribute("gen_ai.conversation.id", shared(&ids.session));
        span.set_attribute("agent.run.id", shared(&ids.run_id));
        if let Some(worker) = &ids.worker {
            span.set_attribute("agent.worker", shared(worker));
        }
        if content.capture == Capture::Spans {
            span.set_attribute("gen_ai.input.messages", content.input(&cx.history()));
        }
        let labels =
            vec![KeyValue::new(OPERATION, "invoke_agent"), KeyValue::new("gen_ai.agent.name", shared(&ids.agent))];
        Self {
            span,
            step: of.config.steps.then(|| Mutex::new((0, Span::none()))),
            started: Instant::now(),
            instruments,
            labels: Mutex::new(labels),
            knows_model: AtomicBool::new(false),
            model_calls: AtomicU64::new(0),
            tool_calls: AtomicU64::new(0),
            finish: Mutex::default(),
            ended: AtomicBool::new(false),
        }
    }

    /// Returns the parent span of the current step's calls.
    pub(super) fn current_step(&self, cx: &RunCx) -> Span {
        let Some(step) = &self.step else { return self.span.clone() };
        let (mut step, number) = (step.lock().unwrap_or_else(PoisonError::into_inner), cx.step());
        if step.0 != number || step.1.is_none() {
            end_here(&step.1);
            let make = || {
                info_span!(
                    target: TARGET,
                    "agent_step",
                    otel.name = %format_args!("agent_step {number}"),
                    otel.kind = "internal",
                )
            };
            *step = (number, self.span.in_scope(make));
            step.1.set_attribute("agent.step", i64::from(number));
        }
        step.1.clone()
    }

    /// Records a model call. The attributes of the first request apply to the run.
    pub(super) fn asks(&self, req: &ModelRequest, provider: &StringValue, content: &Content) {
        self.model_calls.fetch_add(1, Ordering::Relaxed);
        if self.knows_model.swap(true, Ordering::Relaxed) {
            return;
        }
        let span = &self.span;
        span.set_attribute(PROVIDER, provider.clone());
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).push(KeyValue::new(PROVIDER, provider.clone()));
        if let Some(model) = &req.model {
            span.set_attribute("gen_ai.request.model", model.name.clone());
        }
        attributes::request(span, &req.params);
        if content.capture == Capture::Spans {
            if let Some(system) = &req.system {
                span.set_attribute("gen_ai.system_instructions", content.instructions(system));
            }
            if !req.tools.is_empty() {
                span.set_attribute("gen_ai.tool.definitions", content.tools(&req.tools));
            }
        }
    }

    /// Records a model response with its finish reason.
    pub(super) fn answered(&self, finish: &str) {
        *self.finish.lock().unwrap_or_else(PoisonError::into_inner) = Some(finish.to_owned());
    }

    /// Records a tool call.
    pub(super) fn runs_tool(&self) {
        self.tool_calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of the run.
    pub(super) fn end(&self, cx: &RunCx, end: &Result<RunEnd>, content: &Content) {
        let span = &self.span;
        span.set_attribute("agent.run.steps", i64::from(cx.step()));
        attributes::usage(span, "gen_ai.aggregated_usage", &cx.tree_usage());
        if !cx.budget().is_unlimited() {
            attributes::amounts(span, "agent.budget.settled", &cx.budget().spent());
        }
        match end {
            Ok(end) => {
                span.set_attribute("agent.outcome", end.as_str());
                if let RunEnd::Finished(finished) = end {
                    span.set_attribute("agent.exit_reason", exit_reason(&finished.reason));
                    if content.capture == Capture::Spans {
                        span.set_attribute("gen_ai.output.messages", content.answer(&finished.answer));
                    }
                }
            }
            Err(e) => self.failed(e, content),
        }
        self.close();
    }

    fn failed(&self, e: &Error, content: &Content) {
        if attributes::is_failure(e.kind()) {
            self.span.set_attribute("agent.outcome", "failed");
        }
        if let Some(error) = attributes::failure(&self.span, e, content) {
            self.labels.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        }
    }

    fn close(&self) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(finish) = self.finish.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.span.set_attribute("gen_ai.response.finish_reasons", attributes::list([finish]));
        }
        let (models, tools) = (self.model_calls.load(Ordering::Relaxed), self.tool_calls.load(Ordering::Relaxed));
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        self.instruments.run(self.started.elapsed(), models, tools, &labels);
        if let Some(step) = &self.step {
            end_here(
                &std::mem::replace(&mut *step.lock().unwrap_or_else(PoisonError::into_inner), (0, Span::none())).1,
            );
        }
        end_here(&self.span);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Relaxed) {
            self.span.set_attribute("agent.outcome", "dropped");
            self.close();
        }
    }
}

/// Enters and leaves the span, since a span ends when it was last left.
fn end_here(span: &Span) {
    span.in_scope(|| {});
}

/// Returns the exit reason without the free text of a tool or an application.
fn exit_reason(reason: &ExitReason) -> String {
    match reason {
        ExitReason::Tool(_) => "tool".to_owned(),
        ExitReason::Stopped(_) => "stopped".to_owned(),
        ExitReason::Other(_) => "other".to_owned(),
        known => known.to_string(),
    }
}
