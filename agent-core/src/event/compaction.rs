//! Reports of compactions.

use serde::{Deserialize, Serialize};

/// Purpose of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionMode {
    /// Keep the conversation within its limit.
    #[default]
    Regular,
    /// The model requested it.
    Requested,
    /// The provider rejected a request that was too long.
    Emergency,
}

impl CompactionMode {
    /// Reason with which the history is replaced.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Regular => "compact_auto",
            Self::Requested => "compact_manual",
            Self::Emergency => "compact_emergency",
        }
    }
}

/// Result of a compaction, with metrics. Token counts are estimates of the messages only, without
/// system prompt and tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Compaction {
    /// Purpose of the compaction.
    pub mode: CompactionMode,
    /// Name of the strategy.
    pub strategy: String,
    /// Number of messages before.
    pub messages_before: usize,
    /// Number of messages after; the same if nothing was replaced.
    pub messages_after: usize,
    /// Number of tokens before.
    pub tokens_before: u64,
    /// Number of tokens after; the same if nothing was replaced.
    pub tokens_after: u64,
    /// Reason why nothing was replaced, if nothing was.
    pub failure: Option<String>,
}

impl Compaction {
    /// Creates the report of a compaction that has not replaced anything yet.
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

    /// Sets the remaining number of messages and tokens.
    #[must_use]
    pub fn shrunk_to(mut self, messages: usize, tokens: u64) -> Self {
        (self.messages_after, self.tokens_after) = (messages, tokens);
        self
    }

    /// Marks the compaction as failed for this reason.
    #[must_use]
    pub fn failed(mut self, why: impl Into<String>) -> Self {
        self.failure = Some(why.into());
        self
    }
}
