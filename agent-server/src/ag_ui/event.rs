//! AG-UI 1.0 events of a run.

use serde::Serialize;
use serde_json::Value;

use super::outcome::{Outcome, SubOutcome, TokenUsage};

/// AG-UI event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgUiEvent {
    /// Payload of the event.
    #[serde(flatten)]
    pub kind: AgUi,
    /// Sub-agent of the event, if it is a sub-agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<String>,
}

/// Payload of an AG-UI event. Missing fields are omitted: the protocol's client rejects `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the protocol's own names: its specification explains them")]
pub enum AgUi {
    RunStarted {
        thread_id: String,
        run_id: String,
        protocol_version: String,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        code: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    TextMessageStart {
        message_id: String,
        role: String,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: String,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        role: String,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: String,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEncryptedValue {
        subtype: String,
        entity_id: String,
        encrypted_value: String,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Value,
    },
    MessagesSnapshot {
        messages: Vec<Value>,
    },
    ActivitySnapshot {
        message_id: String,
        activity_type: String,
        content: Value,
    },
    ActivityDelta {
        message_id: String,
        activity_type: String,
        patch: Value,
    },
    SubagentStarted {
        #[serde(rename = "subagentRunId")]
        run: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    SubagentFinished {
        #[serde(rename = "subagentRunId")]
        run: String,
        outcome: SubOutcome,
    },
    SubagentError {
        #[serde(rename = "subagentRunId")]
        run: String,
        message: String,
        code: String,
    },
    Custom {
        name: String,
        value: Value,
    },
}

impl AgUi {
    /// Wraps the payload as an event of the run itself.
    pub(super) fn of_root(self) -> AgUiEvent {
        self.of(None)
    }

    /// Wraps the payload as an event of this sub-agent, or of the run itself.
    pub(super) fn of(self, subagent_run_id: Option<String>) -> AgUiEvent {
        AgUiEvent { kind: self, subagent_run_id }
    }
}
