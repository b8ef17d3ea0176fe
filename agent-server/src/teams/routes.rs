//! Routes below `/api/teams`.

use std::sync::Arc;

use agent::{
    Part,
    team::{LEADER, TaskStatus, Team, TeamHistory, TeamState},
};
use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::StreamExt;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    OnStore, Teams, TeamsState, events,
    view::{TeamView, tasks},
};
use crate::{
    api::{Given, Input},
    app::App,
    caller::{Caller, Scope},
    error::ApiError,
    extract::{JsonBody, Query, idempotency_key},
    sse,
};

/// Maximum number of sessions in a list.
const MOST_LISTED: usize = 200;

pub(super) fn router() -> Router<TeamsState> {
    Router::new()
        .route("/api/teams", get(list))
        .route("/api/teams/{team}/runs", post(start))
        .route("/api/teams/{team}/sessions", get(sessions))
        .route("/api/teams/{team}/sessions/{session}", get(one))
        .route("/api/teams/{team}/sessions/{session}/tasks", get(board))
        .route("/api/teams/{team}/sessions/{session}/events", get(stream))
        .route("/api/teams/{team}/sessions/{session}/messages", post(message))
        .route("/api/teams/{team}/sessions/{session}/answers", post(answer))
        .route("/api/teams/{team}/sessions/{session}/stop", post(stop))
        .route("/api/teams/{team}/sessions/{session}/resume", post(resume))
}

type Shown = Result<(StatusCode, Json<TeamView>), ApiError>;

/// The team and the session of a request.
struct Place<'a> {
    team: &'a Team,
    /// Name of the session as the client knows it.
    public: Arc<str>,
    session: Arc<str>,
}

impl<'a> Place<'a> {
    fn of(app: &App, teams: &'a Teams, caller: &Caller, team: &str, session: &str) -> Result<Self, ApiError> {
        let team = &teams.find(caller, team)?.team;
        let id = app.new_session(caller, session)?.to_string();
        Ok(Self { team, public: session.into(), session: id.into() })
    }

    async fn state(&self) -> Result<TeamState, ApiError> {
        Ok(TeamHistory::read(&**self.team.store(), &self.session).await?.state)
    }

    /// Returns the state of a session that exists.
    async fn existing(&self) -> Result<TeamState, ApiError> {
        let state = self.state().await?;
        match state.run() {
            Some(_) => Ok(state),
            None => Err(ApiError::not_found(format!("team '{}' has no session '{}'", self.team.name(), self.public))),
        }
    }

    async fn view(&self, teams: &Teams) -> Result<TeamView, ApiError> {
        let state = self.state().await?;
        let is_live = teams.live().get(&self.session).is_some();
        Ok(TeamView::new(self.team.name(), self.public.clone(), &state, is_live))
    }
}

async fn list(State(teams): State<Teams>, caller: Caller) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let all = teams.0.teams.iter().filter(|(name, _)| caller.may_use(name));
    let all: Vec<_> = all.map(|(name, served)| described(name, served)).collect();
    Ok(Json(json!({"teams": all})))
}

fn described(name: &str, served: &OnStore) -> Value {
    let roles: Vec<_> = served.team.roles().map(|(role, _)| role).collect();
    let pattern = served.team.pattern().map(agent::team::pattern::Pattern::name);
    json!({"name": name, "description": served.description, "pattern": pattern, "roles": roles})
}

async fn sessions(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path(team): Path<String>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let served = teams.find(&caller, &team)?;
    let prefix = app.session_id(&caller, "").to_string();
    let identity = format!("team:{}", served.team.name());
    let mut found = Vec::new();
    for name in app.journal().sessions().await?.iter().filter(|name| name.starts_with(&prefix)) {
        let Some(info) = app.journal().info(name).await? else { continue };
        if info.agents.iter().any(|agent| **agent == identity) {
            let name: Arc<str> = name.as_str().into();
            let is_live = teams.live().get(&name).is_some();
            found.push((
                info.updated,
                json!({"session": app.public_name(&name), "updated": info.updated, "is_active": is_live}),
            ));
        }
    }
    found.sort_by_key(|(updated, _)| std::cmp::Reverse(*updated));
    let found: Vec<_> = found.into_iter().take(MOST_LISTED).map(|(_, session)| session).collect();
    Ok(Json(json!({"sessions": found})))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartBody {
    input: Input,
    session: Option<String>,
}

async fn start(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path(team): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<StartBody>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Run)?;
    let key = idempotency_key(&headers)?.map(|key| run_of_key(&caller, &team, key));
    let session = body.session.unwrap_or_else(|| key.clone().unwrap_or_else(agent::run::new_id));
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    let parts = parts(&app, &caller, body.input).await?;
    let wants_stream = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let open =
        wants_stream.is_some_and(|accept| accept.contains("text/event-stream")).then(|| app.stream()).transpose()?;
    let after = last_seq(&place).await?;
    let (live, events) = teams.say(&app, &caller, place.team, &place.session, parts, key).await?;
    match open {
        Some(open) => Ok(streamed(open, &app, &teams, &place, after, Some((live, events)))),
        None => {
            begun(&place).await?;
            Ok((StatusCode::ACCEPTED, Json(place.view(&teams).await?)).into_response())
        }
    }
}

/// Sequence number of the newest change of the session.
async fn last_seq(place: &Place<'_>) -> Result<u64, ApiError> {
    let history = TeamHistory::read(&**place.team.store(), &place.session).await?;
    Ok(history.records.last().map_or(0, |record| record.seq))
}

