//! Answers to questions, and the reasons for refusing one.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// An answer to a [`Question`](crate::Question).
///
/// An answer that was transported should come from [`Question::answer`](crate::Question::answer),
/// so that it names its question. An answer made from a plain value is accepted for the question
/// that has its id in the checkpoint it is submitted with.
///
/// ```
/// use agent_core::{Answer, Question};
/// use serde_json::json;
///
/// let question = Question::new("c1/confirm", "confirm", json!({"delete": "old.log"}));
/// let (id, answer) = question.answer(true);
/// assert_eq!(id, "c1/confirm");
/// assert_eq!(answer.by("ada").by.as_deref(), Some("ada"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Answer {
    /// The answer itself.
    pub value: Value,
    /// Digest of the answered question; empty in a plain value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The person or system that answered. The application sets it and vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Answer {
    /// Restores an answer from a journal.
    pub(crate) fn recorded(value: &Value, digest: &str, by: Option<&str>) -> Self {
        Self { value: value.clone(), digest: digest.to_owned(), by: by.map(str::to_owned) }
    }

    /// Sets the person or system that answered.
    #[must_use]
    pub fn by(mut self, actor: impl Into<String>) -> Self {
        self.by = Some(actor.into());
        self
    }

    /// Deserialises the answer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if it does not have the form of `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.value)
            .map_err(|e| Error::new(ErrorKind::InvalidRequest, format!("the answer has another form: {e}")))
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { value, digest: String::new(), by: None }
    }
}

/// Reason for refusing an answer. The run keeps waiting, and accepts a correct one.
///
/// ```
/// use agent_core::{Error, run::Refusal};
///
/// let error = Error::from(Refusal::Expired);
/// assert_eq!(Refusal::of(&error), Some(&Refusal::Expired));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No question has that id.
    NotAsked {
        /// Ids of the open questions.
        asked: Vec<String>,
    },
    /// The digest is malformed: it names no question.
    Forged,
    /// The answer belongs to a question of another run.
    AnotherRun,
    /// The answer was used before, or belongs to an earlier instance of the question.
    Replayed,
    /// The question has changed: another tool, other arguments, or another text.
    Edited,
    /// The question has expired: its default or a timeout applies.
    Expired,
    /// The question is restricted to another actor.
    WrongActor {
        /// The actor who may answer.
        wanted: String,
    },
    /// The answer does not match the question's schema.
    Misfit {
        /// All validation problems.
        problems: String,
    },
}

impl Refusal {
    /// The reason why an answer was refused, if `error` reports a refusal.
    pub fn of(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked { asked } if asked.is_empty() => f.write_str("nobody asked it: there are no open questions"),
            Self::NotAsked { asked } => write!(f, "nobody asked it; the open questions are: {}", asked.join(", ")),
            Self::Forged => f.write_str("it does not name a question of this framework"),
            Self::AnotherRun => f.write_str("it was given to another run's question"),
            Self::Replayed => f.write_str("it was used before, or given to an earlier question"),
            Self::Edited => f.write_str("it was given to something else than what is asked now"),
            Self::Expired => f.write_str("the question has expired"),
            Self::WrongActor { wanted } => write!(f, "only {wanted} may answer"),
            Self::Misfit { problems } => write!(f, "it does not fit the question: {problems}"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::new(ErrorKind::AnswerRefused, refusal.to_string()).with_source(refusal)
    }
}
