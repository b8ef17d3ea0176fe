//! The system prompt as data.

use agent_core::{
    Part, SystemMessage,
    message::{Cache, Text},
};
use serde::{Deserialize, Serialize};

/// A system prompt as data: a text, or a list of texts, each of which may be marked for the
/// provider's cache.
///
/// ```
/// use agent_exec::SystemDefinition;
/// use serde_json::json;
///
/// let system: SystemDefinition = serde_json::from_value(json!([
///     {"text": "The rules of the house: ..", "cache": "long"},
///     "Today is Monday.",
/// ]))?;
/// assert_eq!(system.text(), "The rules of the house: ..\nToday is Monday.");
/// assert_eq!(SystemDefinition::from("Be kind.").text(), "Be kind.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum SystemDefinition {
    /// The whole literal prompt.
    Text(String),
    /// Parts in their order.
    Parts(Vec<SystemPart>),
}

/// A part of a system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum SystemPart {
    /// A literal text.
    Text(String),
    /// A text after which the provider is asked to cache the prompt.
    Marked(MarkedText),
}

/// A text after which the provider is asked to cache the prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MarkedText {
    /// The literal text.
    pub text: String,
    /// Cache duration.
    pub cache: Cache,
}

impl SystemDefinition {
    /// Returns the prompt as the model receives it; parts are joined by line breaks.
    pub fn text(&self) -> String {
        self.message().text()
    }

    pub(crate) fn message(&self) -> SystemMessage {
        let part = |part: &SystemPart| match part {
            SystemPart::Text(text) => Part::text(text),
            SystemPart::Marked(marked) => Part::Text(Text::new(&marked.text).with_cache(marked.cache)),
        };
        SystemMessage::new(match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts.iter().map(part).collect(),
        })
    }

    /// Converts a message; returns `None` if it contains parts other than text.
    pub(crate) fn of(message: &SystemMessage) -> Option<Self> {
        let part = |part: &Part| match part {
            Part::Text(text) => Some(match text.cache {
                None => SystemPart::Text(text.text.clone()),
                Some(cache) => SystemPart::Marked(MarkedText { text: text.text.clone(), cache }),
            }),
            _ => None,
        };
        let mut parts: Vec<_> = message.parts().iter().map(part).collect::<Option<_>>()?;
        Some(match parts.as_mut_slice() {
            [SystemPart::Text(text)] => Self::Text(std::mem::take(text)),
            _ => Self::Parts(parts),
        })
    }
}

impl From<&str> for SystemDefinition {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemDefinition {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
