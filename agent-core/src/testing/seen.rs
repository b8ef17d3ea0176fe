//! What a scripted model was given.

use crate::{
    llm::ModelParams,
    message::{Message, SystemMessage},
    model::ModelRequest,
};

/// One request that a [`ScriptedModel`](super::ScriptedModel) was given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// The system prompt's text.
    pub system: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// How to answer.
    pub params: ModelParams,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether an earlier process, or an earlier attempt to answer a question, began the call.
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

    /// The tool results: the call's id and the text that the model is shown.
    pub fn results(&self) -> Vec<(String, String)> {
        let result = |m: &Message| m.as_tool().map(|tool| (tool.call_id().to_owned(), m.text()));
        self.messages.iter().filter_map(result).collect()
    }
}
