//! [`CacheAware`]: weighs the cost of a compaction against its savings.

use std::sync::Arc;

use agent_core::{EventKind, Result, Usage, event::CompactionMode, model::PriceTable};
use async_trait::async_trait;

use super::{ClearToolResults, DedupReads, SlidingWindow, Strategy, Tiers};
use crate::{
    compaction::{Keep, Task, Unit},
    side_call::ends_the_run,
};

/// Prices of prompt tokens, in any unit: only their ratio matters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachePrices {
    /// Price of a token that the provider's cache serves.
    pub read: f64,
    /// Price of a token that the cache does not serve, and stores.
    pub write: f64,
}

impl Default for CachePrices {
    /// A cached token costs a tenth, and one that is written to the cache a quarter more than plain
    /// input.
    fn default() -> Self {
        Self { read: 0.1, write: 1.25 }
    }
}

impl CachePrices {
    /// Creates prices with this ratio.
    pub fn new(read: f64, write: f64) -> Self {
        Self { read, write }
    }

    /// Returns the prices of a model; `None` if the table does not know it. Tokens without their
    /// own price cost as much as input.
    pub fn of(table: &(impl PriceTable + ?Sized), model: &str) -> Option<Self> {
        /// Enough tokens that rounding does not matter, and few enough to avoid long-prompt prices.
        const TOKENS: u64 = 100_000;
        let cost = |usage: Usage| table.cost(model, &usage).map(|cost| cost as f64 / TOKENS as f64);
        let input = cost(Usage::new(TOKENS, 0))?;
        let (mut cached, mut written) = (Usage::new(0, 0), Usage::new(0, 0));
        (cached.cached, written.cache_write) = (TOKENS, TOKENS);
        let (read, write) = (cost(cached).unwrap_or(input), cost(written).unwrap_or(input));
        Some(Self { read, write })
    }
}

/// Applies the strategy that is cheapest in the long run, or none as long as none pays.
///
/// Every step sends the whole conversation again, at the price of cached tokens. A compaction makes
/// it shorter, but everything after the first change is written to the cache again. Each candidate
/// is tried, and the cost of the expected further steps is added up: rewriting now, reading the
/// remainder, and the next compactions, since the conversation keeps growing at its rate so far. A
/// candidate that preserves more is preferred to a cheaper one within a
/// [tolerance](Self::tolerance): list the gentle ones first.
///
/// Doing nothing is a candidate too, if it is at least a fifth cheaper, until the conversation
/// would no longer fit. Candidates are run in order to be measured, so do not add one that calls a
/// model: put `CacheAware` before it in [`Tiers`].
///
/// The default chooses between clearing old tool results and a sliding window.
#[derive(Clone, Debug)]
pub struct CacheAware {
    candidates: Vec<Arc<dyn Strategy>>,
    prices: CachePrices,
    steps: Option<u32>,
    tolerance: f64,
}

impl Default for CacheAware {
    fn default() -> Self {
        Self::new()
            .candidate(Tiers::new().then(DedupReads::new()).then(ClearToolResults::new()))
            .candidate(SlidingWindow::keeping(Keep::default()))
    }
}

impl CacheAware {
    /// Creates a strategy without candidates.
    pub fn new() -> Self {
        Self { candidates: Vec::new(), prices: CachePrices::default(), steps: None, tolerance: 0.1 }
    }

    /// Adds a candidate. Add those that preserve more first.
    #[must_use]
    pub fn candidate(mut self, strategy: impl Strategy) -> Self {
        self.candidates.push(Arc::new(strategy));
        self
    }

