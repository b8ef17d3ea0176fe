//! Route `/api/agents`: the list of agents.

use axum::{
    Json, Router,
    extract::{Path, State},
    response::IntoResponse,
    routing::get,
};
use serde_json::{Value, json};

use crate::{
    app::{App, Served},
    caller::{Caller, Scope},
    error::ApiError,
};

pub(super) fn router() -> Router<App> {
    Router::new().route("/agents", get(list)).route("/agents/{agent}", get(one))
}

async fn list(State(app): State<App>, caller: Caller) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Read)?;
    let agents: Vec<_> = app.agents(&caller).map(|served| shown(&served)).collect();
    Ok(Json(json!({"agents": agents})))
}

async fn one(State(app): State<App>, caller: Caller, Path(agent): Path<String>) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Read)?;
    Ok(Json(shown(&app.agent(&caller, &agent)?)))
}

fn shown(served: &Served) -> Value {
    let agent = served.agent();
    let tools: Vec<_> = agent
        .tools()
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}))
        .collect();
    json!({"name": agent.name(), "description": served.about(), "model": agent.model(), "tools": tools})
}
