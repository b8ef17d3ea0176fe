//! JSON lines protocol of NexAU's programs: requests by id, frames of events, results.

use std::sync::Arc;

use agent::{Message, Result, RunRequest};
use futures::{StreamExt, future::BoxFuture};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, Serving};
use crate::{
    ApiError, FoundRun, Start,
    ag_ui::Projection,
    follow::{self, WhenGone, follow},
    snake_case::snake_case,
    speech::Ending,
};

/// Name and version of the protocol.
const VERSION: &str = "2.0-stream";

/// Error codes.
const NO_METHOD: i32 = -32601;
const INVALID: i32 = -32602;
const FAILED: i32 = -32000;

#[derive(Deserialize)]
pub(super) struct Request {
    id: Value,
    method: String,
    #[serde(default)]
    params: Value,
}

/// Parameters of `agent.stream` and `agent.query`.
#[derive(Deserialize)]
struct Ask {
    messages: Messages,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    context: Option<std::collections::BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Messages {
    Text(String),
    Many(Vec<Said>),
}

#[derive(Deserialize)]
struct Said {
    role: String,
    #[serde(default)]
    content: Value,
}

/// Parameters of `agent.stop`.
#[derive(Deserialize)]
struct Stop {
    session_id: String,
}

/// Error: its code and message.
struct Refusal(i32, String);

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        let code = if error.status().is_client_error() { INVALID } else { FAILED };
        Self(code, error.message().to_owned())
    }
}

/// Connection of one client program.
pub(super) struct Program(Serving);

impl Desk for Program {
    type Message = Request;

    fn new(serving: Serving) -> Self {
        Self(serving)
    }

    fn take(self: Arc<Self>, request: Request) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(self.answer(request)))
    }

    async fn refuse(&self, why: String) {
        self.reply(&Value::Null, Err(Refusal(INVALID, why))).await;
    }
}

impl Program {
    async fn answer(self: Arc<Self>, request: Request) {
        let answered = match request.method.as_str() {
            "agent.stream" => self.stream(&request).await,
            "agent.query" => self.query(&request).await,
            "agent.stop" => self.stop(&request),
            other => Err(Refusal(NO_METHOD, format!("unknown method '{other}'"))),
        };
        self.reply(&request.id, answered).await;
    }

    async fn stream(&self, request: &Request) -> Result<Value, Refusal> {
        let open = self.0.app.stream()?;
        let run = self.begin(request).await?;
        let projection = Projection::new(&*run.session(), run.id());
        let mut events = Box::pin(follow(open, run.clone(), None, WhenGone::Cancel, projection).await?);
        while let Some(event) = events.next().await {
            let event = snake_case(serde_json::to_value(event).expect("events have string keys"));
            self.0.out.tell(&json!({"jsonrpc": VERSION, "id": request.id, "event": event})).await;
        }
        Ok(Value::Null)
    }

    async fn query(&self, request: &Request) -> Result<Value, Refusal> {
        let run = self.begin(request).await?;
        let _given_up = run.viewer();
        match follow::ending(&run).await? {
            Ending::Finished { answer, .. } => Ok(answer.into()),
            Ending::Interrupted(questions) => {
                let asked = json!({"run": run.id(), "session_id": &*run.session(), "questions": questions});
                Err(Refusal(FAILED, format!("the run waits for answers: {asked}")))
            }
            Ending::Failed { message, .. } => Err(Refusal(FAILED, message)),
            Ending::Paused => Err(Refusal(FAILED, "the run was paused".into())),
            Ending::Cancelled => Err(Refusal(FAILED, "the run was cancelled".into())),
        }
    }

    fn stop(&self, request: &Request) -> Result<Value, Refusal> {
        let stop: Stop = read(&request.params)?;
        let runs = self.0.app.runs(&self.0.caller).into_iter().filter(|run| *run.session() == *stop.session_id);
        let stopped = runs.filter(FoundRun::cancel).count();
        Ok(json!({"status": if stopped > 0 { "success" } else { "not_running" }}))
    }

    async fn begin(&self, request: &Request) -> Result<FoundRun, Refusal> {
        let ask: Ask = read(&request.params)?;
        let mut wanted = RunRequest::new(ask.messages.read()?);
        wanted.inputs = ask.context.unwrap_or_default();
        let start = Start::new(&*self.0.agent, wanted);
        Ok(self.0.app.start(&self.0.caller, ask.session_id.into_iter().fold(start, Start::session)).await?)
    }

    async fn reply(&self, id: &Value, answered: Result<Value, Refusal>) {
        let mut reply = json!({"jsonrpc": VERSION, "id": id});
        match answered {
            Ok(result) => reply["result"] = result,
            Err(Refusal(code, message)) => reply["error"] = json!({"code": code, "message": message}),
        }
        self.0.out.tell(&reply).await;
    }
}

impl Messages {
    /// Returns the user messages after the last assistant message: the session has the rest.
    fn read(self) -> Result<Vec<Message>, Refusal> {
        let said = match self {
            Self::Text(text) => vec![text],
            Self::Many(all) => {
                let since = all.rsplit(|said| said.role == "assistant").next().unwrap_or_default();
                since.iter().filter(|said| said.role == "user").map(|said| text(&said.content)).collect()
            }
        };
        match said.iter().all(|text| text.trim().is_empty()) {
            true => Err(Refusal(
                INVALID,
                "'messages' contains no new message: send a text, or messages that end with the user's".into(),
            )),
            false => Ok(said.into_iter().map(Message::user).collect()),
        }
    }
}

/// Returns the text of a message's content: the string itself, or its text blocks.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        blocks => blocks
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn read<T: for<'de> Deserialize<'de>>(params: &Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|e| Refusal(INVALID, format!("invalid parameters: {e}")))
}
