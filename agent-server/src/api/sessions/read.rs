//! Reading a session: history, and entries of its journal.

use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::header;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Found, Side, renamed};
use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    extract::Query,
};

/// Default number of entries per page.
const USUAL: usize = 500;
/// Maximum number of entries per page.
const MOST: usize = 5_000;

pub(super) fn router() -> Router<App> {
    Router::new().route("/sessions/{session}", get(one)).route("/sessions/{session}/entries", get(entries))
}

async fn one(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(side): Query<Side>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let found = Found::new(&app, &caller, &name, side.agent.as_deref()).await?;
    shown(&app, &caller, &found).await
}

/// Builds the public view of a session.
pub(super) async fn shown(app: &App, caller: &Caller, found: &Found) -> Result<Json<Value>, ApiError> {
    let index = app.journal().whole_index(&found.store_name()).await?;
    let (view, runs) = index.look(|index| (index.view(&found.agent), index.runs(&found.agent).to_vec()));
    let newest = runs.iter().rev().find(|run| !run.is_edit && !run.undone);
    let open = match newest {
        Some(run) => Some(app.run(caller, &run.run_id, Some(found.id.session())).await?.view().await?),
        None => None,
    };
    let state: serde_json::Map<_, _> =
        view.globals.into_iter().filter(|(key, _)| !key.starts_with("agent-server/")).collect();
    Ok(Json(json!({
        "session": found.id.session(),
        "title": found.info.title,
        "agent": found.agent,
        "agents": found.info.agents,
        "created": found.info.created,
        "updated": found.info.updated,
        "entries": found.info.entries,
        "messages": view.history,
        "runs": runs,
        "usage": view.usage,
        "state": state,
        "status": open.as_ref().map(|run| run.status),
        "newest": open,
    })))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Page {
    after: u64,
    limit: Option<usize>,
}

async fn entries(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(page): Query<Page>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    // Entries are not separated by agent: access to all agents of the session is required.
    let found = Found::whole(&app, &caller, &name).await?;
    let limit = page.limit.unwrap_or(USUAL).clamp(1, MOST);
    let entries = app.journal().read(&found.store_name(), page.after, limit).await?;
    let after = entries.last().map(|last| last.seq).filter(|_| entries.len() == limit);
    let text = json!({"entries": entries, "after": after}).to_string();
    let is_json = [(header::CONTENT_TYPE, "application/json")];
    Ok((is_json, renamed(&text, &found.id)).into_response())
}
