//! Entries as JSON text.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IgnoredAny, IntoDeserializer, value::StrDeserializer},
};
use serde_json::value::RawValue;

use super::EntryBody;
use crate::{Error, ErrorKind, Result};

impl EntryBody {
    /// The body as JSON text, `{"kind": {..}}`: what stores keep.
    ///
    /// # Errors
    /// Never for a body of this framework.
    pub fn to_json(&self) -> Result<String> {
        let text = match self {
            Self::Unknown(value) => serde_json::to_string(value),
            known => serde_json::to_string(known),
        };
        text.map_err(|e| Error::new(ErrorKind::Store, "an entry cannot be kept as JSON").with_source(e))
    }

    /// Reads [`to_json`](Self::to_json)'s text. A kind that this release does not know is kept as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] for a known kind with another content: passing over it could lose what was said.
    ///
    /// ```
    /// use agent_core::EntryBody;
    ///
    /// let text = r#"{"from_the_future":{"x":1}}"#;
    /// let body = EntryBody::from_json(text)?;
    /// assert!(matches!(body, EntryBody::Unknown(_)));
    /// assert_eq!(body.to_json()?, text);
    /// assert!(EntryBody::from_json(r#"{"tool_started":{"x":1}}"#).is_err());
    /// # Ok::<(), agent_core::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let body = serde_json::from_str(text).or_else(|e| match has_known_kind(text) {
            true => Err(e),
            false => serde_json::from_str(text).map(Self::Unknown),
        });
        body.map_err(|e| {
            let message = "an entry cannot be read: it is damaged, or a newer release wrote it";
            Error::new(ErrorKind::Store, message).with_source(e)
        })
    }
}

/// The body within an entry, for `#[serde(with)]`.
pub(super) fn serialize<S: Serializer>(body: &EntryBody, serializer: S) -> Result<S::Ok, S::Error> {
    match body {
        EntryBody::Unknown(value) => value.serialize(serializer),
        known => known.serialize(serializer),
    }
}

/// The body within an entry. It is read from its text, since serde's own way to try one form and then another would lose a
/// provider's bytes.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EntryBody, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    EntryBody::from_json(text.get()).map_err(de::Error::custom)
}

fn has_known_kind(text: &str) -> bool {
    let fields = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    fields.keys().any(|kind| {
        // The kind alone is never enough, so this fails either way: the error tells whether the kind was the trouble.
        let kind: StrDeserializer<'_, Refused> = kind.as_str().into_deserializer();
        !matches!(EntryBody::deserialize(kind), Err(Refused::UnknownKind))
    })
}

/// Why a kind was not enough.
#[derive(Debug)]
enum Refused {
    UnknownKind,
    NoContent,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::NoContent
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::UnknownKind
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{AssistantMessage, Block, Entry, Message, Origin, Raw};

    #[test]
    fn an_entry_keeps_the_bytes_of_a_provider() {
        let raw = Raw::parse(Origin::new("w", "p", "m"), r#"{"b" : 1.50,  "a":"\u00e9"}"#).expect("valid JSON");
        let message = Message::Assistant(AssistantMessage::from_provider(vec![Block::Other(raw.clone())], raw));
        let entry = Entry::new("run".into(), 7, EntryBody::MessageAppended { message });
        let text = serde_json::to_string(&entry).expect("serialises");
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("parses"), entry);
        assert_eq!(EntryBody::from_json(&entry.body.to_json().expect("serialises")).expect("parses"), entry.body);
    }

    #[test]
    fn an_entry_of_an_unknown_kind_is_kept_as_it_is() {
        for value in [json!({"new": {"tool_started": 1}}), json!("new"), json!([]), json!({})] {
            let entry = Entry::new("run".into(), 7, EntryBody::Unknown(value));
            let text = serde_json::to_string(&entry).expect("serialises");
            assert_eq!(serde_json::from_str::<Entry>(&text).expect("parses"), entry);
        }
    }

    #[test]
    fn a_known_kind_with_another_content_is_an_error_that_says_what_is_wrong() {
        let e = EntryBody::from_json(r#"{"undone":{"before":"r1"}}"#).expect_err("damaged");
        let cause = std::error::Error::source(&e).expect("a cause").to_string();
        assert!(cause.contains("before_run"), "{cause}");
        let id: Arc<str> = "r1".into();
        assert_eq!(
            EntryBody::from_json(r#"{"undone":{"before_run":"r1"}}"#).expect("parses"),
            EntryBody::Undone { before_run: id }
        );
    }
}
