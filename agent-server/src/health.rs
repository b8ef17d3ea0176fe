//! Whether the server is there, and whether it takes work.

use axum::{Json, Router, extract::State, response::IntoResponse, routing::get};
use http::StatusCode;
use serde_json::json;

use crate::app::App;

/// `/health` and `/ready`, for who watches over processes. Neither needs a key.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

async fn health() -> impl IntoResponse {
    Json(json!({"status": "ok"}))
}

async fn ready(State(app): State<App>) -> impl IntoResponse {
    if app.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "draining"})));
    }
    (StatusCode::OK, Json(json!({"status": "ready", "agents": app.names()})))
}
