//! [`TraceContext`]: propagates a trace to and from other processes.

use std::collections::BTreeMap;

use opentelemetry::{
    Context,
    trace::{FutureExt, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Position in a trace, in the format of W3C Trace Context: send it with outgoing requests, and
/// restore it from incoming ones.
///
/// Inside a tool, the current span is that of the tool's call; also in a task that the tool spawns
/// [in its span](tracing::Instrument::in_current_span).
///
/// ```
/// use agent_core::{Result, ToolOutput, ToolRequest};
/// use agent_middleware::telemetry::TraceContext;
/// use serde_json::json;
///
/// /// A tool that calls an MCP server: its spans become part of this trace.
/// async fn call(req: ToolRequest) -> Result<ToolOutput> {
///     let mut params = json!({ "name": req.call.name, "arguments": req.args });
///     if let Some(trace) = TraceContext::current() {
///         params["_meta"] = json!(trace.to_map());
///     }
///     Ok(ToolOutput::value(params)) // in reality: what the server answers
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TraceContext(SpanContext);

impl TraceContext {
    /// Returns the current trace context; `None` outside any span, and if spans are not exported.
    pub fn current() -> Option<Self> {
        let ambient = || Some(Context::current().span().span_context().clone()).filter(SpanContext::is_valid).map(Self);
        Self::of(&Span::current()).or_else(ambient)
    }

    /// Returns the trace context of this span; `None` if spans are not exported.
    pub fn of(span: &Span) -> Option<Self> {
        Some(span.context().span().span_context().clone()).filter(SpanContext::is_valid).map(Self)
    }

    /// Parses the value of a `traceparent` header; `None` if it is invalid.
    pub fn of_header(traceparent: &str) -> Option<Self> {
        Self::from_pairs([(PARENT, traceparent)])
    }

    /// Returns the value of a `traceparent` header.
    pub fn to_header(&self) -> String {
        let (trace, span, flags) = (self.0.trace_id(), self.0.span_id(), self.0.trace_flags().to_u8());
        format!("00-{trace}-{span}-{flags:02x}")
    }

    /// Makes the trace context the parent of `span`, which must not have been entered yet.
    pub fn above(&self, span: &Span) {
        // If spans are not exported, there is no trace to join.
        let _ = span.set_parent(Context::new().with_remote_span_context(self.0.clone()));
    }

    /// Returns the context as headers, or as fields of an MCP request's `_meta`: `traceparent`, and
    /// `tracestate` if there is one.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::from([(PARENT.to_owned(), self.to_header())]);
        let state = self.0.trace_state().header();
        if !state.is_empty() {
            map.insert(STATE.to_owned(), state);
        }
        map
    }

    /// Parses headers, or the fields of an MCP request's `_meta`; names are case-insensitive.
    /// Returns `None` without a valid `traceparent`: the trace then starts here.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let (mut parent, mut state) = (None, TraceState::default());
        for (name, value) in pairs {
            if name.eq_ignore_ascii_case(PARENT) {
                parent = Some(value);
            } else if name.eq_ignore_ascii_case(STATE) {
                state = value.parse().unwrap_or_default();
            }
        }
        let fields: Vec<_> = parent?.trim().split('-').collect();
        let [version, trace, span, flags, rest @ ..] = &fields[..] else { return None };
        let hex = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
        let is_known = *version == "00" && rest.is_empty();
        let is_newer = hex(version, 2) && !version.eq_ignore_ascii_case("ff") && *version != "00";
        if !(is_known || is_newer) || !hex(trace, 32) || !hex(span, 16) || !hex(flags, 2) {
            return None;
        }
        let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
        let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
        let remote = SpanContext::new(trace, span, flags, true, state);
        remote.is_valid().then_some(Self(remote))
    }

    /// Runs `work` as part of the trace: spans created in it become children. An enclosing
    /// `tracing` span takes precedence.
    ///
    /// ```
    /// # async fn example(agent: agent_core::middleware::AgentService, headers: &[(&str, &str)]) -> agent_core::Result<()> {
    /// use agent_core::RunRequest;
    /// use agent_middleware::telemetry::TraceContext;
    ///
    /// let run = agent.run(RunRequest::user("Hello!"));
    /// match TraceContext::from_pairs(headers.iter().copied()) {
    ///     Some(trace) => trace.around(run).await?,
    ///     None => run.await?,
    /// };
    /// # Ok(()) }
    /// ```
    pub async fn around<F: Future>(&self, work: F) -> F::Output {
        work.with_context(Context::current().with_remote_span_context(self.0.clone())).await
    }
}
