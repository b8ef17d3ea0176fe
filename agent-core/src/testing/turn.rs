//! One reply of a scripted model.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use super::Seen;
use crate::{
    error::Error,
    llm::FinishReason,
    message::{AssistantMessage, Block},
    usage::Usage,
};

type Fail = Arc<dyn Fn() -> Error + Send + Sync>;
type Check = Arc<dyn Fn(&Seen) -> Result<(), String> + Send + Sync>;

/// One reply of a [`ScriptedModel`](super::ScriptedModel): its content, its timing, and the checks
/// of its request.
///
/// ```
/// use agent_core::testing::Turn;
/// use serde_json::json;
///
/// let turn = Turn::text("Let me look.")
///     .and_call("c1", "weather", json!({"city": "Oslo"}))
///     .expect(|seen| if seen.tools == ["weather"] { Ok(()) } else { Err(format!("offered: {:?}", seen.tools)) });
/// # drop(turn);
/// ```
#[derive(Clone)]
#[must_use = "a turn does nothing until it is in a script"]
pub struct Turn {
    pub(super) message: AssistantMessage,
    pub(super) usage: Usage,
    pub(super) finish: Option<FinishReason>,
    pub(super) delay: Option<Duration>,
    pub(super) failure: Option<Fail>,
    checks: Vec<Check>,
}

impl Turn {
    /// Replies with a text, streamed word by word. An empty text gives an empty message.
    pub fn text(text: impl Into<String>) -> Self {
        Self::message(AssistantMessage::new(Vec::new())).and_text(text)
    }

    /// Replies with one tool call.
    pub fn call(id: &str, name: &str, args: Value) -> Self {
        Self::calls([(id, name, args)])
    }

    /// Replies with several tool calls in one message: each with its id, tool and arguments.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>) -> Self {
        let block = |(id, name, args): (&str, &str, Value)| Block::tool_call(id, name, args.to_string());
        Self::message(AssistantMessage::new(calls.into_iter().map(block).collect()))
    }

    /// Replies with one tool call whose arguments are this text, which need not be valid JSON.
    pub fn raw_call(id: &str, name: &str, arguments: &str) -> Self {
        Self::message(AssistantMessage::new(vec![Block::tool_call(id, name, arguments)]))
    }

    /// Replies with this message.
    pub fn message(message: AssistantMessage) -> Self {
        Self { message, usage: Usage::new(10, 10), finish: None, delay: None, failure: None, checks: Vec::new() }
    }

    /// Fails before any chunk.
    pub fn error(error: impl Fn() -> Error + Send + Sync + 'static) -> Self {
        Self::text("").then_fail(error)
    }

    /// Appends a text. The raw JSON of a [`message`](Self::message) is dropped.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { self } else { self.and(Block::text(text)) }
    }

    /// Appends a tool call. The raw JSON of a [`message`](Self::message) is dropped.
    #[expect(clippy::needless_pass_by_value, reason = "takes what `json!` makes, as `call` does")]
    pub fn and_call(self, id: &str, name: &str, args: Value) -> Self {
        self.and(Block::tool_call(id, name, args.to_string()))
    }

    fn and(mut self, block: Block) -> Self {
        let mut blocks = self.message.blocks().to_vec();
        blocks.push(block);
        self.message = AssistantMessage::new(blocks);
        self
    }

    /// Waits this long before each chunk, and before a failure.
    pub fn delay(mut self, per_chunk: Duration) -> Self {
        self.delay = Some(per_chunk);
        self
    }

    /// Fails with an error after the chunks were emitted.
    pub fn then_fail(mut self, error: impl Fn() -> Error + Send + Sync + 'static) -> Self {
        self.failure = Some(Arc::new(error));
        self
    }

    /// Sets the reported usage. Default: 10 tokens in, 10 out.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the finish reason. Default: tool calls if there are any, otherwise a normal stop.
    pub fn finish(mut self, finish: FinishReason) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Adds a check of the request; if it fails, so does the call, with its reason. All checks must
    /// pass.
    pub fn expect(mut self, check: impl Fn(&Seen) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.checks.push(Arc::new(check));
        self
    }

    pub(super) fn check(&self, seen: &Seen) -> Result<(), String> {
        self.checks.iter().try_for_each(|check| check(seen))
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("blocks", &self.message.blocks())
            .field("fails", &self.failure.is_some())
            .field("checks", &self.checks.len())
            .finish_non_exhaustive()
    }
}
