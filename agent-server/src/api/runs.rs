//! Routes below `/api/runs`: starting, inspecting and steering runs.

use std::{collections::BTreeMap, time::Duration};

use agent::{ModelParams, RunRequest, WhenBusy, WhenWaiting, dispatch::Signal};
use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{events, input::Input};
use crate::{
    app::{App, FoundRun, RunStatus, RunView, RunsQuery, Start},
    caller::{Caller, Scope},
    error::ApiError,
    extract::{JsonBody, Query, idempotency_key},
    webhooks::Webhook,
};

/// Maximum time in seconds that a request may wait for the end of a run.
const LONGEST_WAIT: f64 = 60.0;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/agents/{agent}/runs", post(start))
        .route("/runs", get(list))
        .route("/runs/{run}", get(one))
        .route("/runs/{run}/cancel", post(cancel))
        .route("/runs/{run}/pause", post(pause))
        .route("/runs/{run}/resume", post(resume))
        .route("/runs/{run}/steer", post(steer))
}

/// Body of a request to start a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    input: Input,
    session: Option<String>,
    #[serde(default)]
    state: BTreeMap<String, Value>,
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
    params: Option<ModelParams>,
    when_busy: Option<Busy>,
    when_waiting: Option<WhenWaiting>,
    stream: Option<bool>,
    webhook: Option<Told>,
}

/// Webhooks of the new run.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a URL, or {\"url\": .., \"events\": [..]}")]
enum Told {
    All(String),
    Some(Webhook),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Busy {
    Reject,
    Queue,
    Steer,
    Fork,
}

impl Wanted {
    async fn into_request(self, app: &App, caller: &Caller) -> Result<RunRequest, ApiError> {
        let message = app.with_files(caller, self.input.into_message()?).await?;
        let mut request = RunRequest::new(vec![message]);
        (request.state, request.inputs, request.stream) = (self.state, self.inputs, self.stream);
        if self.params.as_ref().is_some_and(|params| !params.extra.is_empty()) {
            // `extra` is merged into the provider's request and overrides the model, its tools and
            // the account to bill.
            return Err(ApiError::invalid("'params.extra' is not allowed in requests: remove it"));
        }
        request.params = self.params.map(Box::new);
        request.when_waiting = self.when_waiting;
        request.when_busy = self.when_busy.map(|busy| match busy {
            Busy::Reject => WhenBusy::Reject,
            Busy::Queue => WhenBusy::queue(),
            Busy::Steer => WhenBusy::Steer,
            Busy::Fork => WhenBusy::Fork,
        });
        Ok(request)
    }
}

async fn start(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ApiError> {
    let bytes = body.to_string();
    let mut wanted: Wanted = serde_json::from_value(body).map_err(|e| ApiError::invalid(format!("the body: {e}")))?;
    let session = wanted.session.take();
    let webhook = wanted.webhook.take().map(|told| match told {
        Told::All(url) => Webhook::new(url),
        Told::Some(webhook) => webhook,
    });
    let mut start = Start::new(agent, wanted.into_request(&app, &caller).await?).body(bytes.as_bytes());
    start = session.into_iter().fold(start, Start::session);
    start = idempotency_key(&headers)?.into_iter().fold(start, Start::key);
    start = webhook.into_iter().fold(start, Start::webhook);
    let open = wants_stream(&headers).then(|| app.stream()).transpose()?;
    let run = app.start(&caller, start).await?;
    let name = HeaderValue::from_str(run.id()).map_err(|_| ApiError::internal())?;
    let mut response = if let Some(open) = open {
        events::stream(open, &run, &events::Wanted::default()).await?
    } else {
        let status = if run.is_new() { StatusCode::ACCEPTED } else { StatusCode::OK };
        (status, Json(run.view().await?)).into_response()
    };
    response.headers_mut().insert("agent-run", name);
    Ok(response)
}

/// True if the client prefers an event stream to JSON.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/event-stream")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Which {
    session: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    status: Option<RunStatus>,
    limit: Option<usize>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Read)?;
    let wanted = RunsQuery {
        session: which.session.as_deref(),
        agent: which.agent.as_deref(),
        user: which.user.as_deref(),
        status: which.status,
        limit: which.limit.unwrap_or(100).min(500),
    };
    let runs: Vec<RunView> = app.list(&caller, wanted).await?;
    Ok(Json(json!({"runs": runs})))
}

/// Query with the session of a run whose id does not name it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct In {
    pub(super) session: Option<String>,
    wait: Option<f64>,
}

async fn one(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(of): Query<In>,
) -> Result<Json<RunView>, ApiError> {
    caller.require(Scope::Read)?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    if let Some(wait) = of.wait.filter(|wait| *wait > 0.0) {
        // The response shows whether the run ended in time.
        let _ = tokio::time::timeout(Duration::from_secs_f64(wait.min(LONGEST_WAIT)), run.ended()).await;
    }
    Ok(Json(run.view().await?))
}

type Shown = Result<(StatusCode, Json<RunView>), ApiError>;

async fn cancel(State(app): State<App>, caller: Caller, Path(run): Path<String>, Query(of): Query<In>) -> Shown {
    caller.require(Scope::Run)?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    let is_stopped = run.call_off().await?;
    stopped(&run, is_stopped).await
}

async fn pause(State(app): State<App>, caller: Caller, Path(run): Path<String>, Query(of): Query<In>) -> Shown {
    caller.require(Scope::Run)?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    let is_stopped = run.tell_run(Signal::Pause).await?;
    stopped(&run, is_stopped).await
}

/// Returns the view of a run that the user stopped: it is not resumed without a request, even after
/// a restart of the server.
async fn stopped(run: &FoundRun, is_stopped: bool) -> Shown {
    let view = run.view().await?;
    match view.status {
        _ if is_stopped => Ok((StatusCode::ACCEPTED, Json(view))),
        RunStatus::Stopped | RunStatus::Queued => {
            let message = "the run is active in another process, or about to resume: retry the request";
            Err(ApiError::conflict("elsewhere", message))
        }
        _ => Ok((StatusCode::OK, Json(view))),
    }
}

async fn resume(State(app): State<App>, caller: Caller, Path(run): Path<String>, Query(of): Query<In>) -> Shown {
    caller.require(Scope::Run)?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    let run = app.go_on(&caller, &run, Vec::new(), |request| request).await?;
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Steering {
    input: Input,
}

async fn steer(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(of): Query<In>,
    JsonBody(said): JsonBody<Steering>,
) -> Shown {
    caller.require(Scope::Run)?;
    let message = app.with_files(&caller, said.input.into_message()?).await?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    let over = || ApiError::conflict("over", "the run is not active: start another one in its session");
    if !run.tell_run(Signal::Steer(message)).await? {
        return Err(over());
    }
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}
