//! Route `/api/spending`: the caller's spending.

use axum::{Json, Router, extract::State, routing::get};
use serde_json::{Value, json};

use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/spending", get(spending))
}

/// Returns the spending in each window in which the key or its tenant has a limit.
async fn spending(State(app): State<App>, caller: Caller) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    Ok(Json(json!({"spending": app.spent(&caller).await?})))
}
