//! Usage and cost of model calls.

use std::ops::{AddAssign, SubAssign};

use serde::{Deserialize, Serialize};

/// Token counts, in disjoint fields: `input` excludes tokens read from or written to the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Number of model calls.
    pub calls: u64,
    /// Input tokens that were neither read from nor written to the provider's cache.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cached: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_write: u64,
    /// The part of `cache_write` with a long lifetime ([`Cache::Long`](crate::message::Cache)),
    /// which costs more.
    pub cache_write_long: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// Cost of the calls with a known price, in millionths of a US dollar.
    pub cost: u64,
    /// Number of calls with a known price: if it is less than `calls`, `cost` is incomplete.
    pub priced: u64,
}

impl Usage {
    /// Creates the usage of one call from uncached input and output tokens.
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

    /// Sets the cost of one call, in millionths of a US dollar. If `cost` is `None`, or a cost is
    /// already set, the usage is unchanged.
    ///
    /// Totals are sums of priced calls and never priced themselves, since a price may depend on the
    /// size of each prompt.
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

    /// The cost of all calls, in millionths of a US dollar; `None` if the price of one of them is
    /// unknown.
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

/// Prices of models.
pub trait PriceTable: Send + Sync + 'static {
    /// Returns the cost of `usage`, of one call of `model`, in millionths of a US dollar; `None` if
    /// the price is unknown.
    fn cost(&self, model: &str, usage: &Usage) -> Option<u64>;
}

/// Subtracts usage that was added before, saturating at zero.
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
