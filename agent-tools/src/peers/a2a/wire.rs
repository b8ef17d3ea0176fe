//! Agent2Agent 0.3 messages in JSON, as far as they are used, and cards of either version.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::failure::Failure;

/// Agent card.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Card {
    pub(super) name: String,
    /// Version 0.3.
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) preferred_transport: Option<String>,
    #[serde(default)]
    pub(super) additional_interfaces: Vec<OldInterface>,
    /// Version 1.0.
    #[serde(default)]
    pub(super) supported_interfaces: Vec<Interface>,
    #[serde(default)]
    pub(super) capabilities: Capabilities,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct OldInterface {
    pub(super) url: String,
    pub(super) transport: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interface {
    pub(super) url: String,
    pub(super) protocol_binding: String,
    #[serde(default)]
    pub(super) protocol_version: Option<String>,
    #[serde(default)]
    pub(super) tenant: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Capabilities {
    #[serde(default)]
    pub(super) streaming: bool,
}

/// Message to or from an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) message_id: String,
    pub(super) role: String,
    #[serde(default)]
    pub(super) parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Part {
    Text {
        text: String,
    },
    File {
        file: Map<String, Value>,
    },
    Data {
        data: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) id: String,
    #[serde(default)]
    pub(super) context_id: String,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) artifacts: Vec<Artifact>,
    #[serde(default)]
    pub(super) history: Vec<Message>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Status {
    pub(super) state: State,
    #[serde(default)]
    pub(super) message: Option<Message>,
    #[serde(default)]
    pub(super) timestamp: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    pub(super) artifact_id: String,
    #[serde(default)]
    pub(super) parts: Vec<Part>,
}

/// Result of an agent, and event of its stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Told {
    Task(Task),
    Message(Message),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate {
    pub(super) task_id: String,
    pub(super) context_id: String,
    pub(super) status: Status,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate {
    pub(super) task_id: String,
    pub(super) context_id: String,
    pub(super) artifact: Artifact,
    #[serde(default)]
    pub(super) append: bool,
}

/// JSON-RPC response.
#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<Failure>,
}

impl State {
    /// Returns true if the task is in a terminal state.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Returns true if the task waits for input from the client.
    pub(super) fn waits(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    pub(super) fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl Status {
    /// Returns an identifier that distinguishes the questions of a task.
    pub(super) fn mark(&self) -> String {
        let id = self.message.as_ref().map(|message| &message.message_id).or(self.timestamp.as_ref());
        id.map_or_else(|| "1".to_owned(), |id| crate::text::cut(id, 100).to_owned())
    }

    pub(super) fn text(&self) -> String {
        self.message.as_ref().map(|message| text(&message.parts)).unwrap_or_default()
    }
}

impl Task {
    /// Creates a task from a stream event that arrived before the task itself.
    pub(super) fn begun(id: String, context_id: String, status: Status) -> Self {
        Self { id, context_id, status, artifacts: Vec::new(), history: Vec::new() }
    }

    /// Appends a part of an artifact.
    pub(super) fn take(&mut self, update: ArtifactUpdate) {
        match self.artifacts.iter_mut().find(|known| known.artifact_id == update.artifact.artifact_id) {
            Some(known) if update.append => known.parts.extend(update.artifact.parts),
            Some(known) => *known = update.artifact,
            None => self.artifacts.push(update.artifact),
        }
    }

    /// Returns the result of the task as text: its artifacts, otherwise its last message.
    pub(super) fn text(&self) -> String {
        let texts: Vec<_> = self.artifacts.iter().map(|a| text(&a.parts)).filter(|text| !text.is_empty()).collect();
        if texts.is_empty() { self.status.text() } else { texts.join("\n\n") }
    }
}

/// Converts parts to text: data as JSON, files by their names.
pub(super) fn text(parts: &[Part]) -> String {
    let mut said = String::new();
    for part in parts {
        match part {
            Part::Text { text } => said.push_str(text),
            Part::Data { data } => said.push_str(&data.to_string()),
            Part::File { file } => {
                let name = |field| file.get(field).and_then(Value::as_str);
                let name = name("name").or(name("uri")).unwrap_or("without a name");
                said.push_str(&format!("[file: {name}]"));
            }
            Part::Unknown => {}
        }
    }
    said
}
