//! HTTP+JSON binding of version 1.0: resources below `/a2a/{agent}`.

use axum::{
    Router,
    extract::{Path, Query, RawQuery, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Map, Value, json};

use super::{
    endpoint::{A2aHandler, Answer, Operation},
    rpc::RpcError,
    version::Version,
};
use crate::{ApiError, App, Caller, extract::RawBody};

/// Media type of the binding.
const KIND: &str = "application/a2a+json";

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/a2a/{agent}/message:send", post(send))
        .route("/a2a/{agent}/message:stream", post(stream))
        .route("/a2a/{agent}/tasks", get(list))
        .route("/a2a/{agent}/tasks/{task}", get(task).post(task))
        .route("/a2a/{agent}/tasks/{task}/pushNotificationConfigs", get(configs).post(configs))
        .route("/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{config}", get(config).delete(config))
        .route("/a2a/{agent}/extendedAgentCard", get(extended_card))
}

/// A request, before its parameters are read.
struct Request {
    app: App,
    caller: Caller,
    headers: HeaderMap,
    query: Option<String>,
}

impl Request {
    /// Carries out an operation with the query's parameters, those of the body, and `more`.
    async fn answer(self, agent: String, operation: Operation, body: &[u8], more: Value) -> Response {
        let answered = async {
            let version = Version::named(&self.headers, self.query.as_deref())?;
            if version == Some(Version::V03) {
                return Err(RpcError::version("0.3"));
            }
            self.app.agent(&self.caller, &agent)?;
            let mut params = parameters(self.query.as_deref());
            params.extend(object(body)?);
            params.extend(more.as_object().cloned().unwrap_or_default());
            let handler = A2aHandler { app: self.app, caller: self.caller, agent, version: Version::V10 };
            handler.answer(operation, &params.into(), None).await
        };
        match answered.await {
            Ok(Answer::Stream(response)) => response,
            Ok(Answer::Whole(value)) => json_response(StatusCode::OK, &value),
            Err(error) => json_response(error.status(), &error.of_http()),
        }
    }
}

fn json_response(status: StatusCode, value: &Value) -> Response {
    let mut response = (status, value.to_string()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(KIND));
    response
}

/// Parameters of a query: numbers and truth values in their JSON form.
fn parameters(query: Option<&str>) -> Map<String, Value> {
    let uri = query.and_then(|query| format!("/?{query}").parse::<Uri>().ok());
    let pairs = uri.and_then(|uri| Query::<Vec<(String, String)>>::try_from_uri(&uri).ok());
    let pairs = pairs.map(|Query(pairs)| pairs).unwrap_or_default();
    let value = |text: String| match text.as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.parse::<i64>().map_or(Value::String(text), Value::from),
    };
    pairs.into_iter().map(|(name, text)| (name, value(text))).collect()
}

fn object(body: &[u8]) -> Result<Map<String, Value>, RpcError> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|e| RpcError::params(format!("the body must be a JSON object: {e}")))
}

async fn send(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Response {
    Request { app, caller, headers, query }.answer(agent, Operation::Send, &body, json!({})).await
}

async fn stream(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Response {
    Request { app, caller, headers, query }.answer(agent, Operation::Stream, &body, json!({})).await
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    Request { app, caller, headers, query }.answer(agent, Operation::List, &[], json!({})).await
}

async fn extended_card(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    Request { app, caller, headers, query }.answer(agent, Operation::ExtendedCard, &[], json!({})).await
}

/// `GET tasks/{id}`, `GET` or `POST tasks/{id}:subscribe`, and `POST tasks/{id}:cancel`.
async fn task(
    State(app): State<App>,
    caller: Caller,
    method: Method,
    Path((agent, task)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Response {
    let (operation, id) = match (task.split_once(':'), method == Method::GET) {
        (Some((id, "subscribe")), _) => (Operation::Subscribe, id),
        (Some((id, "cancel")), false) => (Operation::Cancel, id),
        (None, true) => (Operation::Get, task.as_str()),
        _ => return ApiError::not_found("unknown operation on a task").into_response(),
    };
    Request { app, caller, headers, query }.answer(agent, operation, &body, json!({ "id": id })).await
}

async fn configs(
    State(app): State<App>,
    caller: Caller,
    method: Method,
    Path((agent, task)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Response {
    let operation = if method == Method::GET { Operation::ListPush } else { Operation::SetPush };
    Request { app, caller, headers, query }.answer(agent, operation, &body, json!({ "taskId": task })).await
}

async fn config(
    State(app): State<App>,
    caller: Caller,
    method: Method,
    Path((agent, task, config)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let operation = if method == Method::GET { Operation::GetPush } else { Operation::DeletePush };
    let named = json!({"taskId": task, "id": config});
    Request { app, caller, headers, query }.answer(agent, operation, &[], named).await
}
