//! Health and readiness probes, metrics and the OpenAPI document.

use axum::{
    Json, Router,
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use serde_json::json;

use crate::{
    app::App,
    auth::Auth,
    caller::{Caller, Scope},
    error::ApiError,
};

/// Routes `/health` and `/ready` for process supervisors: without a key, and with any host name,
/// since probes address a container directly. They reveal nothing about the agents.
pub(crate) fn probes() -> Router<App> {
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

/// Route `/openapi.json`, without a key.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/openapi.json", get(document))
}

/// Returns the OpenAPI document.
async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("../openapi.json"))
}

async fn health() -> impl IntoResponse {
    Json(json!({"status": "ok"}))
}

async fn ready(State(app): State<App>) -> impl IntoResponse {
    if app.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "draining"})));
    }
    (StatusCode::OK, Json(json!({"status": "ready"})))
}

/// Route `/metrics`, for callers with the metrics scope; includes the spending of the keys of
/// `auth`.
pub(crate) fn metrics(auth: Auth) -> Router<App> {
    Router::new().route("/metrics", get(|State(app), caller| figures(app, caller, auth)))
}

async fn figures(app: App, caller: Caller, auth: Auth) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Metrics)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let balances = app.balances(auth.allowances()).await;
    Ok(([(header::CONTENT_TYPE, kind)], app.metrics().text(&balances)))
}

/// Counts the requests of each route.
pub(crate) async fn count(
    State(app): State<App>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    // Clients choose unknown paths freely: such requests share one label.
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics().answered(route, response.status().as_u16());
    response
}
