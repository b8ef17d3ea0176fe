//! How long to wait before the next attempt.

use std::{fmt, sync::Arc, time::Duration};

use agent_core::{Error, Retry};
use tower::util::rng::{HasherRng, Rng};

type Jitter = dyn Fn() -> f64 + Send + Sync;

/// Exponential, with full jitter; a delay that the provider names comes first.
#[derive(Clone)]
pub(super) struct Backoff {
    pub(super) retries: u32,
    pub(super) base: Duration,
    pub(super) longest: Duration,
    pub(super) jitter: Arc<Jitter>,
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
    /// The delay before the attempt that would come after `failed` failed ones, the last of them with `error`; none if
    /// there should be no other.
    pub(super) fn delay(&self, failed: u32, error: &Error) -> Option<Duration> {
        let Retry::Temporary(asked) = error.retry() else { return None };
        if failed > self.retries {
            return None;
        }
        match asked {
            Some(asked) => Some(asked).filter(|asked| *asked <= self.longest),
            None => {
                let doubled = self.base.saturating_mul(1u32.checked_shl(failed - 1).unwrap_or(u32::MAX));
                Some(doubled.min(self.longest).mul_f64((self.jitter)().clamp(0.0, 1.0)))
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
    use agent_core::ErrorKind;

    use super::*;

    fn error(retry: Retry) -> Error {
        Error::new(ErrorKind::Provider, "why").with_retry(retry)
    }

    fn seconds(backoff: &Backoff, failed: u32, retry: Retry) -> Option<f64> {
        backoff.delay(failed, &error(retry)).map(|d| d.as_secs_f64())
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = Backoff { retries: 99, jitter: Arc::new(|| 1.0), ..Backoff::default() };
        let delays: Vec<_> = (1..=7).map(|n| seconds(&backoff, n, Retry::Temporary(None)).expect("retries")).collect();
        assert_eq!(delays, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!(seconds(&backoff, 90, Retry::Temporary(None)), Some(30.0));
    }

    #[test]
    fn jitter_is_over_the_whole_delay() {
        let backoff = Backoff { jitter: Arc::new(|| 0.25), ..Backoff::default() };
        assert_eq!(seconds(&backoff, 3, Retry::Temporary(None)), Some(1.0));
        let random = Backoff::default();
        let delays: Vec<_> = (0..20).map(|_| seconds(&random, 1, Retry::Temporary(None)).expect("retries")).collect();
        assert!(delays.iter().all(|d| (0.0..1.0).contains(d)), "{delays:?}");
        assert!(delays.iter().any(|d| d != &delays[0]), "all the same: {delays:?}");
    }

    #[test]
    fn a_provider_that_asks_for_too_long_a_wait_is_not_tried_again() {
        let backoff = Backoff::default();
        let asked = |s| Retry::Temporary(Some(Duration::from_secs(s)));
        assert_eq!(seconds(&backoff, 1, asked(30)), Some(30.0));
        assert_eq!(seconds(&backoff, 1, asked(31)), None);
    }

    #[test]
    fn only_temporary_errors_are_tried_again_and_only_so_often() {
        let backoff = Backoff::default();
        assert_eq!(seconds(&backoff, 1, Retry::Permanent), None);
        assert_eq!(seconds(&backoff, 1, Retry::Unknown), None);
        assert!(seconds(&backoff, 4, Retry::Temporary(None)).is_some());
        assert_eq!(seconds(&backoff, 5, Retry::Temporary(None)), None);
    }
}
