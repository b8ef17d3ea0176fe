//! Answers, and why one is refused.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// An answer to a [`Question`](crate::Question).
///
/// One that travelled should come from [`Question::answer`](crate::Question::answer), so that it names what it answers.
/// Made of a plain value, it answers whatever question has its id in the checkpoint that it is given with.
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
    /// What was answered.
    pub value: Value,
    /// The digest of the question that it answers; empty in a plain value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Who answered. The application says so, and vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Answer {
    /// The answer that a journal holds.
    pub(crate) fn recorded(value: &Value, digest: &str, by: Option<&str>) -> Self {
        Self { value: value.clone(), digest: digest.to_owned(), by: by.map(str::to_owned) }
    }

    /// Says who answered.
    #[must_use]
    pub fn by(mut self, actor: impl Into<String>) -> Self {
        self.by = Some(actor.into());
        self
    }

    /// The answer as a type.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] if it has another form.
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

/// Why an answer was refused. The run waits as before, and takes a right one.
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
    /// Nobody asked under that id.
    NotAsked {
        /// The ids of the questions that there are.
        asked: Vec<String>,
    },
    /// What it says it answers is no question's digest.
    Forged,
    /// It was given to a question of another run.
    AnotherRun,
    /// It was used before, or given to the question as it was asked at another time.
    Replayed,
    /// It was given to something else than what is asked: another tool, other arguments, another text.
    Edited,
    /// It came too late: what holds for a question that nobody answered holds now.
    Expired,
    /// Somebody else was asked.
    WrongActor {
        /// Who may answer.
        wanted: String,
    },
    /// It does not fit the question's schema.
    Misfit {
        /// All that is wrong with it.
        problems: String,
    },
}

impl Refusal {
    /// Why an answer was refused, if that is what the error says.
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
