//! [`RateLimiter`]: client-side rate limiter.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::Usage;
use tokio::time::Instant;

use super::{RateLimitLayer, RateLimiterBuilder, estimate::Estimate, gate::Gate, shared::Shared as SharedLimit};
use crate::tokens::CalibratedCounter;

/// Name of the [`Custom`](agent_core::EventKind::Custom) event that reports a model call waiting
/// for a [`RateLimiter`]: once after it has waited for some time, and at each refusal by the
/// provider.
///
/// Its value has `limiter` (the name), `waited` (seconds so far), `ahead` (number of requests
/// ahead), `opens_in` (seconds until the request is known to go or the provider may be asked
/// again, or null) and `refused` (the provider's refusal, or null).
pub const RATE_LIMIT_EVENT: &str = "rate_limit";

/// Keeps all calls of one account within its provider's rate limits, across any number of agents:
/// calls of models, and those of [embedders](crate::embed::LayeredEmbedder).
///
/// Clones and [layers](Self::layer) share a limiter: with one layer on each agent of a tree, the
/// whole tree has one queue and one allowance. Use one limiter per unit that the provider limits
/// separately: an account, or an account and a model.
///
/// # Behaviour
///
/// * Admits at most the configured number of requests, and tokens, in any minute. Tokens are
///   reserved by an estimate and settled with the usage that the provider reports.
/// * **Refusals.** If the provider refuses a request for its rate
///   ([`RateLimited`](agent_core::ErrorKind::RateLimited)), the request returns to its position in
///   the queue, and nothing is admitted until the provider's delay is over; without a delay, for
///   1 s, doubling each time up to 30 s. The rate falls to what the provider accepted in the last
///   minute (by half at most), requests are spread evenly, and while requests wait the rate grows
///   again by a tenth per minute. A limiter without a configured limit learns it this way.
/// * **Order.** Requests are admitted in order of arrival. A lower priority number counts as an
///   arrival earlier by the [aging](RateLimiterBuilder::aging) time: it goes first, and no request
///   starves. Small requests do not overtake a large one.
/// * **Processes** that [share a ledger](RateLimiterBuilder::shared) share the limits.
/// * **Cancellation.** Dropping a call leaves the queue. A request that was sent counts even if its
///   answer was not awaited.
/// * A call that waits long emits a [`RATE_LIMIT_EVENT`].
///
/// # Differences from `tower::limit::RateLimit`
///
/// That layer has one rate per service, so that each agent has its own allowance, admits up to
/// twice its rate around the end of a period, does not count tokens, and does not learn from
/// refusals.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::ModelService;
/// use agent_llm::RateLimiter;
/// use tower::Layer;
///
/// let limiter = RateLimiter::builder("openai/team-a")
///     .requests_per_minute(500)
///     .tokens_per_minute(200_000)
///     .max_wait(Duration::from_secs(120))
///     .build()?;
/// let (helpers, boss) = (limiter.layer(), limiter.layer().priority(-1));
/// let stack = |model: ModelService| ModelService::new(helpers.layer(model));
/// # drop((stack, boss));
/// # Ok::<(), agent_core::Error>(())
/// ```
#[derive(Clone)]
pub struct RateLimiter(Arc<Shared>);

struct Shared {
    name: String,
    rules: Rules,
    began: Instant,
    gate: Mutex<Gate>,
}

pub(super) type Counted = dyn Fn(&Usage) -> u64 + Send + Sync;

/// Immutable settings.
pub(super) struct Rules {
    pub(super) estimate: Option<Estimate>,
    /// Counter of the estimate, if it learns from answers.
    pub(super) learns: Option<CalibratedCounter>,
    pub(super) counted: Arc<Counted>,
    pub(super) aging: Duration,
    pub(super) max_queue: usize,
    pub(super) max_wait: Option<Duration>,
    pub(super) report_after: Duration,
    /// Limit shared with other processes.
    pub(super) shared: Option<Arc<SharedLimit>>,
}

impl RateLimiter {
    /// Returns a builder. `name` appears in errors and events, for example the provider and the
    /// account.
    pub fn builder(name: impl Into<String>) -> RateLimiterBuilder {
        RateLimiterBuilder::new(name.into())
    }

    pub(super) fn new(name: String, rules: Rules, gate: Gate) -> Self {
        Self(Arc::new(Shared { name, rules, began: Instant::now(), gate: Mutex::new(gate) }))
    }

    /// Returns a layer that sends the model calls of one agent through this limiter.
    pub fn layer(&self) -> RateLimitLayer {
        RateLimitLayer::new(self.clone())
    }

    /// Returns the limiter's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the current status.
    pub fn status(&self) -> RateLimitStatus {
        let now = Instant::now();
        let mut gate = self.gate();
        let (requests_per_minute, tokens_per_minute) = gate.rates();
        let (requests, tokens) = gate.in_window(now);
        RateLimitStatus {
            requests_per_minute,
            tokens_per_minute,
            requests,
            tokens,
            waiting: gate.waiting(),
            closed_for: gate.closed_until(now).map(|until| until - now),
            refused: gate.refusals(),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.0.rules
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.0.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the queue key of a request that arrived at `now`: its equivalent arrival time at
    /// priority 0.
    pub(super) fn key(&self, priority: i8, now: Instant) -> i64 {
        let nanos = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
        let came = nanos(now.saturating_duration_since(self.0.began));
        came.saturating_add(nanos(self.0.rules.aging).saturating_mul(priority.into()))
    }
}

/// Status of a [`RateLimiter`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateLimitStatus {
    /// Current allowance of requests per minute; `None` if no limit is known.
    pub requests_per_minute: Option<f64>,
    /// Current allowance of tokens per minute; `None` if tokens are not limited.
    pub tokens_per_minute: Option<f64>,
    /// Requests of the last minute that the provider did not refuse.
    pub requests: u64,
    /// Tokens that these requests used, or reserved.
    pub tokens: u64,
    /// Number of requests in the queue.
    pub waiting: usize,
    /// Remaining time during which nothing is admitted, after a refusal.
    pub closed_for: Option<Duration>,
    /// Number of refusals so far.
    pub refused: u64,
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").field("name", &self.0.name).field("status", &self.status()).finish()
    }
}
