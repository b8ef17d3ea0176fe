//! `/api/runs`: starting runs, looking at them, and steering them.

use std::{collections::BTreeMap, time::Duration};

use agent::{ModelParams, RunRequest, WhenBusy, WhenWaiting};
use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::future;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{events, input::Input};
use crate::{
    app::{App, FoundRun, RunStatus, RunView, Start},
    caller::{Caller, Scope},
    error::ApiError,
    extract::{JsonBody, Query},
    webhooks::Webhook,
};

/// How long a client may wait for a run's end in one request.
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

/// A run that is wanted.
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

/// Who is told what becomes of the run.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "an address, or {\"url\": .., \"events\": [..]}")]
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
            // It is merged into the provider's request and wins: over the model, its tools, and who pays.
            return Err(ApiError::invalid("'params.extra' is for the server's own side: leave it out"));
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
    start = webhook.into_iter().fold(start, Start::webhook);
    if let Some(key) = headers.get("idempotency-key") {
        let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= 200);
        start = start.key(key.ok_or_else(|| ApiError::invalid("an Idempotency-Key has 1 to 200 visible letters"))?);
    }
    let run = app.start(&caller, start).await?;
    let name = HeaderValue::from_str(run.id()).map_err(|_| ApiError::internal())?;
    let mut response = if wants_stream(&headers) {
        events::stream(&app, &run, &events::Wanted::default()).await?
    } else {
        let status = if run.is_new() { StatusCode::ACCEPTED } else { StatusCode::OK };
        (status, Json(run.view().await?)).into_response()
    };
    response.headers_mut().insert("agent-run", name);
    Ok(response)
}

/// True if the client would rather have events than JSON.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/event-stream")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Which {
    session: Option<String>,
    agent: Option<String>,
    limit: Option<usize>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<impl IntoResponse, ApiError> {
    caller.require(Scope::Read)?;
    let fits = |run: &FoundRun| {
        which.session.as_deref().is_none_or(|session| *run.session() == *session)
            && which.agent.as_deref().is_none_or(|agent| run.agent() == agent)
    };
    let runs: Vec<_> = app.runs(&caller).into_iter().filter(fits).take(which.limit.unwrap_or(100).min(500)).collect();
    let runs: Vec<RunView> = future::try_join_all(runs.iter().map(FoundRun::view)).await?;
    Ok(Json(json!({"runs": runs})))
}

/// In which session a run is, if its id does not say so.
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
        // Whether it ended in time, the answer says.
        let _ = tokio::time::timeout(Duration::from_secs_f64(wait.min(LONGEST_WAIT)), run.ended()).await;
    }
    Ok(Json(run.view().await?))
}

type Shown = Result<(StatusCode, Json<RunView>), ApiError>;

async fn cancel(app: State<App>, caller: Caller, run: Path<String>, of: Query<In>) -> Shown {
    stop(app, caller, run, of, FoundRun::cancel).await
}

async fn pause(app: State<App>, caller: Caller, run: Path<String>, of: Query<In>) -> Shown {
    stop(app, caller, run, of, FoundRun::pause).await
}

/// Stops a run as a person wishes: it is not gone on with before somebody says so, even if the server begins anew.
async fn stop(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    Query(of): Query<In>,
    stop: impl FnOnce(&FoundRun) -> bool,
) -> Shown {
    caller.require(Scope::Run)?;
    let run = app.run(&caller, &run, of.session.as_deref()).await?;
    if stop(&run) {
        return Ok((StatusCode::ACCEPTED, Json(run.view().await?)));
    }
    let view = run.view().await?;
    if view.status == RunStatus::Stopped {
        let message = "another process has the run, or goes on with it in a moment: ask there, or ask again";
        return Err(ApiError::conflict("elsewhere", message));
    }
    Ok((StatusCode::OK, Json(view)))
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
    let over = || ApiError::conflict("over", "the run is not under way: start another one in its session");
    run.handle().ok_or_else(over)?.steer(message)?;
    Ok((StatusCode::ACCEPTED, Json(run.view().await?)))
}
