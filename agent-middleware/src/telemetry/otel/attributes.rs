//! Attributes that several spans share.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, ModelInfo, ModelParams, Usage, budget::Amounts};
use opentelemetry::{Array, KeyValue, StringValue, Value, trace::Status};
use serde_json::Value as Json;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::content::Content;

pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";

pub(super) fn shared(text: &Arc<str>) -> StringValue {
    text.clone().into()
}

pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn list(texts: impl IntoIterator<Item = impl Into<StringValue>>) -> Value {
    Value::Array(Array::String(texts.into_iter().map(Into::into).collect()))
}

/// Returns the provider's name according to the conventions.
pub(super) fn provider(model: Option<&ModelInfo>) -> StringValue {
    match model.map_or("", |model| model.provider.as_str()) {
        "" => "_OTHER".into(),
        "azure" => "azure.ai.openai".into(),
        "bedrock" => "aws.bedrock".into(),
        "gemini" | "google" => "gcp.gemini".into(),
        "vertex" => "gcp.vertex_ai".into(),
        "mistral" => "mistral_ai".into(),
        "moonshot" => "moonshot_ai".into(),
        "xai" => "x_ai".into(),
        other => other.to_owned().into(),
    }
}

/// Sets the request parameters. Provider-specific ones are taken from the extra fields.
pub(super) fn request(span: &Span, params: &ModelParams) {
    let numbers = [
        ("gen_ai.request.temperature", params.temperature),
        ("gen_ai.request.top_p", params.top_p),
        ("gen_ai.request.frequency_penalty", params.extra.get("frequency_penalty").and_then(Json::as_f64)),
        ("gen_ai.request.presence_penalty", params.extra.get("presence_penalty").and_then(Json::as_f64)),
    ];
    let counts = [
        ("gen_ai.request.max_tokens", params.max_tokens.map(number)),
        ("gen_ai.request.seed", params.seed),
        ("gen_ai.request.top_k", params.extra.get("top_k").and_then(Json::as_i64)),
        ("gen_ai.request.choice.count", params.extra.get("n").and_then(Json::as_i64).filter(|n| *n != 1)),
    ];
    for (name, value) in numbers {
        value.into_iter().for_each(|value| span.set_attribute(name, value));
    }
    for (name, value) in counts {
        value.into_iter().for_each(|value| span.set_attribute(name, value));
    }
    if !params.stop.is_empty() {
        span.set_attribute("gen_ai.request.stop_sequences", list(params.stop.iter().cloned()));
    }
    if params.output.is_some() {
        span.set_attribute("gen_ai.output.type", "json");
    }
}

/// Sets the token counts, if any are known, under names with this prefix.
pub(super) fn usage(span: &Span, prefix: &str, usage: &Usage) {
    if usage.calls == 0 {
        return;
    }
    let always = [("input_tokens", usage.prompt()), ("output_tokens", usage.output)];
    let some = [
        ("cache_read.input_tokens", usage.cached),
        ("cache_creation.input_tokens", usage.cache_write),
        ("reasoning.output_tokens", usage.reasoning),
    ];
    for (name, tokens) in always.into_iter().chain(some.into_iter().filter(|(_, tokens)| *tokens > 0)) {
        span.set_attribute(format!("{prefix}.{name}"), number(tokens));
    }
}

/// Sets the amounts of a budget, under names with this prefix. Amounts without a cap are not
/// reserved, and therefore unknown.
pub(super) fn amounts(span: &Span, prefix: &str, amounts: &Amounts) {
    let counted = [("tokens", amounts.tokens), ("cost_micros", amounts.cost)];
    for (name, amount) in counted.into_iter().filter(|(_, amount)| *amount > 0) {
        span.set_attribute(format!("{prefix}.{name}"), number(amount));
    }
}

/// True if an error of this kind is a failure; stops, interruptions and cancellations are not.
pub(super) fn is_failure(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::Interrupted | ErrorKind::Cancelled | ErrorKind::Stopped)
}

/// Returns the class of an error, as one word.
pub(super) fn error_type(kind: ErrorKind) -> String {
    kind.as_str().replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Marks a span as failed, and returns the attribute for the metrics. An error that is not a
/// failure only sets the outcome.
pub(super) fn failure(span: &Span, error: &Error, content: &Content) -> Option<KeyValue> {
    if !is_failure(error.kind()) {
        span.set_attribute("agent.outcome", error_type(error.kind()));
        return None;
    }
    let kind = error_type(error.kind());
    span.set_attribute(ERROR_TYPE, kind.clone());
    span.set_status(Status::error(content.error(error).unwrap_or_else(|| kind.clone())));
    Some(KeyValue::new(ERROR_TYPE, kind))
}
