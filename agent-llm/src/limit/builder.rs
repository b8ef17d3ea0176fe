//! [`RateLimiterBuilder`].

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Caps, Error, ModelRequest, Result, TokenCounter, Usage, budget::Ledger};

use super::{
    RateLimiter,
    allowance::Allowance,
    estimate::Estimate,
    gate::Gate,
    limiter::{Counted, Rules},
    shared::Shared,
};
use crate::tokens::{ApproximateCounter, CalibratedCounter, IncrementalCounter};

/// Requests per minute that refusals leave at least; what closes the gate does the rest.
const LOWEST: f64 = 6.0;

/// Makes a [`RateLimiter`].
#[must_use]
pub struct RateLimiterBuilder {
    name: String,
    requests: Option<u64>,
    tokens: Option<u64>,
    evenly: bool,
    estimate: Option<Estimate>,
    counted: Arc<Counted>,
    aging: Duration,
    max_queue: usize,
    max_wait: Option<Duration>,
    report_after: Duration,
    ledger: Option<Arc<dyn Ledger>>,
}

impl RateLimiterBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            requests: None,
            tokens: None,
            evenly: false,
            estimate: None,
            counted: Arc::new(Usage::total),
            aging: Duration::from_secs(30),
            max_queue: 10_000,
            max_wait: Some(Duration::from_secs(600)),
            report_after: Duration::from_secs(5),
            ledger: None,
        }
    }

    /// Sets the most requests in any minute. Default: unlimited until the provider refuses one.
    pub fn requests_per_minute(mut self, most: u64) -> Self {
        self.requests = Some(most);
        self
    }

    /// Sets the most tokens in any minute. A request that is larger than that has a minute for itself. Default: tokens are
    /// not counted.
    pub fn tokens_per_minute(mut self, most: u64) -> Self {
        self.tokens = Some(most);
        self
    }

    /// Spreads requests evenly over the minute from the start, for providers that refuse many at once although the minute
    /// allows them. Default: only after a refusal.
    pub fn evenly(mut self) -> Self {
        self.evenly = true;
        self
    }

    /// Sets the counter that the tokens of a request are estimated with: those of the whole prompt, and the most that the
    /// answer may have if the request limits it. Default: an [`ApproximateCounter`], put right by what answers report
    /// ([`CalibratedCounter`]).
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.estimate = Some(Estimate::Counted(Arc::new(counter)));
        self
    }

    /// Sets how the tokens of a model's request are estimated; those of an embedder's are counted roughly then.
    pub fn estimate(mut self, tokens: impl Fn(&ModelRequest) -> u64 + Send + Sync + 'static) -> Self {
        self.estimate = Some(Estimate::Told(Arc::new(tokens)));
        self
    }

    /// Sets which tokens of a call the provider's limit counts, for providers that leave out those that their cache served.
    /// Default: [`Usage::total`].
    pub fn counted(mut self, tokens: impl Fn(&Usage) -> u64 + Send + Sync + 'static) -> Self {
        self.counted = Arc::new(tokens);
        self
    }

    /// Sets the time that one step of priority is worth: a request overtakes those that are one step less urgent and came
    /// less than this before it. Default: 30 s.
    pub fn aging(mut self, per_step: Duration) -> Self {
        self.aging = per_step;
        self
    }

    /// Sets the most requests that wait at once; further ones fail as
    /// [`Overloaded`](agent_core::ErrorKind::Overloaded). Default: 10,000.
    pub fn max_queue(mut self, most: usize) -> Self {
        self.max_queue = most;
        self
    }

    /// Sets the longest that a request waits, all refusals together. One that would wait longer fails as
    /// [`RateLimited`](agent_core::ErrorKind::RateLimited), at once if that is known. Default: 10 minutes.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self
    }

    /// Lets requests wait for as long as it takes.
    pub fn wait_forever(mut self) -> Self {
        self.max_wait = None;
        self
    }

    /// Sets how long a request waits before that is reported. Default: 5 s.
    pub fn report_after(mut self, wait: Duration) -> Self {
        self.report_after = wait;
        self
    }

    /// Keeps all processes within the limits together whose limiters have this name, these limits and accounts in the same place, such as a `PostgresLedger`. Each
    /// minute of the clock is counted for itself, so that the end of one and the beginning of the next may together hold up to twice the
    /// limit. Requests of one process go in their order, and each process has one that asks for room, so that one with many does not crowd out one with few. What
    /// refusals teach is learnt by each process for itself. Default: each process has the whole limit.
    pub fn shared(mut self, ledger: impl Ledger) -> Self {
        self.ledger = Some(Arc::new(ledger));
        self
    }

    /// Makes the limiter.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a limit of nothing, or if processes are to share a limit that nobody set.
    pub fn build(self) -> Result<RateLimiter> {
        let limits = [("requests_per_minute", self.requests), ("tokens_per_minute", self.tokens)];
        if let Some((what, _)) = limits.iter().find(|(_, most)| *most == Some(0)) {
            return Err(Error::config(format!("{what} is 0: no request could ever be sent")));
        }
        if self.ledger.is_some() && self.requests.is_none() && self.tokens.is_none() {
            return Err(Error::config(
                "processes can only share a limit that is known: set requests_per_minute or tokens_per_minute",
            ));
        }
        let caps = self.requests.into_iter().fold(Caps::default(), Caps::model_calls);
        let caps = self.tokens.into_iter().fold(caps, Caps::tokens);
        let shared = self.ledger.map(|ledger| Arc::new(Shared::new(ledger, &self.name, caps)));
        let usual = || CalibratedCounter::new(IncrementalCounter::new(ApproximateCounter));
        let learns = (self.tokens.is_some() && self.estimate.is_none()).then(usual);
        let estimate = match learns.clone() {
            Some(counter) => Some(Estimate::Counted(Arc::new(counter))),
            None => self.estimate.filter(|_| self.tokens.is_some()),
        };
        let requests = Allowance::new(self.requests, LOWEST);
        let tokens = self.tokens.map(|most| Allowance::new(Some(most), most as f64 / 10.0));
        let rules = Rules {
            estimate,
            learns,
            counted: self.counted,
            aging: self.aging,
            max_queue: self.max_queue,
            max_wait: self.max_wait,
            report_after: self.report_after,
            shared,
        };
        Ok(RateLimiter::new(self.name, rules, Gate::new(requests, tokens, self.evenly)))
    }
}

impl fmt::Debug for RateLimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiterBuilder")
            .field("name", &self.name)
            .field("requests_per_minute", &self.requests)
            .field("tokens_per_minute", &self.tokens)
            .field("max_queue", &self.max_queue)
            .field("max_wait", &self.max_wait)
            .finish_non_exhaustive()
    }
}
