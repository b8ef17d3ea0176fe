//! NexAU's routes of teams below `/team`, for the one team that is served, or for the team that the query names.

use std::{collections::HashMap, sync::Arc};

use agent::{
    Event, ExitReason, Part,
    team::{LEADER, MemberStatus, TaskStatus, TeamChange, TeamEventKind, TeamEvents, TeamHistory, TeamState, TurnEnd},
};
use axum::{
    Json, Router,
    extract::State,
    response::Response,
    routing::{get, post},
};
use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    OnStore, Teams, TeamsState,
    events::{Item, items},
    live::Live,
};
use crate::{
    ag_ui::Projection,
    app::{App, OpenStream},
    caller::{Caller, Scope},
    error::ApiError,
    extract::{JsonBody, Query},
    snake_case::snake_case,
    speech::Ending,
    sse::{self, Frame},
};

pub(super) fn router() -> Router<TeamsState> {
    Router::new()
        .route("/team/stream", post(start))
        .route("/team/query", post(query))
        .route("/team/tasks", get(tasks))
        .route("/team/teammates", get(teammates))
        .route("/team/message", post(message))
        .route("/team/user-message", post(user_message))
        .route("/team/stop", post(stop))
        .route("/team/status", get(status))
        .route("/team/subscribe", get(subscribe))
}

/// Parameters of all requests. The tenant and the user are those of the key: `user_id` separates the
/// sessions of an application's users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Which {
    user_id: Option<String>,
    session_id: Option<String>,
    /// Name of the team, if several are served.
    team: Option<String>,
    status: Option<TaskStatus>,
}

/// Body of a request that starts a run.
#[derive(Debug, Deserialize)]
struct Start {
    message: Option<String>,
    messages: Option<Value>,
    #[serde(flatten)]
    which: Which,
}

/// Body of a message.
#[derive(Debug, Deserialize)]
struct Said {
    #[serde(alias = "agent_id", alias = "to_agent_id")]
    to: Option<String>,
    #[serde(alias = "message", alias = "text")]
    content: String,
    #[serde(flatten)]
    which: Which,
}

/// The team and the session of a request.
struct Place<'a> {
    served: &'a OnStore,
    team_id: String,
    session: Arc<str>,
}

impl<'a> Place<'a> {
    fn of(app: &App, teams: &'a Teams, caller: &Caller, which: &Which) -> Result<Self, ApiError> {
        let name = match (&which.team, &teams.0.teams.keys().collect::<Vec<_>>()[..]) {
            (Some(name), _) => name.clone(),
            (None, [only]) => (*only).clone(),
            (None, []) => return Err(ApiError::not_found("no team is served")),
            (None, _) => return Err(ApiError::invalid("several teams are served: name one with 'team'")),
        };
        let served = teams.find(caller, &name)?;
        let user = which.user_id.as_deref().unwrap_or("default-user");
        let session = which.session_id.as_deref().unwrap_or("default");
        let team_id = format!("{user}/{session}");
        let session = app.new_session(caller, &team_id)?.to_string().into();
        Ok(Self { served, team_id, session })
    }

    async fn state(&self) -> Result<TeamState, ApiError> {
        Ok(TeamHistory::read(&**self.served.team.store(), &self.session).await?.state)
    }
}

impl Start {
    /// The new message: `message`, or the user's in `messages`.
    fn text(&self) -> Result<String, ApiError> {
        let of_messages = || match self.messages.as_ref()? {
            Value::String(text) => Some(text.clone()),
            Value::Array(all) => {
                let last = all.iter().rev().find(|said| said["role"] == "user")?;
                last["content"].as_str().map(str::to_owned)
            }
            _ => None,
        };
        let text = self.message.clone().or_else(of_messages).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| ApiError::invalid("send 'message', a text, or 'messages' that end with the user's"))
    }
}

/// Starts a run, or sends the message to the one that is active, and returns it with its events.
async fn begin(
    app: &App,
    teams: &Teams,
    caller: &Caller,
    place: &Place<'_>,
    text: String,
) -> Result<(Live, TeamEvents, u64), ApiError> {
    caller.require(Scope::Run)?;
    let history = TeamHistory::read(&**place.served.team.store(), &place.session).await?;
    let after = history.records.last().map_or(0, |record| record.seq);
    let parts = vec![Part::text(text)];
    let (live, events) = teams.say(app, caller, &place.served.team, &place.session, parts, None).await?;
    Ok((live, events, after))
}

