//! Trace contexts and tracing spans of requests.

use std::sync::Arc;

#[cfg(feature = "telemetry")]
use agent::middleware::telemetry::TraceContext;
#[cfg(feature = "telemetry")]
use axum::extract::MatchedPath;
use axum::{extract::Request, middleware::Next, response::Response};
use http::HeaderMap;
#[cfg(feature = "telemetry")]
use http::HeaderValue;
#[cfg(feature = "telemetry")]
use tracing::{Instrument, Span, field::Empty, info_span};

tokio::task_local! {
    /// Trace context of the request that the task handles.
    static CURRENT: Option<Arc<str>>;
}

/// Returns the trace context of the request that the current task handles.
pub(crate) fn current() -> Option<Arc<str>> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Middleware that makes the trace context of the request [current](current) while it is handled.
pub(crate) async fn remembered(request: Request, next: Next) -> Response {
    let context = traceparent(request.headers());
    CURRENT.scope(context, next.run(request)).await
}

/// Returns the trace context in the headers. Ignores a header that is too long.
fn traceparent(headers: &HeaderMap) -> Option<Arc<str>> {
    const MOST: usize = 256;
    headers.get("traceparent")?.to_str().ok().filter(|value| value.len() <= MOST).map(Into::into)
}

/// Middleware that creates a span for the request, as a child of the span in its headers.
/// Afterwards the headers name the new span, so that everything the request starts belongs to it,
/// in this process and in others.
#[cfg(feature = "telemetry")]
pub(crate) async fn traced(mut request: Request, next: Next) -> Response {
    let span = span(&request);
    if let Some(above) = context(request.headers()) {
        above.above(&span);
    }
    if let Some(here) = TraceContext::of(&span).and_then(|here| HeaderValue::try_from(here.to_header()).ok()) {
        request.headers_mut().insert("traceparent", here);
    }
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

#[cfg(feature = "telemetry")]
fn span(request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let method = request.method();
    info_span!(
        target: "agent::telemetry",
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        http.request.method = %method,
        http.route = route,
        http.response.status_code = Empty,
    )
}

#[cfg(feature = "telemetry")]
fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    TraceContext::from_pairs(texts)
}
