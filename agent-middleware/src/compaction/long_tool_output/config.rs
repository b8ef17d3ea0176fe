//! What is too long, and what is shown of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What is too long, and what is shown of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LongToolOutputConfig {
    /// Characters that an output may have. Default: 10,000.
    pub max_chars: usize,
    /// Tokens that it may have, beside that. Default: no limit of their own.
    pub max_tokens: Option<u64>,
    /// Characters that are shown of the beginning of a longer one, to the end of a line where one is near. Default: 5,000.
    pub head_chars: usize,
    /// Characters that are shown of its end. Default: 5,000.
    pub tail_chars: usize,
    /// Tools whose outputs are never cut.
    pub bypass: BTreeSet<String>,
}

impl Default for LongToolOutputConfig {
    fn default() -> Self {
        Self { max_chars: 10_000, max_tokens: None, head_chars: 5_000, tail_chars: 5_000, bypass: BTreeSet::new() }
    }
}
