//! Decisions about tool calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person's decision about a tool call. Closed: anything else is refused, and a refused answer
/// never runs the call.
///
/// As JSON, this is the answer to a question of the kind `approval`:
///
/// ```
/// use agent_middleware::approval::{Decision, Remember};
/// use serde_json::{from_value, json};
///
/// let answer: Decision = from_value(json!({"decision": "approve", "remember": "tool"}))?;
/// assert_eq!(answer, Decision::Approve { remember: Some(Remember::Tool), always: false });
/// assert!(from_value::<Decision>(json!({"decision": "aprove"})).is_err());
/// assert!(from_value::<Decision>(json!({"decision": "approve", "reason": "no!"})).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// Run the call.
    Approve {
        /// Scope of later calls to which the decision also applies; this call only if unset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
        /// Makes the decision permanent, beyond this session: see
        /// [`Approval::keep_rules`](crate::Approval::keep_rules).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Run the call with these arguments instead. They are checked like the model's, and the model
    /// is notified.
    Edit {
        /// The arguments: an object with at least one field.
        arguments: Value,
    },
    /// Do not run the call, and notify the model.
    Reject {
        /// The reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Scope of later calls to which the decision also applies; this call only if unset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
        /// Makes the decision permanent, beyond this session.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Do not run the call, and return this result.
    Respond {
        /// The result, for the model.
        content: String,
    },
}

/// Later calls to which a decision applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// Calls of the same tool with the same arguments.
    Call,
    /// Command lines of the same tool whose commands begin like those of this one: see
    /// [`ApprovalRequest::prefixes`](super::ApprovalRequest::prefixes). For a call without such
    /// prefixes, the same as [`Call`](Self::Call).
    Prefix,
    /// Calls of the same tool, except for those that a condition about the arguments asks about.
    Tool,
}

/// The kinds of [`Decision`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// [`Decision::Approve`].
    Approve,
    /// [`Decision::Edit`].
    Edit,
    /// [`Decision::Reject`].
    Reject,
    /// [`Decision::Respond`].
    Respond,
}

impl DecisionKind {
    pub(super) const ALL: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];
}

impl Decision {
    /// Approves the call, only this once.
    pub fn approve() -> Self {
        Self::Approve { remember: None, always: false }
    }

    /// Runs the call with other arguments.
    pub fn edit(arguments: impl Into<Value>) -> Self {
        Self::Edit { arguments: arguments.into() }
    }

    /// Rejects the call, only this once.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: Some(reason.into()), remember: None, always: false }
    }

    /// Answers on behalf of the tool.
    pub fn respond(content: impl Into<String>) -> Self {
        Self::Respond { content: content.into() }
    }

    /// Returns the kind of the decision.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve { .. } => DecisionKind::Approve,
            Self::Edit { .. } => DecisionKind::Edit,
            Self::Reject { .. } => DecisionKind::Reject,
            Self::Respond { .. } => DecisionKind::Respond,
        }
    }

    /// Returns the fault of an incomplete decision.
    pub(super) fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Edit { arguments } if arguments.as_object().is_none_or(serde_json::Map::is_empty) => {
                Some("the edited arguments are empty")
            }
            Self::Approve { remember: None, always: true } | Self::Reject { remember: None, always: true, .. } => {
                Some("it says 'always' and not what to remember")
            }
            Self::Respond { content } if content.trim().is_empty() => Some("the response is empty"),
            _ => None,
        }
    }
}
