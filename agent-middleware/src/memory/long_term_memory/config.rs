//! Whose memories, and what is kept of a run.

use serde::{Deserialize, Serialize};

/// Whose memories, how many, and what is kept of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LongTermMemoryConfig {
    /// Whose memories they are, for runs that do not say [on whose behalf](agent_core::RunRequest::on_behalf_of) they are.
    /// Default: nobody's, and such a run fails.
    pub user: Option<String>,
    /// Which of the user's memories a run sees. Default: [`MemoryScope::User`].
    pub scope: MemoryScope,
    /// Most memories that a run is told. Default: 5.
    pub top_k: usize,
    /// What is kept of a run that finished. Default: [`KeepOfRun::Exchange`].
    pub keep: KeepOfRun,
    /// Whether the model has a tool, `remember`, with which it keeps what it wants to. Default: false.
    pub tool: bool,
}

impl Default for LongTermMemoryConfig {
    fn default() -> Self {
        Self { user: None, scope: MemoryScope::default(), top_k: 5, keep: KeepOfRun::default(), tool: false }
    }
}

/// Which of a user's memories a run sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MemoryScope {
    /// All of them.
    #[default]
    User,
    /// Those of the same session.
    Session,
    /// Those of the same agent, by its name.
    Agent,
}

/// What is kept of a run that finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeepOfRun {
    /// What the user said and what was answered, as one memory.
    #[default]
    Exchange,
    /// Nothing: memories come from elsewhere, or from the tool.
    Nothing,
}
