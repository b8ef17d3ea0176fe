//! [`ToolRetry`]: retries tools after temporary errors.

use std::{collections::BTreeSet, time::Duration};

use agent_core::{
    Effect, EventKind, Middleware, Placement, Result, Retry, ToolNext, ToolOutput, ToolRequest, boxed, model::Backoff,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::wrap::wrap;

/// Configuration of `ToolRetry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolRetryConfig {
    /// Maximum number of retries. Default: 2.
    pub retries: u32,
    /// Maximum delay before the first retry; each further delay is twice as long. In configuration
    /// files, seconds. Default: 1 second.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "agent_core::seconds::Seconds"))]
    pub initial_delay: Duration,
    /// Upper limit of the delay. An error that asks for a longer one is not retried. In
    /// configuration files, seconds. Default: 60 seconds.
    #[serde(with = "agent_core::seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "agent_core::seconds::Seconds"))]
    pub max_delay: Duration,
    /// Names of the tools that are retried. Default: empty, which means all.
    pub tools: BTreeSet<String>,
    /// Also retries errors of unknown retryability. Default: false.
    pub unknown: bool,
}

impl Default for ToolRetryConfig {
    fn default() -> Self {
        let (initial_delay, max_delay) = (Duration::from_secs(1), Duration::from_secs(60));
        Self { retries: 2, initial_delay, max_delay, tools: BTreeSet::new(), unknown: false }
    }
}

/// Retries a tool after a temporary error, with the delays of a [`Backoff`].
///
/// The delays grow exponentially, with random jitter. A delay that the error asks for is respected;
/// if it exceeds the [upper limit](Self::max_delay), the tool is not retried, and the error message
/// for the model says so, since it must not be retried too early.
///
/// Only retryable errors are retried ([`Retry::Temporary`]), and only repeatable calls: those of
/// tools whose [`Effect`] is `Pure` or `Idempotent`. A layer never repeats a call that may happen
/// at most once, nor one whose outcome can be reconciled, which a recovered run does. An error
/// result that the tool itself returns is not retried. Each retry is an event.
///
/// # Order
///
/// ```text
/// // right: one approval for all attempts, and a timeout for each
/// builder.middleware(Approval::new().ask("*")).middleware(ToolRetry::new()).tool_layer(TimeoutLayer::new(minute))
/// // wrong: the timeout covers all attempts together
/// builder.tool_layer(TimeoutLayer::new(minute)).middleware(ToolRetry::new())
/// ```
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use agent_middleware::ToolRetry;
///
/// let retry = ToolRetry::new().retries(4).initial_delay(Duration::from_millis(200)).tool("web_search");
/// # drop(retry);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolRetry {
    config: ToolRetryConfig,
}

impl ToolRetry {
    /// Creates the middleware with its defaults: two retries for all tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of retries.
    #[must_use]
    pub fn retries(mut self, most: u32) -> Self {
        self.config.retries = most;
        self
    }

    /// Sets the maximum delay before the first retry.
    #[must_use]
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.config.initial_delay = delay;
        self
    }

    /// Sets the upper limit of the delay. An error that asks for a longer one is not retried.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.config.max_delay = delay;
        self
    }

    /// Adds a tool that is retried; tools that are not named are then not retried.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.config.tools.insert(name.into());
        self
    }

    /// Also retries errors of unknown retryability.
    #[must_use]
    pub fn unknown(mut self) -> Self {
        self.config.unknown = true;
        self
    }

    fn applies_to(&self, req: &ToolRequest) -> bool {
        let repeatable = matches!(req.effect, Effect::Pure | Effect::Idempotent);
        let named = self.config.tools.is_empty() || self.config.tools.contains(&*req.call.name);
        self.config.retries > 0 && repeatable && named
    }

    async fn tries(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        let ToolRetryConfig { retries, initial_delay, max_delay, unknown, .. } = self.config;
        let backoff = Backoff::new().retries(retries).initial_delay(initial_delay).max_delay(max_delay);
        let mut failed = 0;
        loop {
            let e = match next.run(req.clone()).await {
                Err(e) => e,
                answered => return answered,
            };
            let asked = match e.retry() {
                Retry::Temporary(asked) if e.kind().is_model_visible() => asked,
                Retry::Unknown if unknown && e.kind().is_model_visible() => None,
                _ => return Err(e),
            };
            failed += 1;
            let Some(delay) = backoff.delay(failed, asked) else { return Err(backoff.give_up(e)) };
            req.cx.emit(EventKind::Retry {
                attempt: failed + 1,
                delay: delay.as_secs_f64(),
                kind: e.kind(),
                error: e.message().to_owned(),
            });
            tokio::time::sleep(delay).await;
        }
    }
}

impl From<ToolRetryConfig> for ToolRetry {
    fn from(config: ToolRetryConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl Middleware for ToolRetry {
    fn name(&self) -> &str {
        "tool_retry"
    }

    fn placement(&self) -> Placement {
        Placement::default().inside("approval")
    }

    wrap! {
        wrap_tool_call(self, req: ToolRequest, next: ToolNext) -> ToolOutput {
            if self.applies_to(&req) { boxed(|| self.tries(req, next)) } else { boxed(|| next.run(req)) }
        }
    }
}
