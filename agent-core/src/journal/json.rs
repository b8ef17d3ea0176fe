//! JSON form of entries.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{
    Deserialize, Serialize, Serializer,
    de::{self, IgnoredAny, IntoDeserializer, value::StrDeserializer},
};
use serde_json::{Value, value::RawValue};

use super::{Entry, EntryBody};
use crate::error::{Error, ErrorKind, Result};

impl EntryBody {
    /// Returns the body as JSON text, `{"kind": {..}}`: the form that stores persist.
    ///
    /// # Errors
    /// Never for a body of this crate.
    pub fn to_json(&self) -> Result<String> {
        let text = match self {
            Self::Unknown(value) => serde_json::to_string(value),
            known => serde_json::to_string(known),
        };
        text.map_err(|e| Error::new(ErrorKind::Store, "an entry cannot be kept as JSON").with_source(e))
    }

    /// Parses the text of [`to_json`](Self::to_json). A kind that this release does not know is
    /// kept unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] for a known kind with unexpected content: ignoring it could lose data.
    ///
    /// ```
    /// use agent_core::journal::EntryBody;
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
        body.map_err(unreadable)
    }

    /// Parses the body of an entry of format `version`. A body of an older version is migrated.
    ///
    /// # Errors
    /// Those of [`from_json`](Self::from_json).
    pub fn from_json_of(version: u16, text: &str) -> Result<Self> {
        upcast(version, text, &UPCASTS)
    }
}

/// Migrates a body's JSON from one version of the format to the next.
type Upcast = fn(Value) -> Value;

/// Migrations from version 1 to 2, from 2 to 3, and so on. A release that changes the format of a
/// body adds a migration here; stored entries are not rewritten.
const UPCASTS: [Upcast; Entry::VERSION as usize - 1] = [];

/// Applies the migrations since `version`.
fn upcast(version: u16, text: &str, steps: &[Upcast]) -> Result<EntryBody> {
    let missed = steps.get(usize::from(version.saturating_sub(1))..).unwrap_or_default();
    if missed.is_empty() {
        return EntryBody::from_json(text);
    }
    let body = serde_json::from_str::<Value>(text).map_err(unreadable)?;
    let body = missed.iter().fold(body, |body, step| step(body));
    EntryBody::from_json(&body.to_string())
}

fn unreadable(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Store, "an entry cannot be read: it is damaged, or a newer release wrote it").with_source(e)
}

/// An entry whose body is not parsed yet.
#[derive(Deserialize)]
pub(super) struct EntryText {
    seq: u64,
    run: Arc<str>,
    time: u64,
    version: u16,
    /// Parsed from its text, because serde's untagged enums would not preserve the provider's
    /// bytes.
    body: Box<RawValue>,
}

impl TryFrom<EntryText> for Entry {
    type Error = Error;

    fn try_from(text: EntryText) -> Result<Self> {
        let EntryText { seq, run, time, version, body } = text;
        Ok(Self { seq, run, time, version, body: EntryBody::from_json_of(version, body.get())? })
    }
}

/// Serialises the body within an entry.
pub(super) fn serialize<S: Serializer>(body: &EntryBody, serializer: S) -> Result<S::Ok, S::Error> {
    match body {
        EntryBody::Unknown(value) => value.serialize(serializer),
        known => known.serialize(serializer),
    }
}

fn has_known_kind(text: &str) -> bool {
    let fields = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    fields.keys().any(|kind| {
        // Content is missing, so this always fails: the error tells whether the kind is known.
        let kind: StrDeserializer<'_, Refused> = kind.as_str().into_deserializer();
        !matches!(EntryBody::deserialize(kind), Err(Refused::UnknownKind))
    })
}

/// Reason of the failed parse of a bare kind.
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
    use serde_json::json;

    use super::*;
    use crate::{
        message::{AssistantMessage, Block, Message, Origin, Raw},
        state::{ExitReason, RunStatus},
        tooling::Effect,
    };

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
    fn a_body_of_an_older_format_is_brought_up_to_date_step_by_step() {
        let steps: [Upcast; 2] = [
            |mut body| {
                let inner = body["undone"].take();
                json!({"undone": {"run": inner["to"]}})
            },
            |mut body| json!({"undone": {"before_run": body["undone"]["run"].take()}}),
        ];
        let read = EntryBody::Undone { before_run: "r1".into() };
        for (version, text) in [
            (1, r#"{"undone":{"to":"r1"}}"#),
            (2, r#"{"undone":{"run":"r1"}}"#),
            (3, r#"{"undone":{"before_run":"r1"}}"#),
            (9, r#"{"undone":{"before_run":"r1"}}"#),
        ] {
            assert_eq!(upcast(version, text, &steps).expect("reads"), read, "from version {version}");
        }
        assert_eq!(upcast(1, "{", &steps).expect_err("no JSON").kind(), ErrorKind::Store);
    }

    #[test]
    fn statuses_reasons_and_effects_of_the_future_are_read_and_written_back() {
        for unknown in [json!("rested"), json!({"resting": {"until": 7}})] {
            let status = RunStatus::Other(unknown.clone());
            assert_eq!(serde_json::from_value::<RunStatus>(unknown.clone()).expect("reads"), status);
            assert_eq!(serde_json::to_value(&status).expect("writes"), unknown);
            let reason = ExitReason::Other(unknown.clone());
            assert_eq!(serde_json::from_value::<ExitReason>(unknown.clone()).expect("reads"), reason);
            let finished = json!({"finished": unknown});
            assert_eq!(serde_json::from_value::<RunStatus>(finished).expect("reads"), RunStatus::Finished(reason));
        }
        assert_eq!(serde_json::from_value::<RunStatus>(json!("failed")).expect("reads"), RunStatus::Failed);
        let tool = ExitReason::Tool("t".into());
        assert_eq!(serde_json::from_value::<ExitReason>(json!({"tool": "t"})).expect("reads"), tool);
        assert_eq!(serde_json::from_value::<Effect>(json!("harmless")).expect("reads"), Effect::AtMostOnce);
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
