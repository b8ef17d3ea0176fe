//! [`CacheAware`]: what a compaction costs, weighed against what it saves.

use std::sync::Arc;

use agent_core::{EventKind, Result, Usage, event::CompactionMode, model::PriceTable};
use async_trait::async_trait;

use super::{ClearToolResults, DedupReads, SlidingWindow, Strategy, Tiers};
use crate::{
    compaction::{Keep, Task, Unit},
    side_call::ends_the_run,
};

/// What prompt tokens cost, in any unit: only their proportions count.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CachePrices {
    /// A token that the provider's cache serves.
    pub read: f64,
    /// A token that it does not serve, and stores.
    pub write: f64,
}

impl Default for CachePrices {
    /// A cached token costs a tenth, one that is written to the cache a quarter more than plain input.
    fn default() -> Self {
        Self { read: 0.1, write: 1.25 }
    }
}

impl CachePrices {
    /// Prices of these proportions.
    pub fn new(read: f64, write: f64) -> Self {
        Self { read, write }
    }

    /// The prices of a model; none if the table does not know it. What has no price of its own costs what input costs.
    pub fn of(table: &(impl PriceTable + ?Sized), model: &str) -> Option<Self> {
        /// So many tokens that rounding does not show, and so few that no prompt counts as long.
        const TOKENS: u64 = 100_000;
        let cost = |usage: Usage| table.cost(model, &usage).map(|cost| cost as f64 / TOKENS as f64);
        let input = cost(Usage::new(TOKENS, 0))?;
        let (mut cached, mut written) = (Usage::new(0, 0), Usage::new(0, 0));
        (cached.cached, written.cache_write) = (TOKENS, TOKENS);
        let (read, write) = (cost(cached).unwrap_or(input), cost(written).unwrap_or(input));
        Some(Self { read, write })
    }
}

/// Of several strategies, uses the one that is cheapest in the long run, and none as long as none pays.
///
/// Every step sends the whole conversation again, at the price of cached tokens. A compaction makes it shorter, but
/// everything behind the first change is written to the cache anew. Each candidate is tried, and what the expected further
/// steps would cost is added up: rewriting now, reading what is left, and the next compactions, since the conversation grows
/// on as it grew so far. A candidate that preserves more is preferred to a cheaper one up to a
/// [tolerance](Self::tolerance): list the gentle ones first.
///
/// Doing nothing is a candidate too, where it is a fifth cheaper, until the conversation is so long that it would not fit. Candidates are run to be
/// measured, so one that calls a model has no place here: put this one into [`Tiers`] before it.
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
    /// No candidates yet.
    pub fn new() -> Self {
        Self { candidates: Vec::new(), prices: CachePrices::default(), steps: None, tolerance: 0.1 }
    }

    /// Adds a candidate. One that preserves more comes first.
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

    /// Sets how many further steps are expected. Default: as many as the run has made, and four at least.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Sets by which part a candidate that preserves more may be dearer. Default: 0.1.
    #[must_use]
    pub fn tolerance(mut self, part: f64) -> Self {
        self.tolerance = part;
        self
    }

    /// What is known when candidates are weighed.
    fn outlook(&self, task: &Task<'_>, units: &[Unit]) -> Outlook {
        /// Fewer are never expected: nobody knows that a run is about to end.
        const FEWEST: u32 = 4;
        Outlook {
            prices: self.prices,
            steps: self.steps.unwrap_or_else(|| task.cx().step().max(FEWEST)),
            growth: usual_growth(task, units) as f64,
            most: task.most().map_or(f64::INFINITY, |most| most as f64),
        }
    }
}

/// What a step usually adds: the median, since one long document says little of the steps to come, and after a compaction
/// the few that are left are often the long ones.
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

/// The part of what a compaction now would cost that waiting may cost. How many steps follow is a guess, and a compaction that
/// comes too early costs little beside one that comes too late.
const WORTH_WAITING: f64 = 0.8;

/// The steps to come, as far as one can tell.
struct Outlook {
    prices: CachePrices,
    steps: u32,
    growth: f64,
    most: f64,
}

/// What a candidate leaves of a conversation, in tokens: all of it, and how much of the beginning is as it was.
#[derive(Clone, Copy)]
struct Remainder {
    of: f64,
    all: f64,
    same: f64,
}

impl Remainder {
    /// What it would leave of one of another size. As large a part: what was cleared once cannot be cleared again.
    fn of(self, size: f64) -> Self {
        let scale = size / self.of;
        Self { of: size, all: self.all * scale, same: self.same * scale }
    }
}

impl Outlook {
    fn rewrite(&self, left: Remainder) -> f64 {
        left.same * self.prices.read + (left.all - left.same) * self.prices.write
    }

    /// What the steps cost after this compaction, with the same one again whenever the conversation is as long as it is now.
    fn cost(&self, left: Remainder) -> f64 {
        self.from(left.all, left, self.rewrite(left), left.of.min(self.most))
    }

    /// What they cost if nothing is done until it must be, now and later, and then is done what leaves this.
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
