//! What the checks must know of a wire: one file each, written without a look at its codec.

mod anthropic_messages;
mod bedrock_converse;
mod bedrock_invoke;
mod cohere_chat;
mod gemini_generate;
mod ollama_chat;
mod openai_chat;
mod openai_responses;

pub(crate) use agent::llm::conformance::json::{items, text};
use agent::{
    Result,
    llm::{RequestReader, conformance::json},
};
use serde_json::Value;

use super::{Exchange, Frames};

/// All wires that can be checked.
pub(crate) const WIRES: &[&dyn Wire] = &[
    &openai_chat::OpenAiChat,
    &openai_responses::OpenAiResponses,
    &anthropic_messages::AnthropicMessages,
    &gemini_generate::GeminiGenerate,
    &cohere_chat::CohereChat,
    &bedrock_converse::BedrockConverse,
    &bedrock_invoke::BedrockInvoke,
    &ollama_chat::OllamaChat,
];

/// An independent reading of one wire. Nothing here may ask the codec.
pub(crate) trait Wire: Sync {
    /// The wire's name, as recordings have it.
    fn api(&self) -> &'static str;

    /// The codec under test, set as the client of this exchange was.
    ///
    /// # Errors
    /// If there is no such codec.
    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>>;

    /// Why an exchange that was recorded under this wire's name is none of it. Default: it is.
    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        let _ = exchange;
        None
    }

    /// True if this body, or this event, is an error.
    fn is_error(&self, json: &Value) -> bool;

    /// True if a stream has an event on each line. Default: its events are server-sent.
    fn has_lines(&self) -> bool {
        false
    }

    /// True if nothing is missing at the end of the stream.
    fn is_complete(&self, frames: &Frames) -> bool;

    /// The naive fold: the body that would have come whole.
    fn whole(&self, frames: &[Value]) -> Value;

    /// The assistant's turn in a whole body, in the form in which it goes back. None if there is none.
    fn turn(&self, whole: &Value) -> Option<Value>;

    /// What the turn says.
    fn said(&self, turn: &Value) -> Said;

    /// The turn in a request that holds a user's message, the turn, and the results of its calls. None if there is none.
    fn sent_back(&self, request: &Value) -> Option<Value>;

    /// What else of a whole body must be in the response: log probabilities, further candidates, sources. Default: nothing.
    fn beside(&self, whole: &Value) -> Value {
        let _ = whole;
        Value::Null
    }

    /// All tokens of the call by the body's own account. Default: it gives none.
    fn tokens(&self, whole: &Value) -> Option<u64> {
        let _ = whole;
        None
    }

    /// Where the turn `back` is not the turn `sent`. Default: wherever they are not equal.
    fn turn_differences(&self, sent: &Value, back: &Value) -> Vec<String> {
        json::differences(sent, back)
    }

    /// True if a whole turn says in which order the model thought, spoke and called. Default: it does.
    fn has_order(&self) -> bool {
        true
    }

    /// True if a whole body holds the arguments of a call as JSON, so that only their value matters. Default: they are text.
    fn arguments_are_json(&self) -> bool {
        false
    }

    /// Brings what means the same to the same form, in the recorded request as in the encoded one. Default: nothing.
    fn normalise_request(&self, request: &mut Value) {
        let _ = request;
    }
}

/// What a turn says, read independently.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// All text for the user, run together.
    pub(crate) text: String,
    /// All readable reasoning, run together.
    pub(crate) reasoning: String,
    /// The calls, in order.
    pub(crate) calls: Vec<Called>,
    /// Something else is said.
    pub(crate) more: bool,
}

/// A call of a tool.
#[derive(Debug)]
pub(crate) struct Called {
    /// Its id; empty if it has none.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// A text must be kept byte for byte; of JSON, only the value matters.
    pub(crate) arguments: Value,
}

impl Said {
    /// Where `other` says something else.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut out = Vec::new();
        for (what, said, other) in [("text", &self.text, &other.text), ("reasoning", &self.reasoning, &other.reasoning)]
        {
            if said != other {
                out.push(format!("{what}: {other:?} is not {said:?}"));
            }
        }
        if self.calls.len() != other.calls.len() {
            out.push(format!("{} calls, not {}", other.calls.len(), self.calls.len()));
        }
        let calls = self.calls.iter().zip(&other.calls).enumerate();
        let differing = calls.filter(|(_, (said, other))| !said.is_same(other));
        out.extend(differing.map(|(at, (said, other))| format!("call {at}: {other:?} is not {said:?}")));
        out
    }

    /// True if nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty() && !self.more
    }
}

impl Called {
    /// True if `other` is this call. One that has no id may be given one.
    fn is_same(&self, other: &Self) -> bool {
        let same_arguments = match (&self.arguments, &other.arguments) {
            (Value::String(said), Value::String(other)) => said == other,
            (said, Value::String(other)) => {
                serde_json::from_str(other).is_ok_and(|other| json::differences(said, &other).is_empty())
            }
            (said, other) => json::differences(said, other).is_empty(),
        };
        let same_id = self.id.is_empty() || self.id == other.id;
        same_id && self.name == other.name && same_arguments
    }
}
