//! What a person decides.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a person decides about a tool call. Closed: anything else is refused, and what is refused never runs.
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
    /// Run it.
    Approve {
        /// For which later calls this holds too; this one alone if unset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
        /// It holds for good, and not for this session alone: see [`Approval::keep_rules`](crate::Approval::keep_rules).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Run it with these arguments instead. They are checked as the model's are, and the model is told.
    Edit {
        /// The arguments: an object with at least one field.
        arguments: Value,
    },
    /// Do not run it; the model is told.
    Reject {
        /// Why, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// For which later calls this holds too; this one alone if unset.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
        /// It holds for good, and not for this session alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// Do not run it; this is its result.
    Respond {
        /// The result, for the model.
        content: String,
    },
}

/// For which later calls a decision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remember {
    /// Those of the same tool with the same arguments.
    Call,
    /// Those of the same tool.
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
    /// Runs the call, this once.
    pub fn approve() -> Self {
        Self::Approve { remember: None, always: false }
    }

    /// Runs the call with other arguments.
    pub fn edit(arguments: impl Into<Value>) -> Self {
        Self::Edit { arguments: arguments.into() }
    }

    /// Rejects the call, this once.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: Some(reason.into()), remember: None, always: false }
    }

    /// Answers in the tool's place.
    pub fn respond(content: impl Into<String>) -> Self {
        Self::Respond { content: content.into() }
    }

    /// Which kind it is.
    pub fn kind(&self) -> DecisionKind {
        match self {
            Self::Approve { .. } => DecisionKind::Approve,
            Self::Edit { .. } => DecisionKind::Edit,
            Self::Reject { .. } => DecisionKind::Reject,
            Self::Respond { .. } => DecisionKind::Respond,
        }
    }

    /// What is missing for it to mean anything.
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
