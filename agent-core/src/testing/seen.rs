//! Requests received by a scripted model.

use crate::{
    llm::ModelParams,
    message::{Message, SystemMessage},
    model::ModelRequest,
};

/// One request received by a [`ScriptedModel`](super::ScriptedModel).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// Text of the system prompt.
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Names of the offered tools.
    pub tools: Vec<String>,
    /// Parameters of the call.
    pub params: ModelParams,
    /// True if a stream was requested.
    pub stream: bool,
    /// True if an earlier process, or an attempt before a question was answered, began the call.
    pub resumed: bool,
}

impl Seen {
    pub(super) fn of(req: &ModelRequest) -> Self {
        Self {
            system: req.system.as_ref().map(SystemMessage::text),
            messages: req.messages.iter().cloned().collect(),
            tools: req.tools.iter().map(|tool| tool.name.clone()).collect(),
            params: (*req.params).clone(),
            stream: req.stream,
            resumed: req.resumed,
        }
    }

    /// The text of each message.
    pub fn texts(&self) -> Vec<String> {
        self.messages.iter().map(Message::text).collect()
    }

    /// The role of each message.
    pub fn roles(&self) -> Vec<&'static str> {
        self.messages.iter().map(Message::role).collect()
    }

    /// The tool results: the call's id and the text for the model.
    pub fn results(&self) -> Vec<(String, String)> {
        let result = |m: &Message| m.as_tool().map(|tool| (tool.call_id().to_owned(), m.text()));
        self.messages.iter().filter_map(result).collect()
    }
}
