//! What a run waits for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question that must be answered before the run goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The same whenever the question comes up again: `call_id/kind` in a tool call, below the parent's call id in a
    /// sub-agent.
    pub id: String,
    /// What kind of answer is wanted, such as `approval`.
    pub kind: String,
    /// What it is about, for whoever answers.
    pub payload: Value,
}

impl Question {
    /// A question.
    pub fn new(id: impl Into<String>, kind: impl Into<String>, payload: Value) -> Self {
        Self { id: id.into(), kind: kind.into(), payload }
    }

    /// The same question as a sub-agent's, below the call that started it.
    #[must_use]
    pub fn under(&self, call_id: &str) -> Self {
        Self { id: format!("{call_id}/{}", self.id), ..self.clone() }
    }
}
