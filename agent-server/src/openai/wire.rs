//! Parsing of requests.

use std::collections::HashSet;

use agent::{
    Message, ModelParams,
    llm::{OpenAiChatCodec, OpenAiResponsesCodec, ParsedRequest, Profile, RequestReader},
    tool::ToolSpec,
};
use serde_json::{Map, Value};

use super::{error::OpenAiError, items::Items};
use crate::ApiError;

/// One of the two protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
}

/// Parsed request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) agent: String,
    /// All messages: the history if there is no session.
    pub(super) messages: Vec<Message>,
    /// Messages after the agent's last one.
    pub(super) newest: Vec<Message>,
    pub(super) items: Items,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) params: ModelParams,
    pub(super) stream: bool,
    /// Other fields of the body.
    pub(super) body: Map<String, Value>,
}

impl Wire {
    /// Returns the name of the field with the messages.
    fn field(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Responses => "input",
        }
    }

    /// Parses a body.
    pub(super) fn read(self, body: Map<String, Value>) -> Result<Asked, OpenAiError> {
        if body.get("n").is_some_and(|n| n.as_u64() != Some(1)) {
            return Err(ApiError::invalid("'n' must be 1: an agent returns one answer").into());
        }
        let parsed = self.decode(&body)?;
        let items = Items::of(body.get(self.field()));
        let mut newest = body.clone();
        newest.insert(self.field().to_owned(), Value::Array(items.newest.clone()));
        let newest = self.decode(&newest)?;
        let mut params = parsed.params;
        // Other parameters of the client must not reach the agent's provider.
        params.extra = Map::default();
        let tools: Vec<_> = parsed.tools.iter().map(plain).collect::<Result<_, _>>()?;
        if tools.is_empty() {
            params.tool_choice = None;
        }
        Ok(Asked {
            agent: parsed.model,
            messages: with_system(parsed.system.clone(), parsed.messages.iter()),
            newest: with_system(parsed.system, newest.messages.iter()),
            items,
            tools,
            params,
            stream: parsed.stream,
            body,
        })
    }

    fn decode(self, body: &Map<String, Value>) -> Result<ParsedRequest, OpenAiError> {
        // A separate provider name: raw content of clients is not a provider's own JSON, and is
        // never sent unchecked.
        let profile = Profile::compatible("client", "http://localhost");
        let bytes = serde_json::to_vec(body).map_err(|e| ApiError::invalid(e.to_string()))?;
        Ok(match self {
            Self::Chat => OpenAiChatCodec::new("", profile)?.decode_request(&bytes)?,
            Self::Responses => OpenAiResponsesCodec::new("", profile)?.decode_request(&bytes)?,
        })
    }
}

/// Converts a tool of the client; rejects tools that only OpenAI executes.
fn plain(spec: &ToolSpec) -> Result<ToolSpec, OpenAiError> {
    if spec.is_server_side() || spec.server.is_some() {
        let message =
            format!("the tool '{}' is executed by OpenAI: use functions, or add the tool to the agent", spec.name);
        return Err(ApiError::invalid(message).into());
    }
    Ok(ToolSpec::new(spec.name.clone(), spec.description.clone(), spec.parameters.clone()))
}

fn with_system<'a>(
    system: Option<agent::message::SystemMessage>,
    messages: impl Iterator<Item = &'a Message>,
) -> Vec<Message> {
    system.map(Message::System).into_iter().chain(messages.cloned()).collect()
}

impl Asked {
    /// Returns the names of the client's tools.
    pub(super) fn client_tools(&self) -> HashSet<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }
}
