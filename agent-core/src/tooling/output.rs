//! What a tool gives back.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::{Part, ToolMessage, join_text};

/// What a tool gives back: content for the model, and a value for programs. Cheap to clone.
///
/// ```
/// use agent_core::ToolOutput;
/// use serde_json::json;
///
/// assert_eq!(ToolOutput::value(json!("A done")).to_text(), "A done");
/// assert_eq!(ToolOutput::value(json!({"content": "x"})).to_text(), "x");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    parts: Arc<Vec<Part>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    value: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// Any content.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self { parts: Arc::new(parts), value: None, is_error: false }
    }

    /// A value; the model is shown its [text](value_to_text).
    pub fn value(value: Value) -> Self {
        let is_error = value.get("status").and_then(Value::as_str) == Some("error");
        Self { parts: Arc::new(vec![Part::text(value_to_text(&value))]), value: Some(Arc::new(value)), is_error }
    }

    /// A failure that the model is told about.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Marks it as a failure.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The same value with other content for the model.
    #[must_use]
    pub fn shown_as(mut self, parts: Vec<Part>) -> Self {
        self.parts = Arc::new(parts);
        self
    }

    /// What the model is shown.
    pub fn content(&self) -> &[Part] {
        &self.parts
    }

    /// What the model is shown, to be edited; shared content is copied first.
    pub fn content_mut(&mut self) -> &mut Vec<Part> {
        Arc::make_mut(&mut self.parts)
    }

    /// The value for programs, if the tool gave one.
    pub fn as_value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    /// True if the call failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The text that the model is shown.
    pub fn to_text(&self) -> String {
        join_text(&self.parts)
    }

    /// The result message for a call.
    pub fn to_message(&self, call_id: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ToolMessage {
        ToolMessage::new(call_id, name, self.parts.clone(), self.is_error)
    }

    /// True if both are one and the same output in memory, hence equal without looking.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts) && self.is_error == other.is_error
    }
}

/// A value that is there, though it may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// The text that a model is shown for a tool's value.
///
/// * A text is itself.
/// * An object with `content` or `result` alone is that; `returnDisplay` is for people and left out.
/// * An object with a body (`stdout`, `output`, `content`, `result`; on `status: error` first `error`, `traceback`,
///   `stderr`) is its other fields as a Markdown list and then the body.
/// * Anything else is compact JSON.
pub fn value_to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => object_to_text(fields),
        other => other.to_string(),
    }
}

fn object_to_text(fields: &Map<String, Value>) -> String {
    let shown: Vec<_> = fields.iter().filter(|(name, _)| *name != "returnDisplay").collect();
    if let [(name, value)] = shown[..]
        && matches!(name.as_str(), "content" | "result")
    {
        return value_to_text(value);
    }
    let failed = fields.get("status").and_then(Value::as_str) == Some("error");
    let bodies: &[&str] = if failed {
        &["error", "traceback", "stderr", "stdout", "output", "content", "result"]
    } else {
        &["stdout", "output", "content", "result"]
    };
    let body = bodies.iter().find_map(|b| Some((*b, fields.get(*b)?.as_str()?)));
    let (Some((body_name, body)), true) = (body, fields.contains_key("status")) else {
        let shown: Map<_, _> = shown.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        return Value::Object(shown).to_string();
    };
    let meta: String = shown
        .iter()
        .filter(|(name, _)| *name != body_name)
        .map(|(name, value)| format!("- {name}: {}\n", value_to_text(value)))
        .collect();
    format!("{meta}\n{body}")
}

/// The results of one message's calls, in call order.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolResults {
    /// The results; a hook may edit them, not add or remove any.
    pub results: Vec<CallResult>,
}

/// One result of [`ToolResults`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallResult {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// What it gave back.
    pub output: ToolOutput,
}

impl CallResult {
    /// A result.
    pub fn new(call_id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, output: ToolOutput) -> Self {
        Self { call_id: call_id.into(), name: name.into(), output }
    }

    /// The message that enters the history.
    pub fn to_message(&self) -> ToolMessage {
        self.output.to_message(self.call_id.clone(), self.name.clone())
    }
}

impl ToolResults {
    /// These results.
    pub fn new(results: Vec<CallResult>) -> Self {
        Self { results }
    }
}
