//! How a run ends in AG-UI.

use agent::{Question, Usage};
use serde::Serialize;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::conversation::{PAUSED, interrupt_id};

/// How a run ended without failing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// It is done, or waits for the results of the client's own tools.
    Success {
        /// Calls of tools that the client brought, which it is to answer.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    /// It waits for these.
    Interrupt {
        /// What it waits for; at least one.
        interrupts: Vec<Interrupt>,
    },
    /// It was cancelled.
    Cancelled,
}

/// How a sub-agent ended without failing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum SubOutcome {
    /// It is done.
    Success,
    /// It waits.
    Suspended {
        /// For these.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<String>,
    },
}

/// What a run waits for: a question of the library's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Interrupt {
    /// Names the question as it was asked, and no other: see [`interrupt_id`].
    pub id: String,
    /// What kind of answer is wanted.
    pub reason: String,
    /// The call that it is about, as the client knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What an answer must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Under `question`, what the question is about, for whoever answers.
    pub metadata: Value,
}

/// What a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// All input tokens.
    pub input_tokens: u64,
    /// All output tokens.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
    /// The part of the input that a cache served.
    pub cached_input_tokens: u64,
    /// The part of the input that was written to a cache.
    pub cache_write_input_tokens: u64,
}

impl Interrupt {
    /// The question, about the call `tool_call_id`.
    pub(super) fn new(question: &Question, tool_call_id: Option<String>) -> Self {
        let expires = question.expires.and_then(|at| {
            let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000).ok()?;
            at.format(&Rfc3339).ok()
        });
        Self {
            id: interrupt_id(question).to_owned(),
            reason: question.kind.clone(),
            tool_call_id,
            response_schema: question.schema.as_deref().filter(|schema| schema.is_object()).cloned(),
            expires_at: expires,
            metadata: json!({"question": question.payload}),
        }
    }

    /// That of a run that was paused.
    pub(super) fn paused() -> Self {
        Self {
            id: PAUSED.to_owned(),
            reason: PAUSED.to_owned(),
            tool_call_id: None,
            response_schema: None,
            expires_at: None,
            metadata: json!({}),
        }
    }
}

impl From<&Usage> for TokenUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.prompt(),
            output_tokens: usage.output,
            total_tokens: usage.total(),
            reasoning_tokens: usage.reasoning,
            cached_input_tokens: usage.cached,
            cache_write_input_tokens: usage.cache_write,
        }
    }
}
