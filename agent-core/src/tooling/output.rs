//! Outputs of tools.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::{Part, ToolMessage, join_text};

/// Output of a tool: content for the model, and a value for programs. Cheap to clone.
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
    /// Creates an output from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// Creates an output from any content.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self { parts: Arc::new(parts), value: None, is_error: false }
    }

    /// Creates an output from a value; the model receives its [text](value_to_text).
    pub fn value(value: Value) -> Self {
        let is_error = value.get("status").and_then(Value::as_str) == Some("error");
        Self { parts: Arc::new(vec![Part::text(value_to_text(&value))]), value: Some(Arc::new(value)), is_error }
    }

    /// Creates an error output for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Marks the output as an error.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Replaces the content for the model, and keeps the value.
    #[must_use]
    pub fn shown_as(mut self, parts: Vec<Part>) -> Self {
        self.parts = Arc::new(parts);
        self
    }

    /// The content for the model.
    pub fn content(&self) -> &[Part] {
        &self.parts
    }

    /// Edits every text of the output: the content for the model and, in the value for programs, all
    /// strings and the names of fields. Use it to redact: an edit of the content alone leaves the
    /// value unchanged, and events, the state and programs read the value.
    ///
    /// ```
    /// use agent_core::ToolOutput;
    /// use serde_json::json;
    ///
    /// let mut out = ToolOutput::value(json!({"result": "the key is s3cret", "keys": ["s3cret"]}));
    /// out.edit_text(|text| text.replace("s3cret", "[hidden]"));
    /// assert!(!out.to_text().contains("s3cret"));
    /// assert_eq!(out.as_value(), Some(&json!({"result": "the key is [hidden]", "keys": ["[hidden]"]})));
    /// ```
    pub fn edit_text(&mut self, edit: impl Fn(&str) -> String) {
        for part in self.content_mut() {
            if let Part::Text(text) = part {
                text.text = edit(&text.text);
                text.raw = None; // a provider's own form of it
            }
        }
        if let Some(value) = &mut self.value {
            edit_value(Arc::make_mut(value), &edit);
        }
    }

    /// The content for the model, mutable; shared content is copied first. The value for programs
    /// is unchanged: to redact, use [`edit_text`](Self::edit_text).
    pub fn content_mut(&mut self) -> &mut Vec<Part> {
        Arc::make_mut(&mut self.parts)
    }

    /// The value for programs, if the tool returned one.
    pub fn as_value(&self) -> Option<&Value> {
        self.value.as_deref()
    }

    /// True if the call failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The content for the model as text.
    pub fn to_text(&self) -> String {
        join_text(&self.parts)
    }

    /// Creates the result message of a call.
    pub fn to_message(&self, call_id: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> ToolMessage {
        ToolMessage::new(call_id, name, self.parts.clone(), self.is_error)
    }

    /// True if both share the same memory, and hence are equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        let is_same_value = match (&self.value, &other.value) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        Arc::ptr_eq(&self.parts, &other.parts) && is_same_value && self.is_error == other.is_error
    }
}

fn edit_value(value: &mut Value, edit: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = edit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| edit_value(item, edit)),
        Value::Object(fields) => {
            let edited = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                edit_value(&mut value, edit);
                (edit(&name), value)
            });
            *fields = edited.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Deserialises a value that is present, though it may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// Returns the text of a tool's value for the model.
///
/// * A text is used unchanged.
/// * An object with only `content` or `result` is replaced by that field; `returnDisplay` is for
///   people and omitted.
/// * An object with `status` and a body (`stdout`, `output`, `content`, `result`; on
///   `status: error` first `error`, `traceback`, `stderr`) becomes a Markdown list of its other
///   fields, followed by the body.
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
    /// The results; a hook may edit them, but not add or remove any.
    pub results: Vec<CallResult>,
}

/// One result of [`ToolResults`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallResult {
    /// Id of the call.
    pub call_id: Arc<str>,
    /// Name of the tool.
    pub name: Arc<str>,
    /// Output of the tool.
    pub output: ToolOutput,
}

impl CallResult {
    /// Creates a result.
    pub fn new(call_id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, output: ToolOutput) -> Self {
        Self { call_id: call_id.into(), name: name.into(), output }
    }

    /// Creates the message that is appended to the history.
    pub fn to_message(&self) -> ToolMessage {
        self.output.to_message(self.call_id.clone(), self.name.clone())
    }
}

impl ToolResults {
    /// Creates a list of results.
    pub fn new(results: Vec<CallResult>) -> Self {
        Self { results }
    }
}
