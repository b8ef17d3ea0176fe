//! [`PromptCaching`]: asks providers to keep the prompt.

use std::collections::BTreeSet;

use agent_core::{
    Flow, History, Message, Middleware, ModelRequest, ModelResponse, Part, Placement, Result, RunCx, ToolSpecs,
    message::Cache,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// What providers are asked to keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PromptCachingConfig {
    /// How long. Default: as long as the provider does by default.
    pub keep: Cache,
    /// Whether a mark is set after the tools. Default: true.
    pub tools: bool,
    /// Whether a mark is set after the system prompt. Default: true.
    pub system: bool,
    /// How many of the newest messages that are not the model's own are marked. Default: 2: one that the next call finds
    /// again, and one for what is new.
    pub messages: usize,
    /// Messages that a conversation must have before any is marked: short ones cost more to keep than to read again.
    /// Default: 0.
    pub min_messages: usize,
    /// The providers that must be asked, by [`ModelInfo::provider`](agent_core::ModelInfo::provider). Others keep prompts by
    /// themselves, or not at all. Default: `anthropic`.
    pub providers: BTreeSet<String>,
}

impl Default for PromptCachingConfig {
    fn default() -> Self {
        Self {
            keep: Cache::default(),
            tools: true,
            system: true,
            messages: 2,
            min_messages: 0,
            providers: BTreeSet::from(["anthropic".into()]),
        }
    }
}

/// Asks providers to keep the prompt, so that the next call pays less for reading it again: after the tools, after the system
/// prompt, and at the newest messages. Of these four marks, Anthropic's most, the last two move with the conversation.
///
/// It changes the view of each call and nothing that is kept. Requests to other providers are left alone. An edit of the view
/// by a middleware inside may come before a mark and spoil it; that is what the order is about.
///
/// # Order
///
/// Inside whatever changes the beginning of the prompt from call to call, so that the marks are set on what is sent.
///
/// ```text
/// // right: the marks are at the end of what is sent
/// builder.middleware(ContextCompaction::new()).middleware(PromptCaching::new())
/// // wrong: what was marked is compacted afterwards, and the provider keeps a prompt that no call begins with
/// builder.middleware(PromptCaching::new()).middleware(ContextCompaction::new())
/// ```
///
/// # Example
///
/// ```
/// use agent_core::message::Cache;
/// use agent_middleware::PromptCaching;
///
/// let caching = PromptCaching::new().keep(Cache::Long).min_messages(4);
/// # drop(caching);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PromptCaching {
    config: PromptCachingConfig,
}

impl PromptCaching {
    /// Marks after the tools, after the system prompt, and at the two newest messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long the provider is asked to keep it.
    #[must_use]
    pub fn keep(mut self, keep: Cache) -> Self {
        self.config.keep = keep;
        self
    }

    /// Sets how many messages a conversation must have before any is marked.
    #[must_use]
    pub fn min_messages(mut self, least: usize) -> Self {
        self.config.min_messages = least;
        self
    }

    /// Adds a provider that must be asked.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.config.providers.insert(name.into());
        self
    }

    /// Marks the newest messages. Those before them are shared with what is kept, and so is what wires wrote for them.
    fn mark_messages(&self, history: &mut History) -> Result<()> {
        let PromptCachingConfig { messages, min_messages, keep, .. } = self.config;
        if history.len() < min_messages {
            return Ok(());
        }
        let newest = (0..history.len()).rev().zip(history.iter().rev());
        let marked = newest.filter_map(|(at, message)| Some((at, marked(message, keep)?)));
        let marked: Vec<_> = marked.take(messages).collect();
        marked.into_iter().try_for_each(|(at, message)| history.replace(at, message))
    }
}

/// The message with a mark, if it is one that takes a mark: not the model's own, and with something at its end.
fn marked(message: &Message, keep: Cache) -> Option<Message> {
    let mut message = message.clone();
    match &mut message {
        Message::User(user) if takes_mark(user.parts()) => mark(user.parts_mut(), keep),
        Message::Tool(result) if takes_mark(result.parts()) => mark(result.parts_mut(), keep),
        _ => return None,
    }
    Some(message)
}

fn takes_mark(parts: &[Part]) -> bool {
    match parts.last() {
        Some(Part::Text(text)) => !text.is_empty(),
        Some(Part::Image(_) | Part::Document(_)) => true,
        _ => false,
    }
}

fn mark(parts: &mut [Part], keep: Cache) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.cache = Some(keep),
        Some(Part::Image(media) | Part::Document(media)) => media.cache = Some(keep),
        _ => {}
    }
}

impl From<PromptCachingConfig> for PromptCaching {
    fn from(config: PromptCachingConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for PromptCaching {
    fn name(&self) -> &str {
        "prompt_caching"
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("context_compaction").inside("runtime_environment").inside("todo_list").unique()
    }

    async fn before_model(&self, _: &RunCx, req: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        let asked = req.model.as_ref().is_some_and(|model| self.config.providers.contains(&model.provider));
        if !asked {
            return Ok(Flow::Continue);
        }
        if self.config.tools && !req.tools.is_empty() {
            let mut tools = req.tools.to_vec();
            tools.last_mut().into_iter().for_each(|tool| tool.cache = Some(self.config.keep));
            req.tools = tools.into_iter().collect::<ToolSpecs>();
        }
        if let Some(system) = req.system.as_mut().filter(|system| self.config.system && takes_mark(system.parts())) {
            mark(system.parts_mut(), self.config.keep);
        }
        self.mark_messages(&mut req.messages)?;
        Ok(Flow::Continue)
    }
}
