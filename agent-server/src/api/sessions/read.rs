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

use super::{
    Found, Side,
    public::{Names, page, without_notes},
};
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
/// Size in bytes after which a page ends, with at least one entry.
const PAGE_BYTES: usize = 4 << 20;
/// Number of entries that are read from the store at once.
const READ: usize = 100;

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
    let (view, mut runs) = index.look(|index| (index.view(&found.agent), index.runs(&found.agent).to_vec()));
    for run in &mut runs {
        run.user = run.user.take().map(|user| app.public_name(&user));
    }
    let newest = runs.iter().rev().find(|run| !run.is_edit && !run.undone);
    let open = match newest {
        Some(run) => Some(app.run(caller, &run.run_id, Some(found.id.session())).await?.view().await?),
        None => None,
    };
    let state = without_notes(view.globals);
    Ok(Json(json!({
        "session": found.id.session(),
        "title": found.info.title,
        "agent": found.agent,
        "agents": found.info.agents,
        "created": found.info.created,
        "updated": found.info.updated,
        "metadata": found.info.metadata,
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
    Query(wanted): Query<Page>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    // Entries are not separated by agent: access to all agents of the session is required.
    let found = Found::whole(&app, &caller, &name).await?;
    let limit = wanted.limit.unwrap_or(USUAL).clamp(1, MOST);
    let (names, store_name) = (Names::new(&found.id), found.store_name());
    let (mut entries, mut bytes, mut after) = (Vec::new(), 0, wanted.after);
    let is_last = 'pages: loop {
        let most = READ.min(limit - entries.len());
        let read = app.journal().read(&store_name, after, most).await?;
        for entry in &read {
            let text = names.entry(entry)?;
            (bytes, after) = (bytes + text.get().len(), entry.seq);
            entries.push(text);
            if entries.len() == limit || bytes >= PAGE_BYTES {
                break 'pages false;
            }
        }
        if read.len() < most {
            break true;
        }
    };
    let is_json = [(header::CONTENT_TYPE, "application/json")];
    Ok((is_json, page(&entries, (!is_last).then_some(after))?).into_response())
}
