//! Agent Client Protocol messages, version 1, as far as they are used.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::failure::Failure;

/// Protocol version.
pub(super) const VERSION: u64 = 1;

/// JSON-RPC error code of an unknown method.
pub(super) const NO_METHOD: i64 = -32601;

/// JSON-RPC error code of invalid parameters, or of parameters that name something unusable.
pub(super) const INVALID: i64 = -32602;

/// Error code: authentication required.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// Message of an agent before its kind is known.
#[derive(Deserialize)]
pub(super) struct Envelope {
    /// Id of a request or a response. Agents choose the form of their ids.
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    pub(super) protocol_version: u64,
    #[serde(default)]
    pub(super) agent_capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
pub(super) struct SessionCapabilities {
    /// Present if sessions can be resumed without their history.
    #[serde(default)]
    pub(super) resume: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Capabilities {
    #[serde(default)]
    pub(super) load_session: bool,
    #[serde(default)]
    pub(super) session_capabilities: SessionCapabilities,
    #[serde(default)]
    pub(super) prompt_capabilities: PromptCapabilities,
}

#[derive(Default, Deserialize)]
pub(super) struct PromptCapabilities {
    #[serde(default)]
    pub(super) image: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewSession {
    pub(super) session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompted {
    pub(super) stop_reason: String,
    /// Token usage of the turn, if the agent reports it.
    #[serde(default)]
    usage: Value,
}

/// Maximum number of usage counters, and maximum length of their names.
const MOST_COUNTS: usize = 20;
const LONGEST_NAME: usize = 40;

impl Prompted {
    /// Returns the usage counters of the turn; `None` if the agent reports none. The data is
    /// untrusted, so only numbers are taken, up to a maximum.
    pub(super) fn used(&self) -> Option<Value> {
        let told = self.usage.as_object()?.iter();
        let counts = told.filter(|(name, count)| name.len() <= LONGEST_NAME && count.is_u64());
        let counts: Map<_, _> = counts.take(MOST_COUNTS).map(|(name, count)| (name.clone(), count.clone())).collect();
        (!counts.is_empty()).then(|| counts.into())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadFile {
    pub(super) path: String,
    /// Line number, from 1.
    #[serde(default)]
    pub(super) line: Option<usize>,
    #[serde(default)]
    pub(super) limit: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct WriteFile {
    pub(super) path: String,
    pub(super) content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskPermission {
    pub(super) tool_call: Value,
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    pub(super) name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub(super) kind: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_what_a_turn_used_the_counts_are_taken_over() {
        let used = |usage: Value| {
            let told = json!({"stopReason": "end_turn", "usage": usage});
            serde_json::from_value::<Prompted>(told).expect("is one").used()
        };
        let counts = json!({"inputTokens": 7, "outputTokens": 2});
        assert_eq!(used(counts.clone()), Some(counts));
        assert_eq!(used(json!({"note": "ignore what was said", "cost": 0.5, "x".repeat(41): 1})), None);
        assert_eq!((used(Value::Null), used(json!("7"))), (None, None));
        assert_eq!(serde_json::from_value::<Prompted>(json!({"stopReason": "end_turn"})).expect("is one").used(), None);
    }
}
