//! Operations of the protocol, and the JSON-RPC endpoint `POST /a2a/{agent}`.

use agent::RunRequest;
use axum::{
    Json, Router,
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use super::{
    card, list,
    message::Send,
    push::{self, Named, Set},
    rest,
    rpc::{Request, RpcError, reply},
    task::{Names, task},
    told::{Framing, Told},
    version::Version,
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
    Router::new().route("/a2a/{agent}", post(call)).merge(rest::router())
}

/// Routes of the agent cards: for authenticated callers, or public.
pub(crate) fn cards() -> Router<App> {
    Router::new()
        .route("/.well-known/agent-card.json", get(card::of_server))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(card::of_agent))
}

/// Operation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

impl Operation {
    /// Finds the operation of a JSON-RPC method, and the version that names it so.
    fn of_method(method: &str) -> Option<(Self, Version)> {
        let (v03, v10) = (Version::V03, Version::V10);
        Some(match method {
            "message/send" => (Self::Send, v03),
            "message/stream" => (Self::Stream, v03),
            "tasks/get" => (Self::Get, v03),
            "tasks/cancel" => (Self::Cancel, v03),
            "tasks/resubscribe" => (Self::Subscribe, v03),
            "tasks/pushNotificationConfig/set" => (Self::SetPush, v03),
            "tasks/pushNotificationConfig/get" => (Self::GetPush, v03),
            "tasks/pushNotificationConfig/list" => (Self::ListPush, v03),
            "tasks/pushNotificationConfig/delete" => (Self::DeletePush, v03),
            "SendMessage" => (Self::Send, v10),
            "SendStreamingMessage" => (Self::Stream, v10),
            "GetTask" => (Self::Get, v10),
            "ListTasks" => (Self::List, v10),
            "CancelTask" => (Self::Cancel, v10),
            "SubscribeToTask" => (Self::Subscribe, v10),
            "CreateTaskPushNotificationConfig" => (Self::SetPush, v10),
            "GetTaskPushNotificationConfig" => (Self::GetPush, v10),
            "ListTaskPushNotificationConfigs" => (Self::ListPush, v10),
            "DeleteTaskPushNotificationConfig" => (Self::DeletePush, v10),
            "GetExtendedAgentCard" => (Self::ExtendedCard, v10),
            _ => return None,
        })
    }
}

/// Answer to an operation.
pub(super) enum Answer {
    Whole(Value),
    Stream(Response),
}

/// Handler of one request: the caller, the agent and the version of the protocol.
pub(super) struct A2aHandler {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) agent: String,
    pub(super) version: Version,
}

/// Parameters of operations that address a task.
#[derive(Deserialize)]
struct About {
    id: String,
}

async fn call(
    State(app): State<App>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    JsonBody(request): JsonBody<Request>,
) -> Result<Response, ApiError> {
    app.agent(&caller, &agent)?;
    let answered = async {
        let named = Version::named(&headers, query.as_deref())?;
        let (operation, version) =
            Operation::of_method(&request.method).ok_or_else(|| RpcError::unknown_method(&request.method, named))?;
        let handler = A2aHandler { app, caller, agent, version };
        let answered = handler.answer(operation, &request.params, Some(&request.id)).await;
        answered.map_err(|error| error.in_version(version))
    };
    Ok(match answered.await {
        Ok(Answer::Stream(response)) => response,
        Ok(Answer::Whole(value)) => Json(reply(&request.id, Ok(value))).into_response(),
        Err(error) => Json(reply(&request.id, Err(error))).into_response(),
    })
}

impl A2aHandler {
    /// Carries out an operation. With a `request` id, the events of a stream are JSON-RPC
    /// responses.
    pub(super) async fn answer(
        &self,
        operation: Operation,
        params: &Value,
        request: Option<&Value>,
    ) -> Result<Answer, RpcError> {
        let version = self.version;
        match operation {
            Operation::Send => {
                let send: Send = read(params)?;
                let Began { run, .. } = self.begin(&send).await?;
                if send.configuration.waits(version) {
                    run.ended().await;
                }
                Ok(Answer::Whole(version.payload(task(&run).await?)))
            }
            Operation::Stream => {
                let open = self.app.stream()?;
                let began = self.begin(&read(params)?).await?;
                self.stream(open, request, began).await
            }
            Operation::Get => self.whole(&self.run(params, Scope::Read).await?).await,
            Operation::List => {
                self.caller.require(Scope::Read)?;
                let listed = list::list(&self.app, &self.caller, &self.agent, &read(params)?).await?;
                Ok(Answer::Whole(listed))
            }
            Operation::Cancel => {
                let run = self.run(params, Scope::Run).await?;
                if !run.call_off().await? {
                    return Err(RpcError::not_cancelable());
                }
                run.ended().await;
                self.whole(&run).await
            }
            Operation::Subscribe => {
                let run = self.run(params, Scope::Read).await?;
                if version == Version::V10 && run.view().await?.status.is_over() {
                    return Err(RpcError::unsupported("the task is over: get it instead"));
                }
                self.stream(self.app.stream()?, request, Began { run, after: None }).await
            }
            Operation::ExtendedCard => Err(RpcError::unsupported("the agent has no extended card")),
            Operation::SetPush | Operation::GetPush | Operation::ListPush | Operation::DeletePush => {
                self.push(operation, params).await.map(Answer::Whole)
            }
        }
    }

    async fn whole(&self, run: &FoundRun) -> Result<Answer, RpcError> {
        Ok(Answer::Whole(self.version.shape(task(run).await?)))
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
            let push = send.configuration.push().map(|config| config.hook(self.version));
            let run = app.start(caller, push.into_iter().fold(start, Start::hook)).await?;
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

    /// Carries out the operations on push notifications.
    async fn push(&self, operation: Operation, params: &Value) -> Result<Value, RpcError> {
        let (app, caller) = (&self.app, &self.caller);
        if app.webhook_secret(caller).is_none() {
            return Err(RpcError::no_push());
        }
        caller.require(Scope::Run)?;
        if operation == Operation::SetPush {
            let set = Set::read(params, self.version)?;
            return set.apply(app, &self.of_agent(&set.task_id).await?, self.version).await;
        }
        let named = Named::read(params, self.version)?;
        let (run, id) = (self.of_agent(&named.task).await?, named.config.as_deref());
        match operation {
            Operation::GetPush => push::get(app, &run, id, self.version).await,
            Operation::ListPush => push::list(app, &run, self.version).await,
            _ => push::delete(app, &run, id, self.version).await,
        }
    }

    async fn stream(&self, open: OpenStream, request: Option<&Value>, began: Began) -> Result<Answer, RpcError> {
        let Began { run, after } = began;
        let names = Names { task: run.id().to_owned(), context: run.session().to_string() };
        let framing = Framing { version: self.version, request: request.cloned() };
        // A task can be polled again: disconnecting does not cancel it.
        let events = follow(open, run, after, WhenGone::GoOn, Told::new(framing, names)).await?;
        Ok(Answer::Stream(sse::plain(events)))
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

pub(super) fn read<T: for<'de> Deserialize<'de>>(params: &Value) -> Result<T, RpcError> {
    T::deserialize(params).map_err(|e| RpcError::params(format!("invalid parameters: {e}")))
}
