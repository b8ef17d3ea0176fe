//! Reasons for replacing a persisted history.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

/// Reason for replacing a persisted history. A string is parsed as one of the known reasons, or
/// else kept as a custom reason.
///
/// ```
/// use agent_core::history::ReplaceReason;
///
/// assert_eq!(ReplaceReason::from("user_clear"), ReplaceReason::UserClear);
/// assert_eq!(ReplaceReason::from("my_own_pruning").as_str(), "my_own_pruning");
/// let focused = ReplaceReason::CompactFocused { focus: "the open bugs".into() };
/// assert_eq!(focused.as_str(), "compact_focused");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplaceReason {
    /// `user_clear`: the user started over.
    UserClear,
    /// `compact_auto`: the history had become too long.
    CompactAuto,
    /// `compact_manual`: a compaction was requested.
    CompactManual,
    /// `compact_focused`: a compaction with a focus was requested.
    CompactFocused {
        /// Topic to preserve.
        focus: String,
    },
    /// A custom reason, or one written by another release; kept unchanged.
    Other(Value),
}

impl ReplaceReason {
    /// The reason as one word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::UserClear => "user_clear",
            Self::CompactAuto => "compact_auto",
            Self::CompactManual => "compact_manual",
            Self::CompactFocused { .. } => "compact_focused",
            Self::Other(Value::String(word)) => word,
            Self::Other(Value::Object(fields)) => fields.keys().next().map_or("other", String::as_str),
            Self::Other(_) => "other",
        }
    }
}

impl From<Value> for ReplaceReason {
    fn from(value: Value) -> Self {
        match value.as_str() {
            Some("user_clear") => Self::UserClear,
            Some("compact_auto") => Self::CompactAuto,
            Some("compact_manual") => Self::CompactManual,
            Some(_) => Self::Other(value),
            None => match value["compact_focused"]["focus"].as_str() {
                Some(focus) if value == focused(focus) => Self::CompactFocused { focus: focus.to_owned() },
                _ => Self::Other(value),
            },
        }
    }
}

impl From<&str> for ReplaceReason {
    fn from(word: &str) -> Self {
        Value::from(word).into()
    }
}

impl From<String> for ReplaceReason {
    fn from(word: String) -> Self {
        Value::from(word).into()
    }
}

fn focused(focus: &str) -> Value {
    json!({"compact_focused": {"focus": focus}})
}

impl fmt::Display for ReplaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ReplaceReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::CompactFocused { focus } => focused(focus).serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
            word => serializer.serialize_str(word.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for ReplaceReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_read_back_as_it_was_and_unknown_ones_too() {
        let known = [
            ReplaceReason::UserClear,
            ReplaceReason::CompactAuto,
            ReplaceReason::CompactManual,
            ReplaceReason::CompactFocused { focus: "bugs".into() },
        ];
        let unknown = [json!("mine"), json!({"compact_auto": {"saved": 7}}), json!(null), json!([1])];
        for reason in known.into_iter().chain(unknown.map(ReplaceReason::Other)) {
            let text = serde_json::to_string(&reason).expect("serialises");
            assert_eq!(serde_json::from_str::<ReplaceReason>(&text).expect("parses"), reason, "{text}");
        }
        assert_eq!(ReplaceReason::from(json!({"compact_auto": {"saved": 7}})).as_str(), "compact_auto");
    }
}
