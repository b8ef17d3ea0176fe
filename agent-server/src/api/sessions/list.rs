//! List and search of sessions.

use agent::{
    SessionId,
    journal::{SessionInfo, SessionQuery},
};
use axum::{Json, Router, extract::State, response::IntoResponse, routing::get};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    extract::Query,
};

/// Default number of sessions per page.
const USUAL: usize = 50;
/// Maximum number of sessions per page.
const MOST: usize = 500;
/// Maximum number of sessions that one request examines if most do not match.
const SEARCHED: usize = 2_000;

pub(super) fn router() -> Router<App> {
    Router::new().route("/sessions", get(list))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    agent: Option<String>,
    /// User on whose behalf a run began.
    user: Option<String>,
    /// Metadata of the session, `key:value`; several pairs are separated by commas.
    metadata: Option<String>,
    /// Text that the name, the title or a message must contain.
    q: Option<String>,
    /// The `after` of the page before.
    after: Option<String>,
    limit: Option<usize>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(wanted): Query<Wanted>,
) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Read)?;
    match &wanted.q {
        Some(text) if !text.is_empty() => search(&app, &caller, &wanted, &text.to_lowercase()).await,
        _ => recent(&app, &caller, &wanted).await,
    }
}

/// Returns a page of sessions, most recently active first.
async fn recent(app: &App, caller: &Caller, wanted: &Wanted) -> Result<Json<Value>, ApiError> {
    let most = wanted.limit.unwrap_or(USUAL).clamp(1, MOST);
    let mut query = SessionQuery::default().prefix(SessionId::new(caller.tenant(), "").to_string()).limit(most);
    query.agents = caller.among(wanted.agent.as_deref());
    query.user = wanted.user.as_ref().map(|user| SessionId::new(caller.tenant(), user.as_str()).to_string());
    for pair in wanted.metadata.iter().flat_map(|pairs| pairs.split(',')) {
        let (key, value) = pair.split_once(':').ok_or_else(|| ApiError::invalid("'metadata' must be key:value"))?;
        query = query.metadata(key, value);
    }
    if let Some(after) = &wanted.after {
        let invalid = || ApiError::invalid("'after' must be that of the page before");
        let (active, name) = after.split_once(':').ok_or_else(invalid)?;
        query = query.before(active.parse().map_err(|_| invalid())?, app.session_id(caller, name).to_string());
    }
    let page = app.journal().recent(&query).await?;
    let public = |name: &str| SessionId::parse(name).map_or_else(|| name.to_owned(), |id| id.session().to_owned());
    let last = page.last().filter(|_| page.len() == most);
    let after = last.map(|last| format!("{}:{}", last.info.active, public(&last.session)));
    let sessions = page.into_iter().map(|mut one| {
        one.session = public(&one.session);
        one
    });
    Ok(Json(json!({"sessions": sessions.collect::<Vec<_>>(), "after": after})))
}

/// Returns a page of the sessions that contain a text, by name.
async fn search(app: &App, caller: &Caller, wanted: &Wanted, text: &str) -> Result<Json<Value>, ApiError> {
    let most = wanted.limit.unwrap_or(USUAL).clamp(1, MOST);
    let (sessions, mut after) = (app.sessions(), wanted.after.as_deref().map(|name| app.session_id(caller, name)));
    let (mut found, mut searched) = (Vec::new(), 0);
    loop {
        let page = sessions.list(caller.tenant(), after.as_ref(), MOST).await?;
        if page.is_empty() {
            return Ok(Json(json!({"sessions": found, "after": Value::Null})));
        }
        for id in page {
            searched += 1;
            if let Some(info) = fits(app, caller, wanted, text, &id).await? {
                found.push(shown(&id, &info));
            }
            let is_enough = found.len() == most || searched == SEARCHED;
            after = Some(id);
            if is_enough {
                let after = after.as_ref().map(SessionId::session);
                return Ok(Json(json!({"sessions": found, "after": after})));
            }
        }
    }
}

/// Returns the session's metadata if it matches.
async fn fits(
    app: &App,
    caller: &Caller,
    wanted: &Wanted,
    text: &str,
    id: &SessionId,
) -> Result<Option<SessionInfo>, ApiError> {
    let Some(info) = app.journal().info(&id.to_string()).await? else { return Ok(None) };
    let is_side = |agent: &str| caller.may_use(agent) && wanted.agent.as_deref().is_none_or(|named| named == agent);
    if !info.agents.iter().any(|agent| is_side(agent)) {
        return Ok(None);
    }
    let has = |said: &str| said.to_lowercase().contains(text);
    if has(id.session()) || info.title.as_deref().is_some_and(has) {
        return Ok(Some(info));
    }
    let index = app.journal().whole_index(&id.to_string()).await?;
    let said = |agent: &str| index.look(|index| index.history(agent).iter().any(|message| has(&message.text())));
    let is_said = info.agents.iter().any(|agent| is_side(agent) && said(agent));
    Ok(is_said.then_some(info))
}

/// Builds the list item of a session.
fn shown(id: &SessionId, info: &SessionInfo) -> Value {
    let mut shown = json!(info);
    shown["session"] = id.session().into();
    shown
}
