//! [`PromptCaching`]: asks providers to cache the prompt.

use std::collections::BTreeSet;

use agent_core::{
    Flow, History, Message, Middleware, ModelRequest, ModelResponse, Part, Placement, Result, RunCx, ToolSpecs,
    message::Cache,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Configuration of `PromptCaching`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PromptCachingConfig {
    /// Cache duration. Default: the provider's default.
    pub keep: Cache,
    /// Sets a cache mark after the tools. Default: true.
    pub tools: bool,
    /// Sets a cache mark after the system prompt. Default: true.
    pub system: bool,
    /// Number of newest messages not written by the model that are marked. Default: 2: one that the
    /// next call finds again, and one for new content.
    pub messages: usize,
    /// Minimum number of messages in a conversation before any is marked: caching a short one costs
    /// more than reading it again. Default: 0.
    pub min_messages: usize,
    /// Providers that need cache marks, by
    /// [`ModelInfo::provider`](agent_core::ModelInfo::provider). Others cache automatically, or not
    /// at all. Default: `anthropic`.
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

/// Asks providers to cache the prompt, so that the next call pays less for it: after the tools,
/// after the system prompt, and at the newest messages. Of these four marks, Anthropic's maximum,
/// the last two move with the conversation.
///
/// It changes the request of each call, but not the stored history. Requests to other providers are
/// not changed. An inner middleware that edits the request before a mark may invalidate it; see the
/// order.
///
/// # Order
///
/// Inside middleware that changes the beginning of the prompt from call to call, so that the marks
/// match the prompt that is sent.
///
/// ```text
/// // right: the marks are at the end of the prompt that is sent
/// builder.middleware(ContextCompaction::new()).middleware(PromptCaching::new())
/// // wrong: the marked prompt is compacted afterwards, so that no call has the cached prefix
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
    /// Sets marks after the tools, after the system prompt, and at the two newest messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the cache duration.
    #[must_use]
    pub fn keep(mut self, keep: Cache) -> Self {
        self.config.keep = keep;
        self
    }

    /// Sets the minimum number of messages in a conversation before any is marked.
    #[must_use]
    pub fn min_messages(mut self, least: usize) -> Self {
        self.config.min_messages = least;
        self
    }

    /// Adds a provider that needs cache marks.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.config.providers.insert(name.into());
        self
    }

    /// Marks the newest messages. Earlier messages stay shared with the stored history, and so does
    /// their cached wire format.
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

/// Returns the message with a mark, if it can take one: not the model's own, and with non-empty
/// content at its end.
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
