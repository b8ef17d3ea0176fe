//! Prompts of a server, for programs.

use std::collections::BTreeMap;

use agent_core::{AssistantMessage, Block, Message, Part, Result, UserMessage};
use rmcp::model::{GetPromptRequestParams, PaginatedRequestParams, PromptMessage, Role};
use serde_json::{Map, Value};

use super::{Client, connection::Connection, content, resources::pages};

/// A prompt of a server: messages that it makes of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prompt {
    /// What it is had by.
    pub name: String,
    /// What it is called, for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it is made of.
    pub arguments: Vec<PromptArgument>,
}

/// What a prompt is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// True if there is no prompt without it.
    pub required: bool,
}

impl Prompt {
    /// A prompt of a server of one's own, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, arguments: Vec::new() }
    }

    /// The same prompt with a name for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The same prompt with words that say what it is for.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same prompt with one argument more.
    #[must_use]
    pub fn with_argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
        self
    }
}

impl PromptArgument {
    /// An argument that may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, required: false }
    }

    /// The same argument with words that say what it is.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The same argument, without which there is no prompt.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Client {
    /// The prompts that the server has.
    ///
    /// # Errors
    /// Of kind [`Tool`](agent_core::ErrorKind::Tool) if the server cannot be reached, does not answer in time, or has none.
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

    /// The messages of a prompt, to begin a conversation with. What the server has an assistant say is text alone.
    ///
    /// # Errors
    /// As [`prompts`](Self::prompts); also if it is larger than results may be.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: impl IntoIterator<Item = (&str, &str)> + Send,
    ) -> Result<Vec<Message>> {
        let arguments: BTreeMap<_, _> = arguments.into_iter().collect();
        let arguments: Map<_, _> =
            arguments.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let get = async |connection: &Connection| connection.peer.get_prompt(params).await;
        let found = self.link.ask(None, self.link.settings.timeout, get).await?;
        content::check_size(&found.messages, self.link.settings.limit)?;
        Ok(found.messages.into_iter().map(message).collect())
    }
}

fn message(message: PromptMessage) -> Message {
    match (message.role, content::part(message.content)) {
        (Role::Assistant, Part::Text(text)) => Message::Assistant(AssistantMessage::new(vec![Block::Text(text)])),
        (_, part) => Message::User(UserMessage::new(vec![part])),
    }
}
