//! What is reported of a compaction.

use serde::{Deserialize, Serialize};

/// What a compaction is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionMode {
    /// To keep the conversation within its limit.
    #[default]
    Regular,
    /// The model asked for it.
    Requested,
    /// The provider refused a request that was too long.
    Emergency,
}

impl CompactionMode {
    /// The reason under which the history is replaced.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Regular => "compact_auto",
            Self::Requested => "compact_manual",
            Self::Emergency => "compact_emergency",
        }
    }
}

/// How a compaction ended, with figures. Tokens are estimates of the messages alone, without system prompt and tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Compaction {
    /// What it was for.
    pub mode: CompactionMode,
    /// How it was done.
    pub strategy: String,
    /// Messages before.
    pub messages_before: usize,
    /// Messages after; the same if nothing was replaced.
    pub messages_after: usize,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after; the same if nothing was replaced.
    pub tokens_after: u64,
    /// Why nothing was replaced, if nothing was.
    pub failure: Option<String>,
}

impl Compaction {
    /// A compaction that is to begin: nothing is replaced yet.
    pub fn new(mode: CompactionMode, strategy: impl Into<String>, messages: usize, tokens: u64) -> Self {
        Self {
            mode,
            strategy: strategy.into(),
            messages_before: messages,
            messages_after: messages,
            tokens_before: tokens,
            tokens_after: tokens,
            failure: None,
        }
    }

    /// The same compaction, which left so much.
    #[must_use]
    pub fn shrunk_to(mut self, messages: usize, tokens: u64) -> Self {
        (self.messages_after, self.tokens_after) = (messages, tokens);
        self
    }

    /// The same compaction, which replaced nothing for this reason.
    #[must_use]
    pub fn failed(mut self, why: impl Into<String>) -> Self {
        self.failure = Some(why.into());
        self
    }
}
