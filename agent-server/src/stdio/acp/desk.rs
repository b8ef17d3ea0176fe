//! Requests from and to an ACP client.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use agent::history::History;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{content, told};
use crate::{
    ApiError, App, Caller,
    stdio::{Serving, lines::Out},
};

/// Supported protocol version.
const VERSION: u64 = 1;

/// JSON-RPC error, with the protocol's codes.
#[derive(Debug)]
pub(super) struct Refusal {
    code: i32,
    message: String,
}

impl Refusal {
    pub(super) fn garbled(message: impl Into<String>) -> Self {
        Self { code: -32700, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }

    fn no_method(method: &str) -> Self {
        Self { code: -32601, message: format!("unknown method '{method}'") }
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        match error.status().is_client_error() {
            true => Self::invalid(error.message()),
            false => Self::failed(error.message()),
        }
    }
}

/// Connection of one client.
pub(in crate::stdio) struct Editor {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) agent: Arc<str>,
    out: Out,
    /// Pending requests to the client, by request id.
    asked: Mutex<HashMap<u64, oneshot::Sender<Option<Value>>>>,
    next: AtomicU64,
    /// Cancellation token of each session's active turn.
    pub(super) turns: Mutex<HashMap<String, CancellationToken>>,
    /// Session of each running prompt, by request id.
    prompts: Mutex<HashMap<String, String>>,
    /// Working directories of sessions without a prompt so far.
    pub(super) folders: Mutex<HashMap<String, String>>,
    /// True if the client shows forms to its user.
    pub(super) shows_forms: AtomicBool,
}

/// Parameters of methods about a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    pub(super) session_id: String,
}

/// Parameters of a prompt.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: String,
    prompt: Vec<Value>,
}

impl Editor {
    pub(super) fn of(Serving { app, caller, agent, out }: Serving) -> Self {
        Self {
            app,
            caller,
            agent,
            out,
            asked: Mutex::default(),
            next: AtomicU64::new(0),
            turns: Mutex::default(),
            prompts: Mutex::default(),
            folders: Mutex::default(),
            shows_forms: AtomicBool::new(false),
        }
    }

    /// Handles a request.
    pub(super) async fn answer(self: Arc<Self>, id: Value, method: String, params: Value) {
        let answered = match method.as_str() {
            "initialize" => Ok(self.initialize(&params)),
            "authenticate" => Ok(json!({})),
            "session/new" => self.begin_session(&params),
            "session/load" => self.load(&params).await,
            "session/resume" => self.resume_session(&params).await,
            "session/list" => self.list_sessions(&params).await,
            "session/close" => self.close_session(&params),
            "session/delete" => self.delete_session(&params).await,
            "session/prompt" => self.prompt(&id, &params).await,
            other => Err(Refusal::no_method(other)),
        };
        self.reply(&id, answered).await;
    }

    fn initialize(&self, params: &Value) -> Value {
        let forms = params.pointer("/clientCapabilities/elicitation/form").is_some_and(|form| !form.is_null());
        self.shows_forms.store(forms, Ordering::Relaxed);
        json!({
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
            },
            "agentInfo": {"name": &*self.agent, "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [],
        })
    }

    /// Handles a notification.
    pub(super) fn hear(&self, method: &str, params: &Value) {
        let session = match method {
            "session/cancel" => read::<About>(params).ok().map(|about| about.session_id),
            "$/cancel_request" => lock(&self.prompts).get(&params["requestId"].to_string()).cloned(),
            _ => None,
        };
        if let Some(turn) = session.and_then(|session| lock(&self.turns).get(&session).cloned()) {
            turn.cancel();
        }
    }

    /// Delivers the client's response; none if it was an error.
    pub(super) fn answered(&self, id: &Value, result: Option<Value>) {
        if let Some(asker) = id.as_u64().and_then(|id| lock(&self.asked).remove(&id)) {
            let _ = asker.send(result);
        }
    }

    /// Sends a request to the client; returns none if the client refuses.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let (id, (asker, answer)) = (self.next.fetch_add(1, Ordering::Relaxed), oneshot::channel());
        lock(&self.asked).insert(id, asker);
        self.out.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        answer.await.ok().flatten()
    }

    /// Sends an update about a session.
    pub(super) async fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.out.tell(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params})).await;
    }

    pub(super) async fn reply(&self, id: &Value, answered: Result<Value, Refusal>) {
        let mut reply = json!({"jsonrpc": "2.0", "id": id});
        match answered {
            Ok(result) => reply["result"] = result,
            Err(Refusal { code, message }) => reply["error"] = json!({"code": code, "message": message}),
        }
        self.out.tell(&reply).await;
    }

    /// Sends the history of a session, which then continues.
    async fn load(&self, params: &Value) -> Result<Value, Refusal> {
        let About { session_id } = read(params)?;
        for message in self.history(&session_id).await?.iter() {
            for update in told::before(message) {
                self.update(&session_id, update).await;
            }
        }
        Ok(Value::Null)
    }

    /// Returns the history of a session.
    ///
    /// # Errors
    /// If there is no such session.
    pub(super) async fn history(&self, session: &str) -> Result<History, Refusal> {
        let id = self.app.session_id(&self.caller, session);
        let kept = self.app.sessions().session(&id, &*self.agent);
        let history = kept.history().await.map_err(ApiError::from)?;
        match history.is_empty() {
            true => Err(Refusal::invalid(format!("unknown session '{session}': create a new one"))),
            false => Ok(history),
        }
    }

    async fn prompt(&self, request: &Value, params: &Value) -> Result<Value, Refusal> {
        let Prompt { session_id, prompt } = read(params)?;
        let message = content::message(&prompt)?;
        let turn = CancellationToken::new();
        {
            let mut turns = lock(&self.turns);
            if turns.contains_key(&session_id) {
                return Err(Refusal::invalid("the session has an active turn: cancel it, or wait for its end"));
            }
            turns.insert(session_id.clone(), turn.clone());
        }
        let request = request.to_string();
        lock(&self.prompts).insert(request.clone(), session_id.clone());
        let _over = Over(self, &session_id, request);
        self.store_folder(&session_id).await?;
        self.turn(&session_id, message, &turn).await.map(|reason| json!({"stopReason": reason}))
    }
}

/// Guard that removes a turn when it is over, in whatever way.
struct Over<'a>(&'a Editor, &'a str, String);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        lock(&self.0.turns).remove(self.1);
        lock(&self.0.prompts).remove(&self.2);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(params: &Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|e| Refusal::invalid(format!("invalid parameters: {e}")))
}
