//! Span of a tool call.

use std::sync::Arc;

use agent_core::{ErrorKind, Result, ToolNext, ToolOutput, ToolRequest};
use opentelemetry::{KeyValue, trace::Status};
use tokio::time::Instant;
use tracing::{Instrument, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{
    Capture, TARGET, Telemetry,
    attributes::{self, ERROR_TYPE, OPERATION, shared},
    metrics::Instruments,
};

/// A running tool call. If it is dropped before it completes, it was cancelled.
struct Call<'a> {
    telemetry: &'a Telemetry,
    instruments: Arc<Instruments>,
    span: Span,
    labels: Vec<KeyValue>,
    started: Instant,
    done: bool,
}

impl Telemetry {
    /// Makes a tool call in a span.
    pub(super) async fn tool(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let call = Call::begin(self, &req);
        let run = next.run(req).instrument(call.span.clone());
        let result = run.await;
        call.end(&result);
        result
    }
}

impl<'a> Call<'a> {
    fn begin(telemetry: &'a Telemetry, req: &ToolRequest) -> Self {
        let name = &req.call.name;
        let make = || {
            info_span!(
                target: TARGET,
                "execute_tool",
                otel.name = %format_args!("execute_tool {name}"),
                otel.kind = "internal",
                gen_ai.operation.name = "execute_tool",
                gen_ai.tool.name = %name,
            )
        };
        let run = telemetry.run(&req.cx);
        let span = run.as_ref().map_or_else(make, |run| run.current_step(&req.cx).in_scope(make));
        if let Some(run) = run {
            run.runs_tool();
        }
        span.set_attribute("gen_ai.tool.call.id", shared(&req.call.id));
        span.set_attribute("gen_ai.tool.type", "function");
        span.set_attribute("agent.step", i64::from(req.cx.step()));
        if let Some(tool) = &req.tool {
            span.set_attribute("gen_ai.tool.description", tool.description.clone());
        }
        if telemetry.content.capture == Capture::Spans {
            span.set_attribute("gen_ai.tool.call.arguments", telemetry.content.json(&req.args));
        }
        let labels = vec![KeyValue::new(OPERATION, "execute_tool"), KeyValue::new("gen_ai.tool.name", shared(name))];
        let instruments = telemetry.instruments().clone();
        Self { telemetry, instruments, span, labels, started: Instant::now(), done: false }
    }

    fn end(mut self, result: &Result<ToolOutput>) {
        self.done = true;
        let content = &self.telemetry.content;
        let shown = |output: &ToolOutput| (content.capture == Capture::Spans).then(|| content.text(output.to_text()));
        match result {
            Ok(output) => {
                let text = shown(output);
                if output.is_error() {
                    // An error output is a tool failure; its text is content.
                    let kind = attributes::error_type(ErrorKind::Tool);
                    self.span.set_attribute(ERROR_TYPE, kind.clone());
                    self.span.set_status(Status::error(text.clone().unwrap_or_else(|| kind.clone())));
                    self.labels.push(KeyValue::new(ERROR_TYPE, kind));
                }
                text.into_iter().for_each(|text| self.span.set_attribute("gen_ai.tool.call.result", text));
            }
            Err(e) => self.labels.extend(attributes::failure(&self.span, e, content)),
        }
        self.instruments.tool_call(self.started.elapsed(), &self.labels);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.span.set_attribute("agent.outcome", "cancelled");
            self.instruments.tool_call(self.started.elapsed(), &self.labels);
        }
    }
}
