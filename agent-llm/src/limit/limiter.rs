//! [`RateLimiter`].

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::Usage;
use tokio::time::Instant;

use super::{RateLimitLayer, RateLimiterBuilder, estimate::Estimate, gate::Gate, shared::Shared as SharedLimit};
use crate::tokens::CalibratedCounter;

/// The name of the [`Custom`](agent_core::EventKind::Custom) event that says that a model call waits for a [`RateLimiter`]:
/// once when it has waited for some time, and whenever the provider refuses it.
///
/// Its value has `limiter` (the name), `waited` (seconds so far), `ahead` (requests that go first), `opens_in` (seconds
/// until it is known to go or the provider may be asked again, or null) and `refused` (the provider's refusal, or null).
pub const RATE_LIMIT_EVENT: &str = "rate_limit";

/// Keeps all calls of one account within its provider's rate limits, however many agents make them: those of models, and those of
/// [embedders](crate::embed::LayeredEmbedder).
///
/// A limiter is shared by clones and by its [layers](Self::layer): give one layer to each agent of a tree, and the whole
/// tree has one queue and one allowance. Use one limiter per key, which is whatever the provider counts apart: an account,
/// or an account and a model.
///
/// # What it does
///
/// * It lets at most so many requests, and tokens, through in any minute. Tokens are reserved by an estimate and settled
///   with the usage that the provider reports.
/// * **When the provider refuses** a request for its rate ([`RateLimited`](agent_core::ErrorKind::RateLimited)), the request
///   goes back to its place in the queue, and nothing goes through until the provider's delay is over; without one, for 1 s
///   and twice as long each time up to 30 s. The rate falls to what the provider took in the last minute (by half at most),
///   requests are spread evenly, and while requests wait the rate grows again by a tenth per minute. So a limiter that is
///   told no limit learns it.
/// * **Order.** Requests go in the order in which they came. A lower priority number counts as having come earlier by the
///   [aging](RateLimiterBuilder::aging) time: it goes first, and none waits forever. A large request is not overtaken by
///   small ones.
/// * **Processes** that [share a ledger](RateLimiterBuilder::shared) keep within the limits together.
/// * **Dropping** a call frees its place. A request that was sent counts even if its answer was not awaited.
/// * A call that waits long says so in a [`RATE_LIMIT_EVENT`].
///
/// # Differences from `tower::limit::RateLimit`
///
/// That layer has a rate per service, so that each agent has an allowance of its own, lets twice its rate through around
/// the end of a period, knows no tokens, and learns nothing from refusals.
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

/// What does not change.
pub(super) struct Rules {
    pub(super) estimate: Option<Estimate>,
    /// The counter of the estimate, if it is to learn from answers.
    pub(super) learns: Option<CalibratedCounter>,
    pub(super) counted: Arc<Counted>,
    pub(super) aging: Duration,
    pub(super) max_queue: usize,
    pub(super) max_wait: Option<Duration>,
    pub(super) report_after: Duration,
    /// What other processes count, too.
    pub(super) shared: Option<Arc<SharedLimit>>,
}

impl RateLimiter {
    /// Begins a limiter. `name` is for errors and events: the provider and the account, say.
    pub fn builder(name: impl Into<String>) -> RateLimiterBuilder {
        RateLimiterBuilder::new(name.into())
    }

    pub(super) fn new(name: String, rules: Rules, gate: Gate) -> Self {
        Self(Arc::new(Shared { name, rules, began: Instant::now(), gate: Mutex::new(gate) }))
    }

    /// A layer that sends the model calls of one agent through this limiter.
    pub fn layer(&self) -> RateLimitLayer {
        RateLimitLayer::new(self.clone())
    }

    /// The limiter's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How it stands now.
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

    /// Where a request that came at `now` stands in the queue: the time at which it would have come at priority 0.
    pub(super) fn key(&self, priority: i8, now: Instant) -> i64 {
        let nanos = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
        let came = nanos(now.saturating_duration_since(self.0.began));
        came.saturating_add(nanos(self.0.rules.aging).saturating_mul(priority.into()))
    }
}

/// How a [`RateLimiter`] stands.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateLimitStatus {
    /// Requests that a minute may have now; `None` if no limit is known.
    pub requests_per_minute: Option<f64>,
    /// Tokens that a minute may have now; `None` if they are not limited.
    pub tokens_per_minute: Option<f64>,
    /// Requests of the last minute that the provider did not refuse.
    pub requests: u64,
    /// Tokens that these used, or may use.
    pub tokens: u64,
    /// Requests in the queue.
    pub waiting: usize,
    /// How long nothing goes through, if the provider asked for that.
    pub closed_for: Option<Duration>,
    /// How often the provider refused a request so far.
    pub refused: u64,
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").field("name", &self.0.name).field("status", &self.status()).finish()
    }
}
