//! [`Backoff`]: how often to try again, and how long to wait before it.

use std::{fmt, sync::Arc, time::Duration};

use tower::util::rng::{HasherRng, Rng};

type Jitter = dyn Fn() -> f64 + Send + Sync;

/// How often a call is tried again, and how long each wait is.
///
/// A delay that the provider names is kept, plus a random part of it that is at most the base delay: so those who were
/// refused together do not come back together. Without one, the delay is random between nothing and the base delay, which
/// doubles with every failed attempt.
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::ErrorKind;
/// use agent_llm::{RetryLayer, retry::Backoff};
///
/// let patient = Backoff::new().retries(10).base_delay(Duration::from_secs(5)).max_delay(Duration::from_secs(120));
/// let layer = RetryLayer::new().on([ErrorKind::RateLimited], patient).never([ErrorKind::Timeout]);
/// # drop(layer);
/// ```
#[derive(Clone)]
pub struct Backoff {
    retries: u32,
    base: Duration,
    longest: Duration,
    jitter: Arc<Jitter>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            retries: 4,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            jitter: Arc::new(|| HasherRng::default().next_f64()),
        }
    }
}

impl Backoff {
    /// The default: 4 retries, 1 s that doubles, at most 30 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most attempts after the first. Default: 4.
    #[must_use]
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// Sets the longest delay after the first attempt, which doubles with every further one. Default: 1 s.
    #[must_use]
    pub fn base_delay(mut self, delay: Duration) -> Self {
        self.base = delay;
        self
    }

    /// Sets the longest delay; if the provider asks for a longer one, its error is returned. Default: 30 s.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.longest = delay;
        self
    }

    /// Sets which part of a delay is taken, from 0 to 1. Default: random.
    #[must_use]
    pub fn jitter(mut self, part: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.jitter = Arc::new(part);
        self
    }

    /// The delay before the attempt that would come after `failed` failed ones, when the provider asked for one of `asked`;
    /// none if there should be no other attempt.
    pub(super) fn delay(&self, failed: u32, asked: Option<Duration>) -> Option<Duration> {
        if failed > self.retries {
            return None;
        }
        let part = (self.jitter)().clamp(0.0, 1.0).max(0.0); // what is no number is nothing
        match asked {
            Some(asked) if asked > self.longest => None,
            Some(asked) => Some(asked.saturating_add(asked.min(self.base).mul_f64(part))),
            None => {
                let doubled = self.base.saturating_mul(1u32.checked_shl(failed - 1).unwrap_or(u32::MAX));
                Some(doubled.min(self.longest).mul_f64(part))
            }
        }
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff")
            .field("retries", &self.retries)
            .field("base", &self.base)
            .field("longest", &self.longest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(backoff: &Backoff, failed: u32, asked: Option<u64>) -> Option<f64> {
        backoff.delay(failed, asked.map(Duration::from_secs)).map(|d| d.as_secs_f64())
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = Backoff::new().retries(99).jitter(|| 1.0);
        let delays: Vec<_> = (1..=7).map(|n| seconds(&backoff, n, None).expect("retries")).collect();
        assert_eq!(delays, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!(seconds(&backoff, 90, None), Some(30.0));
    }

    #[test]
    fn jitter_is_over_the_whole_delay() {
        assert_eq!(seconds(&Backoff::new().jitter(|| 0.25), 3, None), Some(1.0));
        let random = Backoff::new();
        let delays: Vec<_> = (0..20).map(|_| seconds(&random, 1, None).expect("retries")).collect();
        assert!(delays.iter().all(|d| (0.0..1.0).contains(d)), "{delays:?}");
        assert!(delays.iter().any(|d| d != &delays[0]), "all the same: {delays:?}");
    }

    #[test]
    fn a_delay_that_the_provider_asks_for_is_kept_and_spread_a_little() {
        let backoff = |part: f64| Backoff::new().jitter(move || part);
        assert_eq!(seconds(&backoff(0.0), 1, Some(7)), Some(7.0));
        assert_eq!(seconds(&backoff(1.0), 1, Some(7)), Some(8.0));
        assert_eq!(seconds(&backoff(1.0), 1, Some(0)), Some(0.0));
    }

    #[test]
    fn a_provider_that_asks_for_too_long_a_wait_is_not_tried_again() {
        let backoff = Backoff::new().jitter(|| 0.0);
        assert_eq!(seconds(&backoff, 1, Some(30)), Some(30.0));
        assert_eq!(seconds(&backoff, 1, Some(31)), None);
    }

    proptest! {
        #[test]
        fn no_wait_is_shorter_than_asked_or_longer_than_allowed(
            (retries, failed) in (0u32..6, 1u32..9),
            (base, longest) in (0u64..5_000, 0u64..60_000),
            asked in proptest::option::of(0u64..120_000),
            part in prop_oneof![8 => 0.0..=1.0f64, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(2.0)],
        ) {
            let ms = Duration::from_millis;
            let backoff = Backoff::new().retries(retries).base_delay(ms(base)).max_delay(ms(longest)).jitter(move || part);
            let delay = backoff.delay(failed, asked.map(ms));
            let allowed = failed <= retries && asked.is_none_or(|asked| asked <= longest);
            prop_assert_eq!(delay.is_some(), allowed);
            if let Some(delay) = delay {
                prop_assert!(delay >= ms(asked.unwrap_or(0)));
                prop_assert!(delay <= ms(asked.map_or(longest, |asked| asked + base)));
            }
        }
    }
}
