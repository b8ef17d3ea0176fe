//! What model calls used.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens, counted so that nothing is in two fields: `input` excludes what the cache served or took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Model calls that reported usage.
    pub calls: u64,
    /// Input tokens that were neither read from nor written to the provider's cache.
    pub input: u64,
    /// Input tokens that the provider's cache served.
    pub cached: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Usage of one call: uncached input and output tokens.
    pub fn new(input: u64, output: u64) -> Self {
        Self { calls: 1, input, output, ..Self::default() }
    }

    /// All tokens: input, cached, cache writes and output.
    pub fn total(&self) -> u64 {
        self.input + self.cached + self.cache_write + self.output
    }

    /// All input tokens, cached or not: the size of the prompt.
    pub fn prompt(&self) -> u64 {
        self.input + self.cached + self.cache_write
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.cached += other.cached;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}
