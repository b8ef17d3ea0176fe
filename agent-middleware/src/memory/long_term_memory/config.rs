//! Configuration of [`LongTermMemory`](super::LongTermMemory).

use serde::{Deserialize, Serialize};

/// Configuration of `LongTermMemory`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LongTermMemoryConfig {
    /// Owner of the memories, for runs without [a user](agent_core::RunRequest::on_behalf_of).
    /// Default: unset, and such a run fails.
    pub user: Option<String>,
    /// Scope of the user's memories that a run sees. Default: [`MemoryScope::User`].
    pub scope: MemoryScope,
    /// Maximum number of memories that a run receives. Default: 5.
    pub top_k: usize,
    /// Memories to store of a finished run. Default: [`KeepOfRun::Exchange`].
    pub keep: KeepOfRun,
    /// Offers the model a tool, `remember`, to store memories itself. Default: false.
    pub tool: bool,
}

impl Default for LongTermMemoryConfig {
    fn default() -> Self {
        Self { user: None, scope: MemoryScope::default(), top_k: 5, keep: KeepOfRun::default(), tool: false }
    }
}

/// Scope of a user's memories that a run sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryScope {
    /// All memories.
    #[default]
    User,
    /// Memories of the same session.
    Session,
    /// Memories of the same agent, by its name.
    Agent,
}

/// Memories to store of a finished run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeepOfRun {
    /// The user message and the answer, as one memory.
    #[default]
    Exchange,
    /// Nothing: memories come from elsewhere, or from the tool.
    Nothing,
}
