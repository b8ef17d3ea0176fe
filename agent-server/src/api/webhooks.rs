//! Route `/api/webhooks`: verification of webhook messages.

use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};

use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    webhooks::HookEvent,
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/webhooks", get(told))
}

/// Returns the secret that signs the messages to this tenant.
async fn told(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Run)?;
    let none = || ApiError::not_found("webhooks are disabled: the server has no webhook secret");
    let secret = app.webhook_secret(&caller).ok_or_else(none)?;
    Ok(Json(json!({"secret": secret, "events": HookEvent::ALL})))
}
