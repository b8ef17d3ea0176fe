//! [`TraceContext`]: a trace that goes on in another process.

use std::collections::BTreeMap;

use opentelemetry::{
    Context,
    trace::{FutureExt, SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// Where a trace stands, in the form that W3C Trace Context gives it: to be sent along with what leaves the process, and
/// taken up from what comes in.
///
/// In a tool, the span under way is that of the tool's call; so it is in a task that the tool spawns
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
    /// Where the trace stands now; `None` outside any span, and where spans are not exported.
    pub fn current() -> Option<Self> {
        let ambient = || Some(Context::current().span().span_context().clone()).filter(SpanContext::is_valid).map(Self);
        Self::of(&Span::current()).or_else(ambient)
    }

    /// Where the trace stands in this span; `None` where spans are not exported.
    pub fn of(span: &Span) -> Option<Self> {
        Some(span.context().span().span_context().clone()).filter(SpanContext::is_valid).map(Self)
    }

    /// From the value of a header `traceparent`; `None` if it cannot be read.
    pub fn of_header(traceparent: &str) -> Option<Self> {
        Self::from_pairs([(PARENT, traceparent)])
    }

    /// The value of a header `traceparent`.
    pub fn to_header(&self) -> String {
        let (trace, span, flags) = (self.0.trace_id(), self.0.span_id(), self.0.trace_flags().to_u8());
        format!("00-{trace}-{span}-{flags:02x}")
    }

    /// Makes `span`, which nobody has entered yet, a part of the trace.
    pub fn above(&self, span: &Span) {
        // Where spans are not exported, there is no trace to be a part of.
        let _ = span.set_parent(Context::new().with_remote_span_context(self.0.clone()));
    }

    /// As headers, or as fields of an MCP request's `_meta`: `traceparent`, and `tracestate` if there is one.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::from([(PARENT.to_owned(), self.to_header())]);
        let state = self.0.trace_state().header();
        if !state.is_empty() {
            map.insert(STATE.to_owned(), state);
        }
        map
    }

    /// From headers, or from the fields of an MCP request's `_meta`; the case of names is not minded. `None` if there is no
    /// `traceparent`, or none that can be read: a trace then begins here.
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

    /// Runs `work` as part of the trace: spans that begin in it lie below. A span of `tracing` around it goes first.
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
