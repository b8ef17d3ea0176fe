//! Endpoints below `/v1`: models, chat completions, responses.

use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::{
    begin::begin,
    chat::{Chat, Head},
    error::{OpenAiError, of_whole},
    response::Told,
    wire::Wire,
};
use crate::{
    ApiError, App, Caller, FoundRun, Scope,
    clock::now,
    conversation::Began,
    extract::JsonBody,
    follow::{finish, follow},
    sse,
};

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{model}", get(model))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/responses", post(responses))
}

async fn models(State(app): State<App>, caller: Caller) -> Result<Json<Value>, OpenAiError> {
    caller.require(Scope::Read)?;
    let models: Vec<_> = app.agents(&caller).map(|served| described(served.name())).collect();
    Ok(Json(json!({"object": "list", "data": models})))
}

async fn model(State(app): State<App>, caller: Caller, Path(model): Path<String>) -> Result<Json<Value>, OpenAiError> {
    caller.require(Scope::Read)?;
    Ok(Json(described(app.agent(&caller, &model)?.name())))
}

fn described(agent: &str) -> Value {
    json!({"id": agent, "object": "model", "created": 0, "owned_by": "agent-server"})
}

async fn chat(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<JsonBody<Map<String, Value>>, ApiError>,
) -> Result<Response, OpenAiError> {
    let asked = Wire::Chat.read(body?.0)?;
    let open = asked.stream.then(|| app.stream()).transpose()?;
    let (Began { run, after }, gone) = begin(&app, &caller, &headers, &asked).await?;
    let with_usage = asked.body.get("stream_options").is_some_and(|options| options["include_usage"] == true);
    let head = head(&run, asked.agent).await?;
    let mut chat = Chat::new(head, with_usage);
    if let Some(open) = open {
        return Ok(sse::plain(follow(open, run, after, gone, chat).await.map_err(OpenAiError::of_run)?));
    }
    let ending = finish(&run, after, gone, &mut chat).await.map_err(OpenAiError::of_run)?;
    let whole = chat.whole(&ending).map_err(|(kind, message)| of_whole(kind, message))?;
    Ok(Json(whole).into_response())
}

async fn responses(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<JsonBody<Map<String, Value>>, ApiError>,
) -> Result<Response, OpenAiError> {
    let asked = Wire::Responses.read(body?.0)?;
    let open = asked.stream.then(|| app.stream()).transpose()?;
    let (Began { run, after }, gone) = begin(&app, &caller, &headers, &asked).await?;
    let previous = asked.body.get("previous_response_id").cloned().unwrap_or_default();
    let client_tools = asked.client_tools();
    let head = head(&run, asked.agent).await?;
    let mut told = Told::new(head, client_tools, previous);
    if let Some(open) = open {
        return Ok(sse::plain(follow(open, run, after, gone, told).await.map_err(OpenAiError::of_run)?));
    }
    let ending = finish(&run, after, gone, &mut told).await.map_err(OpenAiError::of_run)?;
    let whole = told.whole(&ending).map_err(|(kind, message)| of_whole(kind, message))?;
    Ok(Json(whole).into_response())
}

/// Returns the response head, which is the same for repeated requests of the same run.
async fn head(run: &FoundRun, agent: String) -> Result<Head, OpenAiError> {
    let began = run.record().await.map_err(OpenAiError::of_run)?.map_or_else(now, |record| record.started);
    Ok(Head { run: run.id().to_owned(), agent, created: began / 1_000 })
}
