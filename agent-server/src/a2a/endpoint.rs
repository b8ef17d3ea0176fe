//! JSON-RPC endpoint `POST /a2a/{agent}`.

use agent::RunRequest;
use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    card,
    message::Send,
    push::{self, Named, Set},
    rpc::{Request, RpcError, reply},
    task::{Names, task},
    told::Told,
};
use crate::{
    ApiError, App, Caller, FoundRun, Scope, Start,
    app::OpenStream,
    conversation::{Began, check_media},
    extract::JsonBody,
    follow::{self, WhenGone, follow},
    sse,
};

pub(crate) fn router() -> Router<App> {
    Router::new().route("/a2a/{agent}", post(call))
}

/// Routes of the agent cards: for authenticated callers, or public.
pub(crate) fn cards() -> Router<App> {
    Router::new()
        .route("/.well-known/agent-card.json", get(card::of_server))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(card::of_agent))
}

/// Handler of one request: the caller and the agent.
struct A2aHandler {
    app: App,
    caller: Caller,
    agent: String,
}

/// Parameters of methods that address a task.
#[derive(Deserialize)]
struct About {
    id: String,
}

async fn call(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    JsonBody(request): JsonBody<Request>,
) -> Result<Response, ApiError> {
    app.agent(&caller, &agent)?;
    let desk = A2aHandler { app, caller, agent };
    let answered = desk.answer(&request).await;
    Ok(answered.unwrap_or_else(|e| Json(reply(&request.id, Err(e))).into_response()))
}

impl A2aHandler {
    async fn answer(&self, request: &Request) -> Result<Response, RpcError> {
        let whole = |result| Ok(Json(reply(&request.id, Ok(result))).into_response());
        match request.method.as_str() {
            "message/send" => {
                let send: Send = read(&request.params)?;
                let Began { run, .. } = self.begin(&send).await?;
                if send.configuration.blocking.unwrap_or(true) {
                    run.ended().await;
                }
                whole(task(&run).await?)
            }
            "message/stream" => {
                let open = self.app.stream()?;
                let began = self.begin(&read(&request.params)?).await?;
                self.stream(open, &request.id, began).await
            }
            "tasks/get" => whole(task(&self.run(&request.params, Scope::Read).await?).await?),
            "tasks/cancel" => {
                let run = self.run(&request.params, Scope::Run).await?;
                if !run.call_off().await? {
                    return Err(RpcError::not_cancelable());
                }
                run.ended().await;
                whole(task(&run).await?)
            }
            "tasks/resubscribe" => {
                let run = self.run(&request.params, Scope::Read).await?;
                self.stream(self.app.stream()?, &request.id, Began { run, after: None }).await
            }
            method => match method.strip_prefix("tasks/pushNotificationConfig/") {
                Some(act) => whole(self.push(act, &request.params).await?),
                None => Err(RpcError::unknown_method(method)),
            },
        }
    }

    /// Starts a run, or resumes the one that waits for this message.
    async fn begin(&self, send: &Send) -> Result<Began, RpcError> {
        let (app, caller, said) = (&self.app, &self.caller, &send.message);
        let Some(id) = &said.task_id else {
            let messages = vec![said.message()?];
            check_media(&messages)?;
            let body = serde_json::to_vec(&messages).unwrap_or_default();
            let start = Start::new(&self.agent, RunRequest::new(messages)).key_of("a2a", &said.message_id).body(&body);
            // A context of its own is derived from the message's id.
            let start = said.context_id.iter().fold(start, Start::session);
            let start = send.configuration.push_notification_config.iter().fold(start, |s, told| s.hook(told.hook()));
            let run = app.start(caller, start).await?;
            return Ok(Began { run, after: None });
        };
        caller.require(Scope::Answer)?;
        let run = self.of_agent(id).await?;
        let open = run.checkpoint().await?.filter(|open| !open.questions.is_empty());
        let over = || RpcError::unsupported("the task is not waiting for input: send a message without its id");
        let answers = said.answers(&open.ok_or_else(over)?.questions)?;
        let answers = answers.into_iter().map(|(id, answer)| (id, answer.by(caller.subject()))).collect();
        let after = follow::at_rest(app, &run).await?;
        let run = app.go_on(caller, &run, answers, |request| request).await?;
        Ok(Began { run, after: Some(after) })
    }

    /// Dispatches the methods for push notifications.
    async fn push(&self, act: &str, params: &Value) -> Result<Value, RpcError> {
        let (app, caller) = (&self.app, &self.caller);
        if app.webhook_secret(caller).is_none() {
            return Err(RpcError::no_push());
        }
        caller.require(Scope::Run)?;
        if act == "set" {
            let set: Set = read(params)?;
            return set.apply(app, &self.of_agent(&set.task_id).await?).await;
        }
        let named: Named = read(params)?;
        let (run, id) = (self.of_agent(&named.id).await?, named.push_notification_config_id.as_deref());
        match act {
            "get" => push::get(app, &run, id).await,
            "list" => push::list(app, &run).await,
            "delete" => push::delete(app, &run, id).await,
            other => Err(RpcError::unknown_method(&format!("tasks/pushNotificationConfig/{other}"))),
        }
    }

    async fn stream(&self, open: OpenStream, request: &Value, began: Began) -> Result<Response, RpcError> {
        let Began { run, after } = began;
        let names = Names { task: run.id().to_owned(), context: run.session().to_string() };
        // A task can be polled again: disconnecting does not cancel it.
        Ok(sse::plain(follow(open, run, after, WhenGone::GoOn, Told::new(request.clone(), names)).await?))
    }

    async fn run(&self, params: &Value, scope: Scope) -> Result<FoundRun, RpcError> {
        self.caller.require(scope)?;
        let About { id } = read(params)?;
        self.of_agent(&id).await
    }

    async fn of_agent(&self, id: &str) -> Result<FoundRun, RpcError> {
        let run = self.app.run(&self.caller, id, None).await?;
        match run.agent() == self.agent {
            true => Ok(run),
            false => Err(ApiError::not_found(format!("unknown task '{id}'")).into()),
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(params: &Value) -> Result<T, RpcError> {
    T::deserialize(params).map_err(|e| RpcError::params(format!("invalid parameters: {e}")))
}