async fn start(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    JsonBody(body): JsonBody<Start>,
) -> Result<Response, ApiError> {
    let place = Place::of(&app, &teams, &caller, &body.which)?;
    let open = app.stream()?;
    let (live, events, after) = begin(&app, &teams, &caller, &place, body.text()?).await?;
    Ok(streamed(open, &app, &teams, &place, after, Some((live, events))))
}

async fn query(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    JsonBody(body): JsonBody<Start>,
) -> Result<Json<Value>, ApiError> {
    let place = Place::of(&app, &teams, &caller, &body.which)?;
    let (live, ..) = begin(&app, &teams, &caller, &place, body.text()?).await?;
    let error = live.ended().await;
    let state = place.state().await?;
    let status = match state.reason() {
        Some(reason) => reason.as_str(),
        None if state.questions().is_empty() => "error",
        None => "waiting",
    };
    Ok(Json(json!({
        "status": status, "team_id": place.team_id, "response": state.text(), "error": error,
        "questions": state.questions(),
    })))
}

async fn subscribe(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    caller.require(Scope::Read)?;
    let place = Place::of(&app, &teams, &caller, &which)?;
    let history = TeamHistory::read(&**place.served.team.store(), &place.session).await?;
    let after = history.records.last().map_or(0, |record| record.seq);
    Ok(streamed(app.stream()?, &app, &teams, &place, after, None))
}

async fn tasks(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let state = Place::of(&app, &teams, &caller, &which)?.state().await?;
    let tasks: Vec<_> = super::view::tasks(&state, which.status)
        .into_iter()
        .map(|view| {
            let task = view.task;
            json!({
                "task_id": task.id, "title": task.title, "description": task.description, "status": task.status,
                "priority": task.priority, "dependencies": task.dependencies, "assignee_agent_id": task.owner,
                "result_summary": task.result, "deliverable_path": task.deliverable_path, "is_blocked": view.is_blocked,
            })
        })
        .collect();
    Ok(Json(json!({"tasks": tasks})))
}

async fn teammates(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let state = Place::of(&app, &teams, &caller, &which)?.state().await?;
    let members = state.member_infos().into_iter().filter(|member| &*member.id != LEADER);
    let members = members.filter(|member| member.status != MemberStatus::Removed);
    let members: Vec<_> = members
        .map(|member| {
            let status = match member.status {
                MemberStatus::Waiting => "running",
                status => status.as_str(),
            };
            json!({"agent_id": member.id, "role_name": member.role, "status": status})
        })
        .collect();
    Ok(Json(json!({"teammates": members})))
}

/// Sends a message of the user to a member, and continues the run.
async fn deliver(
    app: &App,
    teams: &Teams,
    caller: &Caller,
    said: Said,
    default: Option<&str>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Run)?;
    let place = Place::of(app, teams, caller, &said.which)?;
    let to = said.to.as_deref().or(default).ok_or_else(|| ApiError::invalid("name the recipient with 'to'"))?;
    place.served.team.session(place.session.clone()).message(to, said.content).await?;
    teams.resume(app, caller, &place.served.team, &place.session)?;
    Ok(Json(json!({"status": "ok", "team_id": place.team_id})))
}

async fn message(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    JsonBody(said): JsonBody<Said>,
) -> Result<Json<Value>, ApiError> {
    deliver(&app, &teams, &caller, said, None).await
}

async fn user_message(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    JsonBody(said): JsonBody<Said>,
) -> Result<Json<Value>, ApiError> {
    deliver(&app, &teams, &caller, said, Some(LEADER)).await
}

async fn stop(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    JsonBody(which): JsonBody<Which>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Run)?;
    let place = Place::of(&app, &teams, &caller, &which)?;
    if !place.state().await?.is_open() {
        return Ok(Json(json!({"status": "not_running", "team_id": place.team_id})));
    }
    place.served.team.session(place.session.clone()).stop().await?;
    if let Some(live) = teams.live().get(&place.session) {
        live.ended().await;
    }
    Ok(Json(json!({"status": "stopped", "team_id": place.team_id})))
}

async fn status(
    State(app): State<App>,
    State(teams): State<Teams>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Read)?;
    let place = Place::of(&app, &teams, &caller, &which)?;
    let state = place.state().await?;
    let is_running = teams.live().get(&place.session).is_some();
    let reason = state.reason().map(agent::team::TeamEndReason::as_str);
    Ok(Json(json!({"team_id": place.team_id, "is_running": is_running, "reason": reason})))
}

