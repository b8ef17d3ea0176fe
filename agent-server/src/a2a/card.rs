//! Agent cards of Agent2Agent.

use axum::{
    Json,
    extract::{Path, State},
};
use http::{HeaderMap, header};
use serde_json::{Value, json};

use crate::{ApiError, App, Caller, Scope, app::Served};

pub(super) async fn of_agent(
    State(app): State<App>,
    caller: Result<Caller, ApiError>,
    Path(agent): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let caller = caller.unwrap_or_else(|_| anybody());
    caller.require(Scope::Read)?;
    let pushes = app.webhook_secret(&caller).is_some();
    Ok(Json(card(&app.agent(&caller, &agent)?, &headers, pushes)))
}

/// Returns the card of the server's only agent.
pub(super) async fn of_server(
    State(app): State<App>,
    caller: Result<Caller, ApiError>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let caller = caller.unwrap_or_else(|_| anybody());
    caller.require(Scope::Read)?;
    let mut agents = app.agents(&caller);
    match (agents.next(), agents.next()) {
        (Some(agent), None) => Ok(Json(card(&agent, &headers, app.webhook_secret(&caller).is_some()))),
        _ => Err(ApiError::not_found(
            "this server has several agents: get a card from /a2a/{agent}/.well-known/agent-card.json",
        )),
    }
}

/// Returns the anonymous caller of public cards.
fn anybody() -> Caller {
    Caller::new("", "anybody")
}

fn card(served: &Served, headers: &HeaderMap, pushes: bool) -> Value {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or("localhost");
    // Behind a proxy the scheme is the proxy's.
    let scheme = headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok());
    let scheme = scheme.filter(|scheme| *scheme == "https").unwrap_or("http");
    let (name, about) = (served.name(), served.about());
    let about = if about.is_empty() { name } else { about };
    json!({
        "protocolVersion": "0.3.0",
        "name": name,
        "description": about,
        "url": format!("{scheme}://{host}/a2a/{name}"),
        "preferredTransport": "JSONRPC",
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {"streaming": true, "pushNotifications": pushes, "stateTransitionHistory": false},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": name, "name": name, "description": about, "tags": []}],
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        "security": [{"bearer": []}],
    })
}
