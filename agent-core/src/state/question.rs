//! Questions that suspend a run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Refusal, digest};

/// A question that must be answered before the run continues.
///
/// [`answer`](Self::answer) makes the pair that
/// [`RunRequest::resume_with`](crate::RunRequest::resume_with) takes:
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
    /// Stable across repetitions of the question: `call_id/kind` in a tool call, prefixed with the
    /// parent's call id in a sub-agent.
    pub id: String,
    /// Kind of the question, such as `approval`.
    pub kind: String,
    /// Content shown to the person who answers.
    pub payload: Value,
    /// Digest of everything the question is about: the run, the attempt that first asked, the step,
    /// the call with its tool and arguments, and the content shown. An answer names the digest, and
    /// is valid for nothing else. Empty if no run asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// JSON Schema that an answer must match. Default: any answer is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<Value>>,
    /// Expiry time, in milliseconds since 1970, UTC. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Answer that applies after expiry. Without a default, the asker receives an error of kind
    /// [`Timeout`](crate::ErrorKind::Timeout).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Box<Value>>,
    /// The only actor who may answer. Default: anyone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl Question {
    /// Creates a question that no run asked.
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

    /// Creates an answer that is bound to this question, and returns it with the question's id.
    pub fn answer(&self, value: impl Into<Value>) -> (String, Answer) {
        (self.id.clone(), Answer { digest: self.digest.clone(), ..Answer::from(value.into()) })
    }

    /// The same question as a sub-agent's, with its id prefixed by the call that started the
    /// sub-agent.
    #[must_use]
    pub fn under(&self, call_id: &str) -> Self {
        Self { id: format!("{call_id}/{}", self.id), ..self.clone() }
    }

    /// True if the question has expired at `now`, in milliseconds since 1970.
    pub fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Checks that `answer` belongs to this question, is in time, and comes from a permitted actor.
    /// Does not validate the schema.
    ///
    /// An answer without a digest is accepted as an answer to this question: the caller holds the
    /// question.
    ///
    /// # Errors
    /// The reason for the refusal.
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

/// The part of a question's id after `place/`.
pub(crate) fn id_within<'a>(id: &'a str, place: &str) -> Option<&'a str> {
    id.strip_prefix(place)?.strip_prefix('/')
}
