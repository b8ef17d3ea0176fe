//! Asking.

use std::time::Duration;

use serde_json::{Value, json};

use super::{RunCx, clock::millis};
use crate::state::{Answer, Question, digest};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::EntryBody,
};

/// A question as a tool or a hook puts it.
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
    /// A question of this kind. `payload` is shown to whoever answers: no secrets.
    pub fn new(kind: impl Into<String>, payload: Value) -> Self {
        let (kind, nonce) = (kind.into(), None);
        Self { kind, payload, nonce, schema: None, within: None, default: None, actor: None, bound: Value::Null }
    }

    /// Binds the answer to `what` too, which is not shown: if it is something else when the run goes on, it is asked again.
    pub fn about(mut self, what: Value) -> Self {
        self.bound = what;
        self
    }

    /// Tells questions of one kind and place apart.
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.nonce = Some(nonce.into());
        self
    }

    /// Sets the JSON Schema that an answer must fit. One that does not is refused, and the run goes on waiting.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets how long it can be answered, from when it is first asked.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// Sets the answer that holds when nobody answered in time; without one, asking fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout).
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// Sets who alone may answer.
    pub fn only(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// The id of the question in the place `place`.
    fn id(&self, place: &str) -> String {
        match &self.nonce {
            Some(nonce) => format!("{place}/{}/{nonce}", self.kind),
            None => format!("{place}/{}", self.kind),
        }
    }

    /// All that an answer is bound to, beside the run and the attempt.
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
    /// Asks in the place `place` about `subject`, in the step `step` (0 before the first).
    pub(crate) fn ask_at(&self, place: &str, step: u32, subject: &Value, ask: Ask) -> Result<Answer> {
        let (id, run) = (ask.id(place), &self.ids().run_id);
        let about = ask.content(&id, step, subject);
        let is_about = |given: &str| digest::of(run, digest::attempt(given), &about) == given;
        let mut pending = self.pending();
        if let Some(answer) = pending.answers.get(&id) {
            if is_about(&answer.digest) {
                return Ok(answer.clone());
            }
            pending.answers.remove(&id); // it was given to something else
        }
        // Asked before and still open, it is the same question: whoever looks at it may answer it.
        let question = match pending.open.get(&id).filter(|open| is_about(&open.digest)) {
            Some(open) => open.clone(),
            None => {
                let digest = digest::of(run, self.0.log.attempt(), &about);
                ask.question(id, digest, self.now())
            }
        };
        if question.expires.is_some() && question.is_expired(self.now()) {
            let late = || Error::new(ErrorKind::Timeout, format!("nobody answered question '{}' in time", question.id));
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
