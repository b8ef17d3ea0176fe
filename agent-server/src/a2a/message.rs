//! Messages of an Agent2Agent client.

use agent::{
    Message, Part, Question,
    message::{Media, UserMessage},
    run::Answer,
};
use serde::Deserialize;
use serde_json::Value;

use super::{push::PushConfig, rpc::RpcError, version::Version};
use crate::{conversation::is_yes_or_no, decision};

/// Parameters of sending a message, as a stream or not.
#[derive(Deserialize)]
pub(super) struct Send {
    pub(super) message: Said,
    #[serde(default)]
    pub(super) configuration: Configuration,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    /// Version 0.3.
    blocking: Option<bool>,
    push_notification_config: Option<PushConfig>,
    /// Version 1.0.
    return_immediately: bool,
    task_push_notification_config: Option<PushConfig>,
}

impl Configuration {
    /// Returns true if the response waits until the task is over or needs input.
    pub(super) fn waits(&self, version: Version) -> bool {
        match version {
            Version::V03 => self.blocking.unwrap_or(true),
            Version::V10 => !self.return_immediately,
        }
    }

    pub(super) fn push(&self) -> Option<&PushConfig> {
        self.task_push_notification_config.as_ref().or(self.push_notification_config.as_ref())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Said {
    pub(super) message_id: String,
    parts: Vec<PartSaid>,
    #[serde(default, deserialize_with = "nonempty")]
    pub(super) context_id: Option<String>,
    #[serde(default, deserialize_with = "nonempty")]
    pub(super) task_id: Option<String>,
}

/// Reads a text; protocol buffers make no difference between an empty one and none.
fn nonempty<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(text)?.filter(|text| !text.is_empty()))
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "RawPart")]
enum PartSaid {
    Text { text: String },
    Data { data: Value },
    File { file: File },
}

/// Part of either version: what it holds is said by its fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPart {
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    /// Version 0.3.
    file: Option<File>,
    /// Version 1.0.
    raw: Option<String>,
    url: Option<String>,
    media_type: Option<String>,
    filename: Option<String>,
}

/// Reads a value, which may be `null`.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl TryFrom<RawPart> for PartSaid {
    type Error = &'static str;

    fn try_from(part: RawPart) -> Result<Self, Self::Error> {
        match part {
            RawPart { text: Some(text), .. } => Ok(Self::Text { text }),
            RawPart { data: Some(data), .. } => Ok(Self::Data { data }),
            RawPart { file: Some(file), .. } => Ok(Self::File { file }),
            RawPart { raw, url, media_type, filename, .. } if raw.is_some() || url.is_some() => {
                Ok(Self::File { file: File { bytes: raw, uri: url, mime_type: media_type, name: filename } })
            }
            _ => Err("a part must have a text, data, raw bytes, a URL or a file"),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    bytes: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl Said {
    /// Converts the parts into a message for the agent.
    ///
    /// # Errors
    /// An error if the message has no content.
    pub(super) fn message(&self) -> Result<Message, RpcError> {
        let parts: Vec<_> = self.parts.iter().filter_map(PartSaid::part).collect();
        if parts.is_empty() {
            return Err(RpcError::params("the message has no parts"));
        }
        Ok(Message::User(UserMessage::new(parts)))
    }

    /// Converts the message into answers to these questions: its data part, an object by question
    /// id; or its text, if there is a single question.
    ///
    /// # Errors
    /// An error if it is ambiguous which question the message answers.
    pub(super) fn answers(&self, questions: &[Question]) -> Result<Vec<(String, Answer)>, RpcError> {
        let data = self.parts.iter().find_map(|part| match part {
            PartSaid::Data { data } => Some(data),
            _ => None,
        });
        let named = |question: &Question| Some(question.answer(data?.get(&question.id)?.clone()));
        let answers: Vec<_> = questions.iter().filter_map(named).collect();
        match (&*answers, questions, data) {
            ([], [question], Some(data)) => Ok(vec![question.answer(data.clone())]),
            ([], [question], None) => Ok(vec![question.answer(answer(question, self.message()?.text()))]),
            ([], _, _) => {
                let ids: Vec<_> = questions.iter().map(|question| question.id.as_str()).collect();
                let message =
                    format!("ambiguous answer: send a data part with an object with the fields {}", ids.join(", "));
                Err(RpcError::params(message))
            }
            _ => Ok(answers),
        }
    }
}

/// Converts a text into an answer. Approvals accept a few words.
fn answer(question: &Question, text: String) -> Value {
    let word = text.trim().to_lowercase();
    match word.as_str() {
        "approve" | "yes" if is_yes_or_no(question) => decision(question, true, None),
        "reject" | "no" if is_yes_or_no(question) => decision(question, false, None),
        _ => text.into(),
    }
}

impl PartSaid {
    fn part(&self) -> Option<Part> {
        match self {
            Self::Text { text } => Some(Part::text(text.clone())),
            Self::Data { data } => Some(Part::text(data.to_string())),
            Self::File { file } => {
                let mime = file.mime_type.clone();
                let media = match (&file.bytes, &file.uri) {
                    (Some(bytes), _) => Media::base64(bytes.clone(), mime.clone().unwrap_or_default()),
                    (None, uri) => mime.iter().fold(Media::url(uri.clone()?), Media::with_mime),
                };
                let media = file.name.iter().fold(media, Media::with_name);
                let is_image = mime.is_some_and(|mime| mime.starts_with("image/"));
                Some(if is_image { Part::Image(media) } else { Part::Document(media) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(parts: &Value) -> Said {
        serde_json::from_value(json!({"messageId": "m", "role": "user", "parts": parts})).expect("a message")
    }

    #[test]
    fn one_question_is_answered_by_a_text_and_many_by_their_names() {
        let one = [Question::new("c1/approval", "approval", json!({}))];
        let text = said(&json!([{"kind": "text", "text": "Yes"}]));
        assert_eq!(text.answers(&one).expect("clear")[0].1.value, json!({"decision": "approve"}));
        let data = said(&json!([{"kind": "data", "data": {"decision": "reject", "reason": "no"}}]));
        assert_eq!(data.answers(&one).expect("clear")[0].1.value["reason"], "no");
        let two = [Question::new("a", "ask", json!({})), Question::new("b", "ask", json!({}))];
        assert!(text.answers(&two).is_err());
        let named = said(&json!([{"kind": "data", "data": {"b": 2, "a": 1}}]));
        let values: Vec<_> = named.answers(&two).expect("clear").into_iter().map(|(_, answer)| answer.value).collect();
        assert_eq!(values, [json!(1), json!(2)]);
    }
}
