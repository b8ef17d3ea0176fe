//! Questions of tools and hooks.

use std::time::Duration;

use serde_json::{Value, json};

use super::{RunCx, clock::millis};
use crate::state::{Answer, Question, digest};
use crate::{
    error::{Error, ErrorKind, Result, Retry},
    journal::EntryBody,
};

/// Builder of a question that a tool or a hook asks.
///
/// ```
/// use agent_core::{Ask, Result, ToolRequest};
/// use serde_json::json;
/// use std::time::Duration;
///
/// fn confirm(request: &ToolRequest) -> Result<bool> {
///     let ask = Ask::new("confirm", json!({"what": request.call.name}))
///         .schema(json!({"type": "boolean"}))
///         .within(Duration::from_secs(3600))
///         .or(false)
///         .only("ada");
///     request.ask_with(ask)?.parse()
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Ask {
    kind: String,
    payload: Value,
    nonce: Option<String>,
    schema: Option<Value>,
    within: Option<Duration>,
    default: Option<Value>,
    actor: Option<String>,
    bound: Value,
}

impl Ask {
    /// Creates a question of this kind. `payload` is shown to the person who answers: it must not
    /// contain secrets.
    pub fn new(kind: impl Into<String>, payload: Value) -> Self {
        let (kind, nonce) = (kind.into(), None);
        Self { kind, payload, nonce, schema: None, within: None, default: None, actor: None, bound: Value::Null }
    }

    /// Binds the answer to `what` as well, without showing it: if it has changed when the run
    /// resumes, the question is asked again.
    pub fn about(mut self, what: Value) -> Self {
        self.bound = what;
        self
    }

    /// Distinguishes questions of the same kind and place.
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.nonce = Some(nonce.into());
        self
    }

    /// Sets the JSON Schema that an answer must match. An answer that does not match is refused,
    /// and the run keeps waiting.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets the time in which the question can be answered, measured from when it is first asked.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// Sets the answer that applies after expiry; without a default, asking fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout).
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// Sets the only actor who may answer.
    pub fn only(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// The id of the question at `place`.
    fn id(&self, place: &str) -> String {
        match &self.nonce {
            Some(nonce) => format!("{place}/{}/{nonce}", self.kind),
            None => format!("{place}/{}", self.kind),
        }
    }

    /// All values that an answer is bound to, besides the run and the attempt.
    fn content(&self, id: &str, step: u32, subject: &Value) -> Value {
        json!([id, step, subject, self.bound, self.payload, self.schema, self.default, self.actor])
    }

    fn question(self, id: String, digest: String, now: u64) -> Question {
        Question {
            id,
            kind: self.kind,
            payload: self.payload,
            digest,
            schema: self.schema.map(Box::new),
            expires: self.within.map(|time| now.saturating_add(millis(time))),
            default: self.default.map(Box::new),
            actor: self.actor,
        }
    }
}

impl RunCx {
    /// Asks at `place` about `subject`, in step `step` (0 before the first).
    pub(crate) fn ask_at(&self, place: &str, step: u32, subject: &Value, ask: Ask) -> Result<Answer> {
        self.may_wait("a question was asked")?;
        let (mut id, run) = (ask.id(place), &self.ids().run_id);
        let mut about = ask.content(&id, step, subject);
        let mut pending = self.pending();
        // Another hook may ask something else of this kind in this place: both questions are open
        // side by side.
        if pending.asks(&id, &about) {
            id = ask.id(&format!("{place}/{}", self.1.position()));
            about = ask.content(&id, step, subject);
        }
        let is_about = |given: &str| digest::of(run, digest::attempt(given), &about) == given;
        if let Some(answer) = pending.answers.get(&id) {
            if is_about(&answer.digest) {
                return Ok(answer.clone());
            }
            pending.answers.remove(&id); // it answered another question
        }
        // An open question that is asked again is the same question: answers to the earlier one are
        // accepted.
        let question = match pending.open.get(&id).filter(|open| is_about(&open.digest)) {
            Some(open) => open.clone(),
            None => {
                let digest = digest::of(run, self.0.log.attempt(), &about);
                ask.question(id, digest, self.now())
            }
        };
        if question.expires.is_some() && question.is_expired(self.now()) {
            let late = || {
                Error::new(ErrorKind::Timeout, format!("nobody answered question '{}' in time", question.id))
                    .with_retry(Retry::Permanent)
            };
            let value = question.default.clone().ok_or_else(late)?;
            let answer = Answer { digest: question.digest, ..Answer::from(*value) };
            self.0.log.record(EntryBody::answered(&question.id, &answer));
            pending.answers.insert(question.id, answer.clone());
            return Ok(answer);
        }
        pending.ask(question.clone());
        Err(Error::interrupted(question))
    }
}
