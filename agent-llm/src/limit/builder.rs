//! [`RateLimiterBuilder`]: builder of a rate limiter.

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

/// Lower bound of the learned request rate, per minute; the closures after refusals do the rest.
const LOWEST: f64 = 6.0;

/// Builder of a [`RateLimiter`].
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

    /// Sets the maximum number of requests in any minute. Default: unlimited until the provider
    /// refuses one.
    pub fn requests_per_minute(mut self, most: u64) -> Self {
        self.requests = Some(most);
        self
    }

    /// Sets the maximum number of tokens in any minute. A request that is larger than the limit
    /// gets a minute for itself. Default: tokens are not counted.
    pub fn tokens_per_minute(mut self, most: u64) -> Self {
        self.tokens = Some(most);
        self
    }

    /// Spreads requests evenly over the minute from the start, for providers that refuse bursts
    /// although the minute's limit allows them. Default: only after a refusal.
    pub fn evenly(mut self) -> Self {
        self.evenly = true;
        self
    }

    /// Sets the counter that estimates the tokens of a request: those of the whole prompt, plus the
    /// maximum output if the request sets one. Default: an [`ApproximateCounter`], corrected by the
    /// usage that answers report ([`CalibratedCounter`]).
    pub fn counter(mut self, counter: impl TokenCounter) -> Self {
        self.estimate = Some(Estimate::Counted(Arc::new(counter)));
        self
    }

    /// Sets the token estimate of model requests; embedding requests are then estimated roughly.
    pub fn estimate(mut self, tokens: impl Fn(&ModelRequest) -> u64 + Send + Sync + 'static) -> Self {
        self.estimate = Some(Estimate::Told(Arc::new(tokens)));
        self
    }

    /// Sets which tokens of a call count towards the provider's limit, for providers that do not
    /// count cached tokens. Default: [`Usage::total`].
    pub fn counted(mut self, tokens: impl Fn(&Usage) -> u64 + Send + Sync + 'static) -> Self {
        self.counted = Arc::new(tokens);
        self
    }

    /// Sets the time that one step of priority is worth: a request overtakes requests that are one
    /// step less urgent and arrived less than this before it. Default: 30 s.
    pub fn aging(mut self, per_step: Duration) -> Self {
        self.aging = per_step;
        self
    }

    /// Sets the maximum number of waiting requests; further ones fail as
    /// [`Overloaded`](agent_core::ErrorKind::Overloaded). Default: 10,000.
    pub fn max_queue(mut self, most: usize) -> Self {
        self.max_queue = most;
        self
    }

    /// Sets the maximum total waiting time of a request, including waits after refusals. A request
    /// that would wait longer fails as [`RateLimited`](agent_core::ErrorKind::RateLimited), at once
    /// if the wait is known to be too long. Default: 10 minutes.
    pub fn max_wait(mut self, longest: Duration) -> Self {
        self.max_wait = Some(longest);
        self
    }

    /// Removes the limit on the waiting time.
    pub fn wait_forever(mut self) -> Self {
        self.max_wait = None;
        self
    }

    /// Sets the waiting time after which a request is reported. Default: 5 s.
    pub fn report_after(mut self, wait: Duration) -> Self {
        self.report_after = wait;
        self
    }

    /// Shares the limits among all processes whose limiters have the same name and limits, and a
    /// ledger with the same storage, such as a `PostgresLedger`. Minutes are counted by the clock,
    /// so that the end of one and the beginning of the next may together admit up to twice the
    /// limit. Requests of one process keep their order, and each process has at most one request
    /// that asks the ledger at a time, so that a busy process does not starve the others. Each
    /// process learns from refusals separately. Default: each process has the whole limit.
    pub fn shared(mut self, ledger: impl Ledger) -> Self {
        self.ledger = Some(Arc::new(ledger));
        self
    }

    /// Builds the limiter.
    ///
    /// # Errors
    /// [`Config`](agent_core::ErrorKind::Config) for a limit of zero, or if the limits are to be
    /// shared but none is set.
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
