//! Requests of a chat front end.

use std::collections::BTreeMap;

use agent::{Part, message::Media, tool::ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    client_tools::CallResult,
    conversation::{IncomingMessage, Resume, ResumeStatus, Turn},
};

/// Body of a request, in the form of `DefaultChatTransport`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ChatInput {
    /// Id of the chat.
    pub(super) id: String,
    #[serde(default)]
    messages: Vec<UiMessage>,
    /// Client-side tools by name.
    #[serde(default)]
    tools: BTreeMap<String, ToolInput>,
    /// Answers to questions other than approvals, by interrupt id.
    #[serde(default)]
    answers: BTreeMap<String, Value>,
    /// True if the run must continue when the client disconnects.
    #[serde(default)]
    pub(super) detach: bool,
}

#[derive(Clone, Debug, Deserialize)]
struct ToolInput {
    #[serde(default)]
    description: String,
    #[serde(default, alias = "inputSchema")]
    parameters: Value,
}

#[derive(Clone, Debug, Deserialize)]
struct UiMessage {
    #[serde(default)]
    id: String,
    role: String,
    #[serde(default)]
    parts: Vec<UiPart>,
}

/// Part of a message, with the fields that are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UiPart {
    r#type: String,
    text: String,
    url: String,
    media_type: Option<String>,
    filename: Option<String>,
    tool_call_id: String,
    state: String,
    output: Value,
    error_text: Option<String>,
    approval: Option<Approval>,
}

#[derive(Clone, Debug, Deserialize)]
struct Approval {
    id: String,
    approved: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

impl ChatInput {
    /// True if the answer continues the last message.
    pub(super) fn goes_on(&self) -> bool {
        self.messages.last().is_some_and(|message| message.role == "assistant")
    }

    /// Returns the ids of the calls that the client shows.
    pub(super) fn calls(&self) -> impl Iterator<Item = String> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter(|part| !part.tool_call_id.is_empty()).map(|part| part.tool_call_id.clone())
    }

    /// Converts the messages into a turn.
    pub(super) fn turn(&self) -> Turn {
        let mut turn = Turn::default();
        for message in &self.messages {
            match message.role.as_str() {
                "user" => {
                    let parts = message.parts.iter().filter_map(UiPart::said).collect();
                    turn.said.push(IncomingMessage { id: message.id.clone(), parts });
                }
                "assistant" => {
                    turn.said.clear();
                    for part in &message.parts {
                        turn.called(&part.tool_call_id);
                        turn.results.extend(part.result());
                    }
                    turn.decided.extend(message.parts.iter().filter_map(UiPart::decided));
                }
                _ => {}
            }
        }
        let answered = self.answers.iter().map(|(id, value)| resolved(id, value.clone()));
        turn.resume.extend(answered);
        let tools = self.tools.iter();
        turn.tools = tools
            .map(|(name, tool)| ToolSpec::new(name.clone(), tool.description.clone(), tool.parameters.clone()))
            .collect();
        turn
    }
}

impl UiPart {
    fn said(&self) -> Option<Part> {
        match self.r#type.as_str() {
            "text" => Some(Part::text(self.text.clone())),
            "file" => {
                let media = match self.url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
                    Some((mime, data)) => Media::base64(data, mime),
                    None => Media::url(self.url.clone()),
                };
                let media = self.media_type.iter().fold(media, Media::with_mime);
                let media = self.filename.iter().fold(media, Media::with_name);
                let is_image = media.mime.as_deref().is_some_and(|mime| mime.starts_with("image/"));
                Some(if is_image { Part::Image(media) } else { Part::Document(media) })
            }
            _ => None,
        }
    }

    fn result(&self) -> Option<CallResult> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (text, is_error) = match self.state.as_str() {
            "output-available" => (text(&self.output), false),
            "output-error" => (self.error_text.clone().unwrap_or_default(), true),
            _ => return None,
        };
        Some(CallResult { call: self.tool_call_id.clone(), text, is_error })
    }

    fn decided(&self) -> Option<Resume> {
        let approval = self.approval.as_ref().filter(|_| self.state == "approval-responded")?;
        let mut payload = json!({"approved": approval.approved?});
        if let Some(reason) = &approval.reason {
            payload["reason"] = reason.as_str().into();
        }
        Some(resolved(&approval.id, payload))
    }
}

fn resolved(id: &str, payload: Value) -> Resume {
    Resume { interrupt_id: id.to_owned(), status: ResumeStatus::Resolved, payload }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(messages: &Value) -> Turn {
        serde_json::from_value::<ChatInput>(json!({"id": "c", "messages": messages})).expect("an input").turn()
    }

    #[test]
    fn results_and_decisions_are_read_from_the_parts_of_the_last_answer() {
        let part = |state: &str, rest: Value| {
            let mut part =
                json!({"type": "dynamic-tool", "toolName": "f", "toolCallId": "c1", "state": state, "input": {}});
            part.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
            part
        };
        let answer = json!({"toolCallId": "c2", "approval": {"id": "d", "approved": false, "reason": "no"}});
        let decided = part("approval-responded", answer);
        let turn_of = |last: &Value| {
            turn(&json!([
                {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
                {"id": "2", "role": "assistant", "parts": [part("output-available", json!({"output": {"n": 1}})), last]},
            ]))
        };
        let told = turn_of(&decided);
        assert_eq!(told.results, [CallResult { call: "c1".into(), text: r#"{"n":1}"#.into(), is_error: false }]);
        assert_eq!(
            (told.decided[0].interrupt_id.as_str(), &told.decided[0].payload),
            ("d", &json!({"approved": false, "reason": "no"}))
        );
        assert!(told.said.is_empty());
        assert!(turn_of(&part("approval-requested", json!({"approval": {"id": "d"}}))).decided.is_empty());
    }

    #[test]
    fn files_of_the_user_are_media() {
        let told = turn(&json!([{"id": "1", "role": "user", "parts": [
            {"type": "text", "text": "look"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="}]}]));
        assert!(matches!(&told.said[0].parts[1], Part::Image(media) if media.mime.as_deref() == Some("image/png")));
    }
}
