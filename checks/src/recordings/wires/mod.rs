//! Knowledge about each wire that the checks need: one file each, written independently of its
//! codec.

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

/// Independent parser of one wire, which must not use the codec.
pub(crate) trait Wire: Sync {
    /// Returns the wire's name in recordings.
    fn api(&self) -> &'static str;

    /// Returns the codec under test, configured like the client of this exchange.
    ///
    /// # Errors
    /// If there is no such codec.
    fn codec(&self, exchange: &Exchange) -> Result<Box<dyn RequestReader>>;

    /// Returns the reason why an exchange recorded under this wire's name belongs to another.
    /// Default: `None`.
    fn foreign(&self, exchange: &Exchange) -> Option<&'static str> {
        let _ = exchange;
        None
    }

    /// Returns true if this body, or this event, is an error.
    fn is_error(&self, json: &Value) -> bool;

    /// Returns true if a stream without an error event is not one message. Default: false.
    fn is_broken_off(&self, frames: &Frames) -> bool {
        let _ = frames;
        false
    }

    /// Returns true if a stream has one event per line. Default: server-sent events.
    fn has_lines(&self) -> bool {
        false
    }

    /// Returns true if the stream is complete.
    fn is_complete(&self, frames: &Frames) -> bool;

    /// Folds the stream naively to the equivalent whole body.
    fn whole(&self, frames: &[Value]) -> Value;

    /// Returns the assistant's turn in a whole body, in the form in which it is sent back, or
    /// `None` if the body has no turn.
    fn turn(&self, whole: &Value) -> Option<Value>;

    /// Returns the content of the turn.
    fn said(&self, turn: &Value) -> Said;

    /// Returns the content of the turn as the server of this exchange means it. Default: as
    /// [`said`](Self::said).
    fn meant(&self, exchange: &Exchange, turn: &Value) -> Said {
        let _ = exchange;
        self.said(turn)
    }

    /// Returns the turn in a request that holds a user's message, the turn, and the results of its
    /// calls; `None` for any other request.
    fn sent_back(&self, request: &Value) -> Option<Value>;

    /// Returns other parts of a whole body that the response must contain: log probabilities,
    /// further candidates, sources. Default: nothing.
    fn beside(&self, whole: &Value) -> Value {
        let _ = whole;
        Value::Null
    }

    /// Returns the total tokens of the call as the body reports them. Default: `None`.
    fn tokens(&self, whole: &Value) -> Option<u64> {
        let _ = whole;
        None
    }

    /// Returns the provider's finish reason in a whole body; empty if it is missing.
    fn finish<'a>(&self, whole: &'a Value) -> &'a str;

    /// Lists the differences between the turns `back` and `sent`. Default: all differences.
    fn turn_differences(&self, sent: &Value, back: &Value) -> Vec<String> {
        json::differences(sent, back)
    }

    /// Returns true if a whole turn records the order of reasoning, text and calls. Default: true.
    fn has_order(&self) -> bool {
        true
    }

    /// Returns true if a whole body holds the arguments of a call as JSON, so that only their value
    /// matters. Default: they are text.
    fn arguments_are_json(&self) -> bool {
        false
    }

    /// Normalises equivalent forms, in the recorded and the encoded request. Default: no change.
    fn normalise_request(&self, request: &mut Value) {
        let _ = request;
    }
}

/// Content of a turn, parsed independently.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// All text for the user, concatenated.
    pub(crate) text: String,
    /// All readable reasoning, concatenated.
    pub(crate) reasoning: String,
    /// Calls, in order.
    pub(crate) calls: Vec<Called>,
    /// True if there is other content.
    pub(crate) more: bool,
}

/// Tool call.
#[derive(Debug)]
pub(crate) struct Called {
    /// Id; empty if missing.
    pub(crate) id: String,
    /// Name of the tool.
    pub(crate) name: String,
    /// Arguments: text must be kept byte for byte; of JSON, only the value matters.
    pub(crate) arguments: Value,
}

impl Said {
    /// Lists the differences from `other`.
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

    /// Returns true if there is no content.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty() && !self.more
    }
}

impl Called {
    /// Returns true if `other` is this call. A call without an id may get one.
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
