//! Tracing spans of requests.

use agent::middleware::telemetry::TraceContext;
use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderValue};
use tracing::{Instrument, Span, field::Empty, info_span};

/// Middleware that creates a span for the request, as a child of the span in its headers.
/// Afterwards the headers name the new span, so that everything the request starts belongs to it,
/// in this process and in others.
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

fn context(headers: &HeaderMap) -> Option<TraceContext> {
    let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    TraceContext::from_pairs(texts)
}