/// Streams a session in NexAU's envelopes `{team_id, agent_id, role_name, event}`.
fn streamed(
    open: OpenStream,
    app: &App,
    teams: &Teams,
    place: &Place<'_>,
    after: u64,
    live: Option<(Live, TeamEvents)>,
) -> Response {
    let items = items(app.clone(), teams.clone(), place.session.clone(), after, live);
    let mut envelopes = Envelopes::new(app.clone(), place.team_id.clone());
    let frames = items.flat_map(move |item| {
        let _ = &open; // held while the stream is read
        let frames: Vec<_> = match item {
            Ok(item) => envelopes.of(item).iter().map(Frame::json).collect(),
            Err(error) => vec![Frame::json(&error.body())],
        };
        stream::iter(frames)
    });
    sse::plain(frames)
}

/// Encoder of envelopes: each turn of a member is a run of the protocol.
struct Envelopes {
    app: App,
    team_id: String,
    /// Projections of the open turns, by member.
    turns: HashMap<Arc<str>, Projection>,
}

impl Envelopes {
    fn new(app: App, team_id: String) -> Self {
        Self { app, team_id, turns: HashMap::new() }
    }

    fn of(&mut self, item: Item) -> Vec<Value> {
        match item {
            Item::Run(event) => match (event.member, event.kind) {
                (Some(member), TeamEventKind::Run(event)) => self.run(&member, *event),
                _ => Vec::new(),
            },
            Item::Change(record) => match &record.change {
                TeamChange::TurnEnded { member, end } => self.turn_ended(member, end),
                change => {
                    let value = json!({"type": "CUSTOM", "name": "team", "value": change});
                    vec![self.envelope(record.member.as_ref(), &value)]
                }
            },
            Item::End(error) => {
                let kind = if error.is_some() { "TEAM_ERROR" } else { "TEAM_FINISHED" };
                vec![self.envelope(None, &json!({"type": kind, "message": error}))]
            }
        }
    }

    fn run(&mut self, member: &Arc<str>, event: Event) -> Vec<Value> {
        let event = self.app.public(event);
        let mut told = Vec::new();
        let projection = self.turns.entry(member.clone()).or_insert_with(|| {
            let mut projection = Projection::new(&*event.ids.session, &*event.ids.run_id);
            told.extend(projection.start());
            projection
        });
        told.extend(projection.event(&event));
        self.envelopes(member, told)
    }

    fn turn_ended(&mut self, member: &Arc<str>, end: &TurnEnd) -> Vec<Value> {
        let projection = self.turns.remove(member);
        let Some(mut projection) = projection else { return Vec::new() };
        let ending = match end {
            TurnEnd::Finished { text, reason } => Ending::Finished { answer: text.clone(), reason: reason.clone() },
            TurnEnd::Failed { error } => Ending::Failed { kind: agent::ErrorKind::Unexpected, message: error.clone() },
            _ => Ending::Finished { answer: String::new(), reason: ExitReason::Stopped("cancelled".into()) },
        };
        let told = projection.end(&ending);
        self.envelopes(member, told)
    }

    fn envelopes(&self, member: &Arc<str>, told: Vec<crate::ag_ui::AgUiEvent>) -> Vec<Value> {
        let told = told.into_iter().filter_map(|event| serde_json::to_value(event).ok());
        told.map(|event| self.envelope(Some(member), &snake_case(event))).collect()
    }

    fn envelope(&self, member: Option<&Arc<str>>, event: &Value) -> Value {
        let role = member.map(|member| role_of(member));
        json!({"team_id": self.team_id, "agent_id": member, "role_name": role, "event": event})
    }
}

/// Role of a member: `builder` for `builder-1`, and the agent's name for a part of a pattern such as `2-editor`.
fn role_of(member: &str) -> &str {
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    match member.rsplit_once('-') {
        Some((role, number)) if is_number(number) => role,
        _ => member.split_once('-').filter(|(number, _)| is_number(number)).map_or(member, |(_, agent)| agent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_read_from_the_id_of_a_member() {
        assert_eq!(
            ["leader", "builder-1", "rfc-writer-12", "2-editor", "3-my-agent"].map(role_of),
            ["leader", "builder", "rfc-writer", "editor", "my-agent"]
        );
    }
}
