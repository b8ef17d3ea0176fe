//! Health and readiness probes, metrics and the OpenAPI document.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    app::App,
    auth::Auth,
    caller::{Caller, Scope},
    error::ApiError,
};

/// Media type of metrics.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Routes `/health` and `/ready` for process supervisors: without a key, and with any host name,
/// since probes address a container directly. They reveal nothing about the agents.
pub(crate) fn probes() -> Router<App> {
    let store = Store::default();
    let ready = |State(app): State<App>| async move { ready(&app, &store).await };
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

/// Session that a readiness probe reads; it does not exist.
const PROBED: &str = "agent-server/ready";
/// Longest wait of a readiness probe for the store.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time for which the answer of the store holds: probes need no key, and must not load it.
const FRESH: Duration = Duration::from_secs(1);

/// Time of the last probe of the store, and whether it answered.
#[derive(Clone, Debug, Default)]
struct Store(Arc<Mutex<Option<(Instant, bool)>>>);

impl Store {
    async fn answers(&self, app: &App) -> bool {
        let mut last = self.0.lock().await;
        if let Some((_, answered)) = last.filter(|(at, _)| at.elapsed() < FRESH) {
            return answered;
        }
        let read = timeout(PATIENCE, app.journal().read(PROBED, 0, 1)).await;
        let answered = read.is_ok_and(|read| {
            read.inspect_err(|error| tracing::warn!(%error, "the server is not ready: the store failed")).is_ok()
        });
        *last = Some((Instant::now(), answered));
        answered
    }
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

/// Ready while the server accepts runs and the store answers.
async fn ready(app: &App, store: &Store) -> (StatusCode, Json<Value>) {
    if app.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "draining"})));
    }
    if !store.answers(app).await {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "store unavailable"})));
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
    let balances = app.balances(auth.allowances()).await;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], app.metrics().text(&balances)))
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
