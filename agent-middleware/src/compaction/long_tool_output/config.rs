//! Configuration of [`LongToolOutput`](super::LongToolOutput).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Configuration of `LongToolOutput`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LongToolOutputConfig {
    /// Maximum number of characters of an output. Default: 10,000.
    pub max_chars: usize,
    /// Maximum number of tokens of an output, in addition to `max_chars`. Default: no limit.
    pub max_tokens: Option<u64>,
    /// Number of characters shown of the beginning of a longer output, up to a nearby end of a
    /// line. Default: 5,000.
    pub head_chars: usize,
    /// Number of characters shown of its end. Default: 5,000.
    pub tail_chars: usize,
    /// Tools whose outputs are never truncated.
    pub bypass: BTreeSet<String>,
}

impl Default for LongToolOutputConfig {
    fn default() -> Self {
        Self { max_chars: 10_000, max_tokens: None, head_chars: 5_000, tail_chars: 5_000, bypass: BTreeSet::new() }
    }
}
