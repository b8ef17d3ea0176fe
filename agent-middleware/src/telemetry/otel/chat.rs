//! Span of a model call.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{Chunk, Error, ModelRequest, ModelResponse, Result};
use opentelemetry::KeyValue;
use tokio::time::Instant;
use tracing::{Instrument, Level, Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{
    Capture, TARGET, Telemetry,
    attributes::{self, OPERATION, PROVIDER, list, number, shared},
    content::finish_reason,
    metrics::Instruments,
    run::Run,
};

/// A running model call. If it is dropped before it completes, it was cancelled.
struct Chat<'a> {
    telemetry: &'a Telemetry,
    instruments: Arc<Instruments>,
    run: Option<Arc<Run>>,
    span: Span,
    labels: Vec<KeyValue>,
    started: Instant,
    heard: Option<Arc<Heard>>,
    /// Content of the request, for an event.
    asked: Vec<(&'static str, String)>,
    done: bool,
}

/// Times at which the chunks of a streamed response arrived.
struct Heard {
    instruments: Arc<Instruments>,
    labels: Vec<KeyValue>,
    started: Instant,
    times: Mutex<Option<(Instant, Instant)>>,
}

impl Telemetry {
    /// Makes a model call in a span.
    pub(super) async fn chat<F>(
        &self,
        mut req: ModelRequest,
        call: impl FnOnce(ModelRequest) -> F,
    ) -> Result<ModelResponse>
    where
        F: Future<Output = Result<ModelResponse>>,
    {
        let chat = Chat::begin(self, &mut req);
        let call = call(req).instrument(chat.span.clone());
        let result = call.await;
        chat.end(&result);
        result
    }
}

impl<'a> Chat<'a> {
    fn begin(telemetry: &'a Telemetry, req: &mut ModelRequest) -> Self {
        let ids = req.cx.ids();
        let run = telemetry.run(&req.cx);
        let provider = attributes::provider(req.model.as_deref());
        let model = req.model.as_ref().map_or("", |model| model.name.as_str());
        let make = || {
            info_span!(
                target: TARGET,
                "chat",
                otel.name = format!("chat {model}").trim_end(),
                otel.kind = "client",
                gen_ai.operation.name = "chat",
                gen_ai.provider.name = provider.as_str(),
                gen_ai.request.model = (!model.is_empty()).then_some(model),
            )
        };
        let span = run.as_ref().map_or_else(make, |run| run.current_step(&req.cx).in_scope(make));
        span.set_attribute("gen_ai.conversation.id", shared(&ids.session));
        span.set_attribute("agent.step", i64::from(req.cx.step()));
        attributes::request(&span, &req.params);
        let budget = req.cx.budget();
        if !budget.is_unlimited()
            && let Ok(most) = budget.estimate(req)
        {
            attributes::amounts(&span, "agent.budget.reserved", &most);
        }
        let mut labels = vec![KeyValue::new(OPERATION, "chat"), KeyValue::new(PROVIDER, provider.clone())];
        if !model.is_empty() {
            labels.push(KeyValue::new("gen_ai.request.model", model.to_owned()));
        }
        if let Some(run) = &run {
            run.asks(req, &provider, &telemetry.content);
        }
        let mut chat = Self {
            telemetry,
            instruments: telemetry.instruments().clone(),
            run,
            span,
            labels,
            started: Instant::now(),
            heard: None,
            asked: Vec::new(),
            done: false,
        };
        chat.capture_request(req);
        if req.stream {
            chat.listen(req);
        }
        chat
    }

    fn capture_request(&mut self, req: &ModelRequest) {
        let content = &self.telemetry.content;
        if content.capture == Capture::Off || (content.capture == Capture::Events && !details_are_wanted()) {
            return;
        }
        let mut asked = vec![("gen_ai.input.messages", content.input(&req.messages))];
        asked.extend(req.system.iter().map(|system| ("gen_ai.system_instructions", content.instructions(system))));
        asked.extend((!req.tools.is_empty()).then(|| ("gen_ai.tool.definitions", content.tools(&req.tools))));
        match content.capture {
            Capture::Spans => asked.into_iter().for_each(|(name, text)| self.span.set_attribute(name, text)),
            _ => self.asked = asked,
        }
    }

    fn listen(&mut self, req: &mut ModelRequest) {
        self.span.set_attribute("gen_ai.request.stream", true);
        let heard = Arc::new(Heard {
            instruments: self.instruments.clone(),
            labels: self.labels.clone(),
            started: self.started,
            times: Mutex::default(),
        });
        self.heard = Some(heard.clone());
        req.sink = req.sink.with_observer(move |chunk| heard.hear(chunk));
    }

    fn end(mut self, result: &Result<ModelResponse>) {
        self.done = true;
        match result {
            Ok(response) => self.answered(response),
            Err(e) => self.failed(e),
        }
        self.close();
    }

    fn answered(&mut self, response: &ModelResponse) {
        let (span, finish) = (&self.span, finish_reason(&response.finish).to_owned());
        if let Some(run) = &self.run {
            run.answered(&finish);
        }
        span.set_attribute("gen_ai.response.finish_reasons", list([finish]));
        if let Some(id) = &response.id {
            span.set_attribute("gen_ai.response.id", id.clone());
        }
        if let Some(model) = &response.model {
            span.set_attribute("gen_ai.response.model", model.clone());
            self.labels.push(KeyValue::new("gen_ai.response.model", model.clone()));
        }
        attributes::usage(span, "gen_ai.usage", &response.usage);
        self.instruments.usage(&response.usage, self.telemetry.config.token_metrics, &self.labels);
        let content = &self.telemetry.content;
        match content.capture {
            Capture::Off => {}
            Capture::Spans => {
                let said = content.output(&response.message, &response.finish);
                self.span.set_attribute("gen_ai.output.messages", said);
            }
            Capture::Events => self.details(response),
        }
    }

    /// Emits the event with the content of the call.
    fn details(&self, response: &ModelResponse) {
        if !details_are_wanted() {
            return;
        }
        let said = self.telemetry.content.output(&response.message, &response.finish);
        let asked = |name| self.asked.iter().find(|(n, _)| *n == name).map(|(_, text)| text.as_str());
        let label = |name| self.labels.iter().find(|kv| kv.key.as_str() == name).map(|kv| kv.value.to_string());
        let usage = Some(&response.usage).filter(|usage| usage.calls > 0);
        self.span.in_scope(|| {
            tracing::event!(
                name: "gen_ai.client.inference.operation.details",
                target: TARGET,
                // linked to the span by its ids, not an event inside it: the content belongs only
                // here
                parent: None,
                Level::DEBUG,
                gen_ai.operation.name = "chat",
                gen_ai.provider.name = label(PROVIDER),
                gen_ai.request.model = label("gen_ai.request.model"),
                gen_ai.response.model = response.model.as_deref(),
                gen_ai.response.id = response.id.as_deref(),
                gen_ai.response.finish_reasons = finish_reason(&response.finish),
                gen_ai.usage.input_tokens = usage.map(|usage| number(usage.prompt())),
                gen_ai.usage.output_tokens = usage.map(|usage| number(usage.output)),
                gen_ai.system_instructions = asked("gen_ai.system_instructions"),
                gen_ai.tool.definitions = asked("gen_ai.tool.definitions"),
                gen_ai.input.messages = asked("gen_ai.input.messages"),
                gen_ai.output.messages = said,
            );
        });
    }

    fn failed(&mut self, e: &Error) {
        let Some(error) = attributes::failure(&self.span, e, &self.telemetry.content) else { return };
        let (kind, message) = (error.value.to_string(), self.telemetry.content.error(e));
        self.labels.push(error);
        self.instruments.failed(self.telemetry.config.token_metrics, &self.labels);
        self.span.in_scope(|| {
            tracing::event!(
                name: "gen_ai.client.operation.exception",
                target: TARGET,
                parent: None,
                Level::WARN,
                exception.r#type = kind,
                exception.message = message,
            );
        });
    }

    fn close(&self) {
        if let Some(after) = self.heard.as_ref().and_then(|heard| heard.first()) {
            self.span.set_attribute("gen_ai.response.time_to_first_chunk", after);
        }
        self.instruments.model_call(self.started.elapsed(), &self.labels);
    }
}

impl Drop for Chat<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.span.set_attribute("agent.outcome", "cancelled");
            self.close();
        }
    }
}

impl Heard {
    fn hear(&self, chunk: &Chunk) {
        if matches!(chunk, Chunk::Restart) {
            return;
        }
        let now = Instant::now();
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *times {
            None => {
                *times = Some((now, now));
                self.instruments.first_chunk(now - self.started, &self.labels);
            }
            Some((_, last)) => {
                self.instruments.output_chunk(now - *last, &self.labels);
                *last = now;
            }
        }
    }

    /// Returns the seconds until the first chunk.
    fn first(&self) -> Option<f64> {
        let times = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.map(|(first, _)| (first - self.started).as_secs_f64())
    }
}

fn details_are_wanted() -> bool {
    tracing::event_enabled!(target: TARGET, Level::DEBUG)
}
