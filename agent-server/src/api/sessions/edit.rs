//! Changes to sessions: titles, undo, forks, replays, deletion.

use std::{collections::BTreeMap, time::Duration};

use agent::{Error, Message, RunEnd, RunRequest};
use axum::{
    Json, Router,
    extract::{Path, State},
    routing::{delete, post, put},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Found, read};
use crate::{
    app::{App, RunView},
    caller::{Caller, Scope},
    error::ApiError,
    extract::JsonBody,
};

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/sessions/{session}/title", put(title))
        .route("/sessions/{session}/metadata", put(metadata))
        .route("/sessions/{session}/undo", post(undo))
        .route("/sessions/{session}/fork", post(fork))
        .route("/sessions/{session}/replay", post(replay))
        .route("/sessions/{session}", delete(remove))
}

/// Maximum size of a title in bytes: lists of sessions contain many titles.
const LONGEST_TITLE: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Title {
    title: String,
}

async fn title(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(wanted): JsonBody<Title>,
) -> Result<StatusCode, ApiError> {
    caller.require(Scope::Run)?;
    if wanted.title.len() > LONGEST_TITLE || wanted.title.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("a title must be a single line of at most {LONGEST_TITLE} bytes")));
    }
    let found = Found::whole(&app, &caller, &name).await?;
    app.sessions().set_title(&found.id, wanted.title).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Maximum number of metadata pairs, and maximum sizes of a key and a value in bytes.
const PAIRS: usize = 50;
const LONGEST_KEY: usize = 100;
const LONGEST_VALUE: usize = 500;

/// Replaces the metadata of a session.
async fn metadata(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(pairs): JsonBody<BTreeMap<String, String>>,
) -> Result<StatusCode, ApiError> {
    caller.require(Scope::Run)?;
    let is_short = |(key, value): (&String, &String)| {
        (1..=LONGEST_KEY).contains(&key.len())
            && !key.contains([':', ','])
            && value.len() <= LONGEST_VALUE
            && !value.contains(',')
    };
    if pairs.len() > PAIRS || !pairs.iter().all(is_short) {
        return Err(ApiError::invalid(format!(
            "metadata must be at most {PAIRS} pairs of texts: keys of 1 to {LONGEST_KEY} bytes without ':' and ',', values of at most {LONGEST_VALUE} bytes without ','"
        )));
    }
    let found = Found::whole(&app, &caller, &name).await?;
    app.set_metadata(&found.store_name(), &pairs).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    caller.require(Scope::Delete)?;
    let found = Found::whole(&app, &caller, &name).await?;
    app.delete_session(&found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Undo {
    agent: Option<String>,
    run: String,
}

async fn undo(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(wanted): JsonBody<Undo>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Run)?;
    let found = Found::new(&app, &caller, &name, wanted.agent.as_deref()).await?;
    app.sessions().session(&found.id, found.agent.clone()).undo(&wanted.run).await?;
    read::shown(&app, &caller, &found).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fork {
    agent: Option<String>,
    run: Option<String>,
    step: u32,
    into: String,
    edit: Option<Edit>,
}

/// Replacement text of a message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Index of the message; the last user message if not set.
    message: Option<usize>,
    text: String,
}

async fn fork(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(wanted): JsonBody<Fork>,
) -> Result<(StatusCode, Json<RunView>), ApiError> {
    caller.require(Scope::Run)?;
    let found = Found::new(&app, &caller, &name, wanted.agent.as_deref()).await?;
    let served = app.agent(&caller, &found.agent)?;
    let agent = served.agent();
    let into = app.new_session(&caller, &wanted.into)?;
    let from = found.store_name();
    let mut fork = match &wanted.run {
        Some(run) => agent.fork_run(&from, run, wanted.step, into).await,
        None => agent.fork(&from, wanted.step, into).await,
    }
    .map_err(|error| public(&error, &found))?;
    if let Some(edit) = wanted.edit {
        let is_user = |message: &Message| matches!(message, Message::User(_));
        let last = fork.history.iter().enumerate().filter(|(_, message)| is_user(message)).map(|(at, _)| at).last();
        let nothing = || ApiError::invalid("there is no user message at that step: fork at a later one");
        let at = edit.message.or(last).ok_or_else(nothing)?;
        fork.edit(at, Message::user(edit.text))?;
    }
    let run = app.start_fork(&caller, fork).await?;
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}

/// Converts the error, with the session's name as the client knows it.
fn public(error: &Error, found: &Found) -> ApiError {
    ApiError::of(error).renamed(&found.store_name(), found.id.session())
}

/// Maximum time of a replay, which counts as an event stream.
const LONGEST_REPLAY: Duration = Duration::from_secs(60);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Replay {
    agent: Option<String>,
    run: Option<String>,
}

async fn replay(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    JsonBody(wanted): JsonBody<Replay>,
) -> Result<Json<Value>, ApiError> {
    caller.require(Scope::Run)?;
    let found = Found::new(&app, &caller, &name, wanted.agent.as_deref()).await?;
    let served = app.agent(&caller, &found.agent)?;
    let agent = served.agent();
    let request = RunRequest::replay(found.store_name());
    let request = wanted.run.into_iter().fold(request, RunRequest::run_id);
    let _open = app.stream()?;
    let replaying = tokio::time::timeout(LONGEST_REPLAY, agent.start(request)).await;
    let end = replaying.map_err(|_| {
        let message = format!("the replay did not end within {LONGEST_REPLAY:?}: use 'agent replay' on the store");
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    })?;
    let end = end.map_err(|error| public(&error, &found))?;
    let answer = match &end {
        RunEnd::Finished(finished) => Some(finished.answer.as_str()),
        _ => None,
    };
    Ok(Json(json!({"status": end.as_str(), "answer": answer})))
}