/// Waits until the session has a run in the journal, so that the client's next request finds it.
async fn begun(place: &Place<'_>) -> Result<(), ApiError> {
    let wait = async {
        while place.state().await?.run().is_none() {
            place.team.store().news(&place.session, 0).await?;
        }
        Ok(())
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), wait).await.unwrap_or(Ok(()))
}

async fn parts(app: &App, caller: &Caller, input: Input) -> Result<Vec<Part>, ApiError> {
    let message = app.with_files(caller, input.into_message()?).await?;
    Ok(match message {
        agent::Message::User(user) => user.parts().to_vec(),
        _ => Vec::new(),
    })
}

async fn one(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
) -> Result<Json<TeamView>, ApiError> {
    caller.require(Scope::Read)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    place.existing().await?;
    Ok(Json(place.view(&teams).await?))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TasksQuery {
    status: Option<TaskStatus>,
}

async fn board(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
    Query(query): Query<TasksQuery>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    let state = place.existing().await?;
    Ok(Json(json!({"tasks": tasks(&state, query.status)})))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EventsQuery {
    after: Option<u64>,
}

async fn stream(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    place.existing().await?;
    // After a reconnect, the browser's header is newer than the query of the page.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let after = match last {
        Some(id) => id.parse().map_err(|_| ApiError::invalid("invalid event id: expected a number"))?,
        None => query.after.unwrap_or(0),
    };
    Ok(streamed(app.stream()?, &app, &teams, &place, after, None))
}

fn streamed(
    open: crate::app::OpenStream,
    app: &App,
    teams: &Teams,
    place: &Place<'_>,
    after: u64,
    live: Option<(super::live::Live, agent::team::TeamEvents)>,
) -> Response {
    let items = events::items(app.clone(), teams.clone(), place.session.clone(), after, live);
    let (app, team) = (app.clone(), place.team.name().to_owned());
    let (public, session) = (place.public.clone(), place.session.clone());
    let frames = items.then(move |item| {
        let _ = &open; // held while the stream is read
        let (app, team, public, session) = (app.clone(), team.clone(), public.clone(), session.clone());
        async move {
            match item {
                Ok(item) => events::frame(&app, &team, &public, &session, item).await,
                Err(error) => sse::Frame::with(&[("event", "error")], &error.body()),
            }
        }
    });
    sse::response(frames)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageBody {
    /// Id of the member; `*` for all members. Default: the leader.
    to: Option<String>,
    input: Input,
}

async fn message(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MessageBody>,
) -> Shown {
    caller.require(Scope::Run)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    place.existing().await?;
    let key = idempotency_key(&headers)?.map(str::to_owned);
    let parts = parts(&app, &caller, body.input).await?;
    let session = place.team.session(place.session.clone());
    match body.to.as_deref() {
        Some("*") => session.broadcast(text_of(&parts)).await?,
        to => session.send(to.unwrap_or(LEADER), parts, key).await?,
    };
    teams.resume(&app, &caller, place.team, &place.session)?;
    Ok((StatusCode::ACCEPTED, Json(place.view(&teams).await?)))
}

fn text_of(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
}

async fn answer(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
    JsonBody(mut body): JsonBody<Value>,
) -> Shown {
    caller.require(Scope::Answer)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    place.existing().await?;
    // Beside the member, the body is an answer as those of runs are.
    let member = body.as_object_mut().and_then(|body| body.remove("member"));
    let member = member.as_ref().and_then(Value::as_str).ok_or_else(|| ApiError::invalid("'member' is missing"))?;
    let given = Given::deserialize(&body).map_err(|e| ApiError::invalid(format!("invalid body: {e}")))?;
    let session = place.team.session(place.session.clone());
    let asked = session.questions().await?;
    let asked = asked.iter().find(|asked| &*asked.member == member && asked.question.id == given.question());
    let asked = asked.ok_or_else(|| {
        ApiError::conflict("answer_refused", format!("{member} has no open question '{}'", given.question()))
    })?;
    session.answer(member, given.question(), given.value(&asked.question)?).await?;
    teams.resume(&app, &caller, place.team, &place.session)?;
    Ok((StatusCode::ACCEPTED, Json(place.view(&teams).await?)))
}

async fn stop(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
) -> Shown {
    caller.require(Scope::Run)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    place.existing().await?;
    place.team.session(place.session.clone()).stop().await?;
    if let Some(live) = teams.live().get(&place.session) {
        live.ended().await;
    }
    Ok((StatusCode::OK, Json(place.view(&teams).await?)))
}

async fn resume(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Path((team, session)): Path<(String, String)>,
) -> Shown {
    caller.require(Scope::Run)?;
    let place = Place::of(&app, &teams, &caller, &team, &session)?;
    if !place.existing().await?.is_open() {
        return Err(ApiError::conflict("over", "the run of the team has ended: start another one in its session"));
    }
    teams.resume(&app, &caller, place.team, &place.session)?;
    Ok((StatusCode::ACCEPTED, Json(place.view(&teams).await?)))
}

/// Id of the run that an idempotency key of the caller names.
fn run_of_key(caller: &Caller, team: &str, key: &str) -> String {
    let mut hash = Sha256::new();
    for word in ["team", caller.tenant(), caller.subject(), team, key] {
        hash.update((word.len() as u64).to_be_bytes());
        hash.update(word);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
