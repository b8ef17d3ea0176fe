//! [`ChatHistory`]: conversations in a separate store.

use std::sync::Arc;

use agent_core::{Error, ErrorKind, EventKind, History, Message, Middleware, Placement, Result, RunCx, RunEnd};
use agent_retrieval::memory::{ChatMessage, ChatMessageStore, ChatQuery};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run_value::RunValue;

/// The messages that the run was given, once it has begun.
const GIVEN: RunValue<Option<Vec<Message>>> = RunValue::new("chat_history", "given");

/// Chat id and retrieval limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatHistoryConfig {
    /// Id of the chat. Default: the run's session.
    pub chat: Option<String>,
    /// Maximum number of rounds that a run receives, newest last; a round lasts from a user message
    /// to the answer that ends it. Unset means all. Default: 10.
    pub last_k: Option<usize>,
}

impl Default for ChatHistoryConfig {
    fn default() -> Self {
        Self { chat: None, last_k: Some(10) }
    }
}

/// Prepends the newest rounds of a chat to the messages of a run, and stores the messages that the
/// run adds: for agents whose conversations are stored in a [`ChatMessageStore`], separately from
/// runs.
///
/// An agent with a [journal](agent_core::Journal) does not need it: its sessions already have their
/// history, and with both it would appear twice.
///
/// The run sees its own system messages, then the stored messages, then the new ones. When it has
/// finished, its messages and the following ones are stored, under ids that make repeated attempts
/// idempotent; if compaction removed the run's own messages from the history, they and the answer
/// are stored. An unfinished run stores nothing until it is resumed. If storing fails, there is a
/// warning and the run's end does not change.
///
/// # Order
///
/// ```text
/// // right: hooks that read the history when the run begins see all of it
/// builder.middleware(ChatHistory::new(chats)).middleware(greet_new_users)
/// // wrong: every user appears new
/// builder.middleware(greet_new_users).middleware(ChatHistory::new(chats))
/// ```
///
/// # Example
///
/// ```
/// use agent_core::{RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_exec::Agent;
/// use agent_middleware::ChatHistory;
/// use agent_store::InMemoryChatMessageStore;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().expect("starts").block_on(async {
/// let model = ScriptedModel::new([Turn::text("Hello, Ada."), Turn::text("Ada.")]);
/// let chats = ChatHistory::new(InMemoryChatMessageStore::default());
/// let agent = Agent::builder("chat", model.clone()).middleware(chats).build()?;
/// agent.start(RunRequest::user("I am Ada.").session("s")).await?;
/// agent.start(RunRequest::user("Who am I?").session("s")).await?;
/// assert_eq!(model.requests()[1].texts(), ["I am Ada.", "Hello, Ada.", "Who am I?"]);
/// # Ok::<(), agent_core::Error>(())
/// # }).expect("runs");
/// ```
#[derive(Clone)]
pub struct ChatHistory {
    store: Arc<dyn ChatMessageStore>,
    config: ChatHistoryConfig,
}

impl ChatHistory {
    /// Uses the newest ten rounds of the chat whose id is the run's session, in this store.
    pub fn new(store: impl ChatMessageStore) -> Self {
        Self { store: Arc::new(store), config: ChatHistoryConfig::default() }
    }

    /// Sets all settings that are data.
    #[must_use]
    pub fn config(mut self, config: ChatHistoryConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the chat's id.
    #[must_use]
    pub fn chat(mut self, id: impl Into<String>) -> Self {
        self.config.chat = Some(id.into());
        self
    }

    /// Sets the maximum number of rounds that a run receives.
    #[must_use]
    pub fn last_k(mut self, rounds: usize) -> Self {
        self.config.last_k = Some(rounds);
        self
    }

    fn chat_of<'a>(&'a self, cx: &'a RunCx) -> &'a str {
        self.config.chat.as_deref().unwrap_or(&cx.ids().session)
    }

    async fn retrieve(&self, cx: &RunCx) -> Result<Vec<ChatMessage>> {
        let broken = |e| Error::new(ErrorKind::Unexpected, "what was kept of a chat is no JSON").with_source(e);
        let mut query = ChatQuery::default();
        query.last_k = self.config.last_k;
        let retrieved = async {
            let messages = self.store.retrieve(self.chat_of(cx), &query).await?;
            serde_json::to_value(messages).map_err(broken)
        };
        serde_json::from_value(cx.decide("chat_history", retrieved).await?).map_err(broken)
    }

    /// Stores the messages once: a replay stores nothing. Returns how many are new.
    async fn write(&self, cx: &RunCx, messages: Vec<Message>) -> Result<Value> {
        let id = |at| format!("{}/{at}", cx.ids().run_id);
        let messages = messages.into_iter().enumerate().map(|(at, message)| ChatMessage::new(id(at), message));
        Ok(self.store.write(self.chat_of(cx), messages.collect()).await?.into())
    }
}

/// Returns the messages that a run with these `given` messages added to the chat.
fn added(history: &History, given: &[Message], answer: &str) -> Vec<Message> {
    let all: Vec<&Message> = history.iter().collect();
    let spoken = |message: &&Message| !matches!(message, Message::System(_));
    let given: Vec<&Message> = given.iter().filter(spoken).collect();
    let begins = (0..=all.len().saturating_sub(given.len())).rev().find(|at| all[*at..].starts_with(&given));
    match begins {
        Some(at) => all[at..].iter().copied().cloned().collect(),
        None => {
            let answer = Some(answer).filter(|answer| !answer.is_empty()).map(Message::assistant);
            given.into_iter().cloned().chain(answer).collect()
        }
    }
}

#[async_trait]
impl Middleware for ChatHistory {
    fn name(&self) -> &str {
        "chat_history"
    }

    fn placement(&self) -> Placement {
        Placement::default().unique()
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        if GIVEN.update(cx, |given| given.is_some())? {
            return Ok(()); // the run was resumed, and has its history
        }
        let given: Vec<Message> = cx.history().iter().cloned().collect();
        let kept = self.retrieve(cx).await?;
        if !kept.is_empty() {
            let (system, new): (Vec<_>, Vec<_>) =
                given.iter().cloned().partition(|message| matches!(message, Message::System(_)));
            let kept = kept.into_iter().map(|kept| kept.message);
            let (history, repairs) = History::import(system.into_iter().chain(kept).chain(new));
            for repair in repairs {
                let message = format!("chat history: what was kept of the chat was repaired: {repair:?}");
                cx.emit(EventKind::Warning { message });
            }
            cx.replace_history(history, "chat_history");
        }
        GIVEN.update(cx, |known| *known = Some(given.clone()))
    }

    async fn after_agent(&self, cx: &RunCx, end: &mut Result<RunEnd>) -> Result<()> {
        if let Ok(RunEnd::Finished(finished)) = end {
            let given = GIVEN.update(cx, |given| given.clone())?.unwrap_or_default();
            let added = added(&finished.history, &given, &finished.answer);
            if let Err(e) = cx.decide("chat_history/kept", self.write(cx, added)).await {
                let message = format!("chat history: what the run added to the chat could not be kept: {e}");
                cx.emit(EventKind::Warning { message });
            }
        }
        GIVEN.end(cx, end);
        Ok(())
    }
}

impl std::fmt::Debug for ChatHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatHistory").field("config", &self.config).finish_non_exhaustive()
    }
}
