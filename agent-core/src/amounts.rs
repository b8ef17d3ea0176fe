//! Amounts that budgets count, and caps on them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Amounts of everything that budgets count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Amounts {
    /// Tokens, input and output.
    pub tokens: u64,
    /// Cost, in millionths of a US dollar.
    pub cost: u64,
    /// Model calls.
    pub model_calls: u64,
    /// Tool calls.
    pub tool_calls: u64,
}

/// Upper limits; an unset field is unlimited.
///
/// ```
/// use agent_core::Caps;
///
/// let caps = Caps::default().cost(5_000_000).tool_calls(100);
/// assert_eq!(caps.cost, Some(5_000_000), "five dollars");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Caps {
    /// Tokens, input and output.
    pub tokens: Option<u64>,
    /// Cost, in millionths of a US dollar.
    pub cost: Option<u64>,
    /// Model calls, counting each attempt.
    pub model_calls: Option<u64>,
    /// Tool calls, counting each attempt.
    pub tool_calls: Option<u64>,
    /// Active time of each run, excluding time spent waiting for answers. In configuration files,
    /// in seconds.
    #[serde(with = "crate::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::seconds::Seconds>"))]
    pub wall_time: Option<Duration>,
    /// Levels of descendants; 0 allows no sub-agents.
    pub depth: Option<u32>,
    /// Total number of sub-agents that each run may start.
    pub fan_out: Option<u32>,
}

impl Amounts {
    /// Zero of everything.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the cost, in millionths of a US dollar.
    #[must_use]
    pub fn cost(mut self, micros: u64) -> Self {
        self.cost = micros;
        self
    }

    /// Sets the model calls.
    #[must_use]
    pub fn model_calls(mut self, calls: u64) -> Self {
        self.model_calls = calls;
        self
    }

    /// Sets the tool calls.
    #[must_use]
    pub fn tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = calls;
        self
    }

    /// Adds the amounts, saturating at the maximum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Subtracts `other`, saturating at zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// The larger amount of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            tokens: f(self.tokens, other.tokens),
            cost: f(self.cost, other.cost),
            model_calls: f(self.model_calls, other.model_calls),
            tool_calls: f(self.tool_calls, other.tool_calls),
        }
    }
}

impl Caps {
    /// Sets the maximum number of tokens, input and output.
    #[must_use]
    pub fn tokens(mut self, most: u64) -> Self {
        self.tokens = Some(most);
        self
    }

    /// Sets the maximum cost, in millionths of a US dollar.
    #[must_use]
    pub fn cost(mut self, micros: u64) -> Self {
        self.cost = Some(micros);
        self
    }

    /// Sets the maximum number of model calls.
    #[must_use]
    pub fn model_calls(mut self, most: u64) -> Self {
        self.model_calls = Some(most);
        self
    }

    /// Sets the maximum number of tool calls.
    #[must_use]
    pub fn tool_calls(mut self, most: u64) -> Self {
        self.tool_calls = Some(most);
        self
    }

    /// Sets the maximum active time of each run.
    #[must_use]
    pub fn wall_time(mut self, most: Duration) -> Self {
        self.wall_time = Some(most);
        self
    }

    /// Sets the maximum number of levels of descendants.
    #[must_use]
    pub fn depth(mut self, most: u32) -> Self {
        self.depth = Some(most);
        self
    }

    /// Sets the total number of sub-agents that each run may start.
    #[must_use]
    pub fn fan_out(mut self, most: u32) -> Self {
        self.fan_out = Some(most);
        self
    }

    /// True if no reservable amount has a cap.
    pub(super) fn count_nothing(&self) -> bool {
        [self.tokens, self.cost, self.model_calls, self.tool_calls].iter().all(Option::is_none)
    }

    /// True if time, depth or fan-out have a cap: these apply to each run and not to windows.
    pub(super) fn shape_runs(&self) -> bool {
        self.wall_time.is_some() || self.depth.is_some() || self.fan_out.is_some()
    }

    /// Returns the first amount of `wanted` that exceeds its cap together with `used`: its name,
    /// the sum, and the cap. Amounts of zero in `wanted` are ignored: an exhausted amount does not
    /// block the others.
    pub fn refusal(&self, used: Amounts, wanted: Amounts) -> Option<(&'static str, u64, u64)> {
        let all = [
            ("tokens", used.tokens, wanted.tokens, self.tokens),
            ("cost", used.cost, wanted.cost, self.cost),
            ("model calls", used.model_calls, wanted.model_calls, self.model_calls),
            ("tool calls", used.tool_calls, wanted.tool_calls, self.tool_calls),
        ];
        all.into_iter().filter(|(_, _, wanted, _)| *wanted > 0).find_map(|(name, used, wanted, cap)| {
            let sum = used.saturating_add(wanted);
            cap.filter(|cap| sum > *cap).map(|cap| (name, sum, cap))
        })
    }
}
