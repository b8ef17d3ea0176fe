//! Requests of AG-UI front ends.

use agent::{
    Message, Part,
    message::{Media, UserMessage},
};
use serde::Deserialize;
use serde_json::Value;

use crate::conversation::Resume;

/// Body of a request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunAgentInput {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    /// Messages in their original form, which is sent back if all messages have to be repeated.
    #[serde(default)]
    pub(crate) messages: Vec<Value>,
    #[serde(default)]
    pub(super) tools: Option<Vec<ToolInput>>,
    #[serde(default)]
    pub(super) context: Option<Vec<Context>>,
    #[serde(default)]
    pub(super) state: Value,
    #[serde(default)]
    pub(super) forwarded_props: Value,
    #[serde(default)]
    pub(super) resume: Option<Vec<Resume>>,
}

/// Tool that the front end executes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ToolInput {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) parameters: Value,
}

/// Context that the front end provides.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Context {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) value: Value,
}

/// Message of the front end, with the fields that are read. Assistant messages come from the
/// journal only.
#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum MessageInput {
    User {
        id: String,
        content: Content,
    },
    Tool {
        tool_call_id: String,
        content: Content,
        #[serde(default)]
        error: Option<String>,
    },
    /// Assistant message in the front end's copy, of which only the ids of calls are read.
    #[serde(alias = "reasoning", alias = "activity")]
    Assistant {
        #[serde(default)]
        tool_calls: Option<Vec<CallInput>>,
    },
    /// System messages are ignored: instructions belong to the agent.
    #[serde(alias = "developer")]
    System {},
}

#[derive(Deserialize)]
pub(super) struct CallInput {
    #[serde(default)]
    pub(super) id: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<PartInput>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartInput {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    #[serde(alias = "audio", alias = "video")]
    Document {
        source: Source,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Source {
    Data {
        value: String,
        mime_type: String,
    },
    Url {
        value: String,
        #[serde(default)]
        mime_type: Option<String>,
    },
    File {
        value: String,
        #[serde(default)]
        mime_type: Option<String>,
    },
}

impl Content {
    pub(super) fn parts(self) -> Vec<Part> {
        match self {
            Self::Text(text) => vec![Part::text(text)],
            Self::Parts(parts) => parts.into_iter().map(PartInput::part).collect(),
        }
    }

    pub(super) fn text(self) -> String {
        Message::User(UserMessage::new(self.parts())).text()
    }
}

impl PartInput {
    fn part(self) -> Part {
        match self {
            Self::Text { text } => Part::text(text),
            Self::Image { source } => Part::Image(source.media()),
            Self::Document { source } => Part::Document(source.media()),
        }
    }
}

impl Source {
    fn media(self) -> Media {
        let with = |media: Media, mime: Option<String>| mime.into_iter().fold(media, Media::with_mime);
        match self {
            Self::Data { value, mime_type } => Media::base64(value, mime_type),
            Self::Url { value, mime_type } => with(Media::url(value), mime_type),
            Self::File { value, mime_type } => with(Media::file(value), mime_type),
        }
    }
}
