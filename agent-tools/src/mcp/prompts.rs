//! Prompts of a server, for programs.

use std::collections::BTreeMap;

use agent_core::{AssistantMessage, Block, Message, Part, Result, UserMessage};
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams, PromptMessage, Role};
use serde_json::{Map, Value};

use super::{Client, connection::Connection, content, inputs, resources::pages};

/// Prompt of a server: a template of messages with arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// Name that identifies the prompt.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Purpose of the prompt.
    pub description: Option<String>,
    /// Arguments of the prompt.
    pub arguments: Vec<PromptArgument>,
}

/// Argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Description of the argument.
    pub description: Option<String>,
    /// True if the argument is required.
    pub required: bool,
}

impl Prompt {
    /// Creates a prompt without arguments, to be served.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, arguments: Vec::new() }
    }

    /// Sets the title for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description of the prompt's purpose.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn with_argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
        self
    }
}

impl PromptArgument {
    /// Creates an optional argument.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, required: false }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Makes the argument required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Client {
    /// Lists the prompts of the server.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server is unreachable, does not respond
    /// in time, or has no prompts.
    pub async fn prompts(&self) -> Result<Vec<Prompt>> {
        let list = async |connection: &Connection| pages!(connection, list_prompts, prompts);
        let found = self.link.ask(None, self.link.settings.timeout, list).await?;
        let argument = |a: rmcp::model::PromptArgument| PromptArgument {
            name: a.name,
            description: a.description,
            required: a.required == Some(true),
        };
        let known = |p: rmcp::model::Prompt| Prompt {
            name: p.name,
            title: p.title,
            description: p.description,
            arguments: p.arguments.into_iter().flatten().map(argument).collect(),
        };
        Ok(found.into_iter().map(known).collect())
    }

    /// Returns the messages of a prompt, to start a conversation with. Assistant messages keep only
    /// their text.
    ///
    /// # Errors
    /// As [`prompts`](Self::prompts); also if the prompt exceeds the size limit of results.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (&str, &str)> + Send,
    ) -> Result<Vec<Message>> {
        let arguments: BTreeMap<_, _> = arguments.into_iter().collect();
        let arguments: Map<_, _> =
            arguments.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        let mut params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let settings = &self.link.settings;
        for _ in 0..inputs::ROUNDS {
            let sent = params.clone();
            let get = async |connection: &Connection| connection.peer.get_prompt_once(sent).await;
            match self.link.ask(None, settings.timeout, get).await? {
                GetPromptResponse::Complete(found) => {
                    content::check_size(&found.messages, settings.limit)?;
                    return Ok(found.messages.into_iter().map(message).collect());
                }
                GetPromptResponse::InputRequired(asked) => {
                    (params.input_responses, params.request_state) = inputs::answer_outside(settings, asked).await?;
                }
                _ => break,
            }
        }
        Err(inputs::endless(settings))
    }
}

fn message(message: PromptMessage) -> Message {
    match (message.role, content::part(message.content)) {
        (Role::Assistant, Part::Text(text)) => Message::Assistant(AssistantMessage::new(vec![Block::Text(text)])),
        (_, part) => Message::User(UserMessage::new(vec![part])),
    }
}
