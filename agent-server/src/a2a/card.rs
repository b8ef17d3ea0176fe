//! Agent cards of Agent2Agent.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::version::Version;
use crate::{ApiError, App, Caller, Scope, app::Served};

pub(super) async fn of_agent(
    State(app): State<App>,
    caller: Result<Caller, ApiError>,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let caller = caller.unwrap_or_else(|_| anybody());
    caller.require(Scope::Read)?;
    let pushes = app.webhook_secret(&caller).is_some();
    Ok(response(&app.agent(&caller, &agent)?, &headers, query.as_deref(), pushes))
}

/// Returns the card of the server's only agent.
pub(super) async fn of_server(
    State(app): State<App>,
    caller: Result<Caller, ApiError>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let caller = caller.unwrap_or_else(|_| anybody());
    caller.require(Scope::Read)?;
    let mut agents = app.agents(&caller);
    match (agents.next(), agents.next()) {
        (Some(agent), None) => Ok(response(&agent, &headers, query.as_deref(), app.webhook_secret(&caller).is_some())),
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
    let url = format!("{scheme}://{host}/a2a/{name}");
    let interface = |binding| json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
    let old = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
    json!({
        "name": name,
        "description": about,
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {"streaming": true, "pushNotifications": pushes, "stateTransitionHistory": false},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": name, "name": name, "description": about, "tags": [name]}],
        // Version 1.0.
        "supportedInterfaces": [interface("JSONRPC"), interface("HTTP+JSON"), old],
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        // Version 0.3.
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "security": [{"bearer": []}],
        // Either version: a scheme has the fields of both.
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}}},
    })
}

/// Returns the card in the form of one version: without the fields that only the other one has.
fn in_version(mut card: Value, version: Version) -> Value {
    let Some(fields) = card.as_object_mut() else { return card };
    let others: &[&str] = match version {
        Version::V03 => &["supportedInterfaces", "securityRequirements"],
        Version::V10 => &["protocolVersion", "url", "preferredTransport", "security"],
    };
    fields.retain(|field, _| !others.contains(&field.as_str()));
    if version == Version::V10 {
        fields
            .insert("securitySchemes".to_owned(), json!({"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}}));
        if let Some(capabilities) = card["capabilities"].as_object_mut() {
            capabilities.remove("stateTransitionHistory");
        }
    }
    card
}

/// Returns the card for a request: for both versions, unless the request names one.
fn response(served: &Served, headers: &HeaderMap, query: Option<&str>, pushes: bool) -> Response {
    let card = card(served, headers, pushes);
    match Version::named(headers, query) {
        Ok(version) => Json(version.map_or(card.clone(), |version| in_version(card, version))).into_response(),
        Err(error) => (error.status(), Json(error.of_http())).into_response(),
    }
}
