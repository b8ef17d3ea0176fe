//! What model calls used.

use std::ops::{AddAssign, SubAssign};

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
    /// The part of `cache_write` that the provider keeps for long ([`Cache::Long`](crate::message::Cache)), which costs more.
    pub cache_write_long: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// Money, in millionths of a US dollar, of the calls whose price is known.
    pub cost: u64,
    /// Calls whose price is known: if they are fewer than `calls`, `cost` is not the whole.
    pub priced: u64,
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

    /// The same usage of one call that cost so much, in millionths of a US dollar. If that is not known, or was known
    /// already, it stays as it is.
    ///
    /// Totals are not priced but added up of priced calls, since a price may depend on the size of each prompt.
    ///
    /// ```
    /// use agent_core::{Usage, model::PriceTable};
    ///
    /// struct OneDollarPerMillion;
    ///
    /// impl PriceTable for OneDollarPerMillion {
    ///     fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
    ///         (model == "mine").then_some(usage.total())
    ///     }
    /// }
    ///
    /// let call = Usage::new(100, 20);
    /// let mut run = call.with_cost(OneDollarPerMillion.cost("mine", &call));
    /// assert_eq!(run.whole_cost(), Some(120));
    /// run += call.with_cost(OneDollarPerMillion.cost("another", &call));
    /// assert_eq!((run.cost, run.whole_cost()), (120, None));
    /// ```
    #[must_use]
    pub fn with_cost(mut self, cost: Option<u64>) -> Self {
        if self.calls > 0
            && self.priced == 0
            && let Some(cost) = cost
        {
            (self.cost, self.priced) = (cost, self.calls);
        }
        self
    }

    /// What all calls cost, in millionths of a US dollar; `None` if the price of one of them is not known.
    pub fn whole_cost(&self) -> Option<u64> {
        (self.priced == self.calls).then_some(self.cost)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.cached += other.cached;
        self.cache_write += other.cache_write;
        self.cache_write_long += other.cache_write_long;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.cost += other.cost;
        self.priced += other.priced;
    }
}

/// What model calls cost.
pub trait PriceTable: Send + Sync + 'static {
    /// The cost of `usage`, of one call of `model`, in millionths of a US dollar; `None` if the model has no price here.
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64>;
}

/// Takes out of a sum what was added to it; never below nothing.
impl SubAssign for Usage {
    fn sub_assign(&mut self, other: Self) {
        let less = |from: &mut u64, what: u64| *from = from.saturating_sub(what);
        less(&mut self.calls, other.calls);
        less(&mut self.input, other.input);
        less(&mut self.cached, other.cached);
        less(&mut self.cache_write, other.cache_write);
        less(&mut self.cache_write_long, other.cache_write_long);
        less(&mut self.output, other.output);
        less(&mut self.reasoning, other.reasoning);
        less(&mut self.cost, other.cost);
        less(&mut self.priced, other.priced);
    }
}
