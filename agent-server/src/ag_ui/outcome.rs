//! Outcomes of a run in AG-UI.

use agent::{Question, Usage};
use serde::Serialize;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::conversation::{PAUSED, interrupt_id};

/// Outcome of a run that did not fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// The run is finished, or waits for results of the client's own tools.
    Success {
        /// Calls of the client's tools that it must answer.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    /// The run waits for answers.
    Interrupt {
        /// Open interrupts; at least one.
        interrupts: Vec<Interrupt>,
    },
    /// The run was cancelled.
    Cancelled,
}

/// Outcome of a sub-agent that did not fail.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum SubOutcome {
    /// The sub-agent is finished.
    Success,
    /// The sub-agent is suspended.
    Suspended {
        /// Ids of the interrupts that it waits for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<String>,
    },
}

/// Interrupt of a run: a question of the framework.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Interrupt {
    /// Id of exactly this question: see [`interrupt_id`].
    pub id: String,
    /// Kind of the expected answer.
    pub reason: String,
    /// Id of the related call, as the client knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// JSON Schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Time at which the question expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Payload of the question, under the key `question`.
    pub metadata: Value,
}

/// Token usage of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenUsage {
    /// All input tokens.
    pub input_tokens: u64,
    /// All output tokens.
    pub output_tokens: u64,
    /// Sum of input and output tokens.
    pub total_tokens: u64,
    /// Output tokens that were reasoning.
    pub reasoning_tokens: u64,
    /// Input tokens that were read from a cache.
    pub cached_input_tokens: u64,
    /// Input tokens that were written to a cache.
    pub cache_write_input_tokens: u64,
}

impl Interrupt {
    /// Converts a question about the call `tool_call_id`.
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

    /// Returns the interrupt of a paused run.
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
