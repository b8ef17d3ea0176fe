//! Requests from and to an ACP client.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use agent::run::new_id;
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
    turns: Mutex<HashMap<String, CancellationToken>>,
}

/// Parameters of methods about a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    session_id: String,
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
        let (asked, turns) = (Mutex::default(), Mutex::default());
        Self { app, caller, agent, out, asked, next: AtomicU64::new(0), turns }
    }

    /// Handles a request.
    pub(super) async fn answer(self: Arc<Self>, id: Value, method: String, params: Value) {
        let answered = match method.as_str() {
            "initialize" => Ok(json!({
                "protocolVersion": VERSION,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
                },
                "agentInfo": {"name": &*self.agent, "version": env!("CARGO_PKG_VERSION")},
                "authMethods": [],
            })),
            "authenticate" => Ok(json!({})),
            "session/new" => Ok(json!({"sessionId": new_id()})),
            "session/load" => self.load(&params).await,
            "session/prompt" => self.prompt(&params).await,
            other => Err(Refusal::no_method(other)),
        };
        self.reply(&id, answered).await;
    }

    /// Handles a notification.
    pub(super) fn hear(&self, method: &str, params: &Value) {
        let about = read::<About>(params).ok().filter(|_| method == "session/cancel");
        if let Some(turn) = about.and_then(|about| lock(&self.turns).get(&about.session_id).cloned()) {
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
        let id = self.app.session_id(&self.caller, &session_id);
        let kept = self.app.sessions().session(&id, &*self.agent);
        let history = kept.history().await.map_err(ApiError::from)?;
        if history.is_empty() {
            return Err(Refusal::invalid(format!("unknown session '{session_id}': create a new one")));
        }
        for message in history.iter() {
            for update in told::before(message) {
                self.update(&session_id, update).await;
            }
        }
        Ok(Value::Null)
    }

    async fn prompt(&self, params: &Value) -> Result<Value, Refusal> {
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
        let _over = Over(self, &session_id);
        self.turn(&session_id, message, &turn).await.map(|reason| json!({"stopReason": reason}))
    }
}

/// Guard that removes a turn when it is over, in whatever way.
struct Over<'a>(&'a Editor, &'a str);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        lock(&self.0.turns).remove(self.1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T: for<'de> Deserialize<'de>>(params: &Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|e| Refusal::invalid(format!("invalid parameters: {e}")))
}
