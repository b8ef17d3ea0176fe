//! What a run waits for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Refusal, digest};

/// A question that must be answered before the run goes on.
///
/// [`answer`](Self::answer) makes the pair that [`RunRequest::resume_with`](crate::RunRequest::resume_with) takes:
///
/// ```no_run
/// # async fn example(agent: impl AsyncFn(agent_core::RunRequest), waiting: agent_core::Checkpoint) {
/// use agent_core::RunRequest;
///
/// let answers: Vec<_> = waiting.questions.iter().map(|question| question.answer(true)).collect();
/// agent(RunRequest::resume_with(waiting, answers)).await;
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The same whenever the question comes up again: `call_id/kind` in a tool call, under the parent's call id in a
    /// sub-agent.
    pub id: String,
    /// What kind of answer is wanted, such as `approval`.
    pub kind: String,
    /// What it is about, for whoever answers.
    pub payload: Value,
    /// Stands for all that was asked about: the run, the attempt that first asked, the step, the call with its tool and
    /// arguments, and what is shown. An answer names it, and holds for nothing else. Empty if no run asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The JSON Schema that an answer must fit; any answer will do without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<Value>>,
    /// Until when it can be answered, in milliseconds since 1970, UTC; without end if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// What holds when it has expired. Without one, whoever asked gets an error of kind
    /// [`Timeout`](crate::ErrorKind::Timeout).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Box<Value>>,
    /// Who alone may answer; anybody if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl Question {
    /// A question that no run asked.
    pub fn new(id: impl Into<String>, kind: impl Into<String>, payload: Value) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            payload,
            digest: String::new(),
            schema: None,
            expires: None,
            default: None,
            actor: None,
        }
    }

    /// An answer to this question and no other, with the question's id.
    pub fn answer(&self, value: impl Into<Value>) -> (String, Answer) {
        (self.id.clone(), Answer { digest: self.digest.clone(), ..Answer::from(value.into()) })
    }

    /// The same question as a sub-agent's, under the call that started it.
    #[must_use]
    pub fn under(&self, call_id: &str) -> Self {
        Self { id: format!("{call_id}/{}", self.id), ..self.clone() }
    }

    /// True if it cannot be answered any more at `now`, in milliseconds since 1970.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Checks that `answer` was given to this question, in time, and by whoever may. Its form is not looked at.
    ///
    /// An answer without a digest is taken as given to this very question: by a caller who holds it.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn admits(&self, answer: &Answer, now: u64) -> Result<(), Refusal> {
        if !answer.digest.is_empty() && answer.digest != self.digest {
            return Err(digest::mismatch(&self.digest, &answer.digest));
        }
        if self.is_expired(now) {
            return Err(Refusal::Expired);
        }
        match &self.actor {
            Some(actor) if answer.by.as_ref() != Some(actor) => Err(Refusal::WrongActor { wanted: actor.clone() }),
            _ => Ok(()),
        }
    }
}

/// What follows after `place/` in a question's id.
pub(crate) fn id_within<'a>(id: &'a str, place: &str) -> Option<&'a str> {
    id.strip_prefix(place)?.strip_prefix('/')
}