    /// Sets the prices. Default: [`CachePrices::default`].
    #[must_use]
    pub fn prices(mut self, prices: CachePrices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the expected number of further steps. Default: the number of steps so far, but at least
    /// four.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Sets by which fraction a candidate that preserves more may be more expensive. Default: 0.1.
    #[must_use]
    pub fn tolerance(mut self, part: f64) -> Self {
        self.tolerance = part;
        self
    }

    /// Returns the forecast with which candidates are weighed.
    fn outlook(&self, task: &Task<'_>, units: &[Unit]) -> Outlook {
        /// Minimum forecast: the end of a run cannot be predicted.
        const FEWEST: u32 = 4;
        Outlook {
            prices: self.prices,
            steps: self.steps.unwrap_or_else(|| task.cx().step().max(FEWEST)),
            growth: usual_growth(task, units) as f64,
            most: task.most().map_or(f64::INFINITY, |most| most as f64),
        }
    }
}

/// Returns the typical growth per step: the median, since one long document says little about the
/// steps to come, and after a compaction the few remaining steps are often the long ones.
fn usual_growth(task: &Task<'_>, units: &[Unit]) -> u64 {
    let mut steps = vec![0];
    for unit in units {
        if unit.is_assistant() {
            steps.push(0);
        }
        steps.last_mut().into_iter().for_each(|step| *step += task.tokens(unit));
    }
    let middle = (steps.len() - 1) / 2;
    *steps.select_nth_unstable(middle).1
}

/// Maximum cost of waiting as a fraction of the cost of compacting now. The number of further steps
/// is a guess, and a compaction that comes too early costs little compared to one that comes too
/// late.
const WORTH_WAITING: f64 = 0.8;

/// Forecast of the steps to come.
struct Outlook {
    prices: CachePrices,
    steps: u32,
    growth: f64,
    most: f64,
}

/// Size of a conversation after a candidate, in tokens: in total, and of its unchanged prefix.
#[derive(Clone, Copy)]
struct Remainder {
    of: f64,
    all: f64,
    same: f64,
}

impl Remainder {
    /// Scales the remainder to a conversation of another size, in proportion: content that was
    /// cleared once cannot be cleared again.
    fn of(self, size: f64) -> Self {
        let scale = size / self.of;
        Self { of: size, all: self.all * scale, same: self.same * scale }
    }
}

impl Outlook {
    fn rewrite(&self, left: Remainder) -> f64 {
        left.same * self.prices.read + (left.all - left.same) * self.prices.write
    }

    /// Returns the cost of the steps after this compaction, which is repeated whenever the
    /// conversation reaches its current length again.
    fn cost(&self, left: Remainder) -> f64 {
        self.from(left.all, left, self.rewrite(left), left.of.min(self.most))
    }

    /// Returns the cost if this compaction is always delayed until the limit is reached.
    fn waiting(&self, left: Remainder) -> f64 {
        self.from(left.of, left, left.of * self.prices.read, self.most)
    }

    fn from(&self, start: f64, again: Remainder, first: f64, most: f64) -> f64 {
        let (mut size, mut cost) = (start, first);
        for _ in 1..self.steps {
            size += self.growth;
            if size >= most {
                let left = again.of(size);
                size = left.all;
                cost += self.rewrite(left);
            } else {
                cost += (size - self.growth) * self.prices.read + self.growth * self.prices.write;
            }
        }
        cost
    }
}

#[async_trait]
impl Strategy for CacheAware {
    fn name(&self) -> &str {
        "cache_aware"
    }

    fn needs_archive(&self) -> bool {
        self.candidates.iter().any(Strategy::needs_archive)
    }

    async fn compact(&self, task: &Task<'_>, units: Vec<Unit>) -> Result<Vec<Unit>> {
        let total = task.total(&units);
        let outlook = self.outlook(task, &units);
        let mut fitting: Vec<(Vec<Unit>, Remainder, f64)> = Vec::new();
        for candidate in &self.candidates {
            let smaller = match candidate.compact(task, units.clone()).await {
                Ok(smaller) => smaller,
                Err(e) if ends_the_run(e.kind()) => return Err(e),
                Err(e) => {
                    let message = format!("compaction: '{}' failed: {e}", candidate.name());
                    task.cx().emit(EventKind::Warning { message });
                    continue;
                }
            };
            let all = task.total(&smaller);
            if all < total {
                let same =
                    units.iter().zip(&smaller).take_while(|(old, new)| old == new).map(|(old, _)| task.tokens(old));
                let left = Remainder { of: total as f64, all: all as f64, same: same.sum::<u64>() as f64 };
                fitting.push((smaller, left, outlook.cost(left)));
            }
        }
        let cheapest = fitting.iter().min_by(|(.., a), (.., b)| a.total_cmp(b));
        let Some(&(_, left, least)) = cheapest else { return Ok(units) };
        let can_wait = task.mode() == CompactionMode::Regular && (total as f64) < outlook.most && task.most().is_some();
        if can_wait && outlook.waiting(left) <= least * WORTH_WAITING {
            return Ok(units);
        }
        let chosen = fitting.into_iter().find(|(.., cost)| *cost <= least * (1.0 + self.tolerance));
        Ok(chosen.map_or(units, |(smaller, ..)| smaller))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(steps: u32) -> Outlook {
        Outlook { prices: CachePrices::default(), steps, growth: 100.0, most: 10_000.0 }
    }

    #[test]
    fn a_rewrite_pays_only_if_enough_steps_follow() {
        let left = Remainder { of: 8_000.0, all: 4_000.0, same: 500.0 };
        let pays = |steps| outlook(steps).cost(left) < outlook(steps).waiting(left);
        assert!(!pays(2) && pays(50));
    }

    #[test]
    fn of_two_that_leave_as_much_the_one_that_keeps_the_prefix_is_cheaper() {
        let cost = |same| outlook(5).cost(Remainder { of: 8_000.0, all: 4_000.0, same });
        assert!(cost(3_500.0) < cost(0.0));
    }
}
