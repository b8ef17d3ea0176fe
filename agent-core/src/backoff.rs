//! [`Backoff`]: retry policy with exponential delays.

use std::{
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    time::Duration,
};

use crate::error::{Error, Retry};

/// Retry policy: number of retries and delay before each, for model calls, tools and all other
/// transient failures.
///
/// The maximum delay after the first failure is the [initial delay](Self::initial_delay); each
/// further one is [`factor`](Self::factor) times as long, up to [`max_delay`](Self::max_delay). A
/// random part of the delay is dropped, so that clients that failed together do not retry together;
/// [`jitter`](Self::jitter) sets the size of this part.
///
/// A delay requested by the server ([`Retry::Temporary`]) is never shortened: the actual delay lies
/// between the requested one and the requested one plus one initial delay. If the requested delay
/// exceeds `max_delay`, there is no retry, and the error [states the reason](Self::give_up).
///
/// # Default
///
/// 4 retries, an initial delay of 1 second that doubles up to 30 seconds, and full jitter.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use agent_core::model::Backoff;
///
/// let backoff = Backoff::new().retries(3).initial_delay(Duration::from_secs(2)).jitter(0.0);
/// assert_eq!(backoff.delay(1, None), Some(Duration::from_secs(2)));
/// assert_eq!(backoff.delay(2, None), Some(Duration::from_secs(4)));
/// assert_eq!(backoff.delay(3, Some(Duration::from_secs(20))), Some(Duration::from_secs(20)));
/// assert_eq!(backoff.delay(3, Some(Duration::from_secs(90))), None);
/// assert_eq!(backoff.delay(4, None), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    retries: u32,
    initial_delay: Duration,
    factor: f64,
    max_delay: Duration,
    jitter: f64,
    seed: Option<u64>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            retries: 4,
            initial_delay: Duration::from_secs(1),
            factor: 2.0,
            max_delay: Duration::from_secs(30),
            jitter: 1.0,
            seed: None,
        }
    }
}

impl Backoff {
    /// Creates the default policy.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of attempts after the first. Default: 4.
    #[must_use]
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// Sets the maximum delay after the first failed attempt. Default: 1 second.
    #[must_use]
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = delay;
        self
    }

    /// Sets the factor between consecutive delays. Default: 2.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets the maximum delay. If a longer one is requested, there is no retry. Default: 30
    /// seconds.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets the random part of a delay: with 0 the delay is exact, with 1 it lies anywhere between
    /// zero and the full delay. Default: 1.
    #[must_use]
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = part.clamp(0.0, 1.0).max(0.0); // NaN counts as zero
        self
    }

    /// Uses reproducible delays, for tests. Default: random delays.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Returns the delay before the attempt that follows `failed` failed ones, where the server
    /// requested the delay `asked`; `None` if there should be no further attempt.
    pub fn delay(&self, failed: u32, asked: Option<Duration>) -> Option<Duration> {
        if failed > self.retries {
            return None;
        }
        let chance = self.jitter * self.random(failed);
        match asked {
            Some(asked) if asked > self.max_delay => None,
            Some(asked) => Some(asked.saturating_add(asked.min(self.initial_delay).mul_f64(chance))),
            None => Some(self.grown(failed).mul_f64(1.0 - chance)),
        }
    }

    /// Returns the error after which there is no retry. If the reason is that the requested delay
    /// exceeds [`max_delay`](Self::max_delay), the message says so.
    #[must_use]
    pub fn give_up(&self, error: Error) -> Error {
        match error.retry() {
            Retry::Temporary(Some(asked)) if asked > self.max_delay => error.map_message(|message| {
                let most = self.max_delay;
                format!("{message} (not tried again: it asks for a wait of {asked:?}, and at most {most:?} are waited)")
            }),
            _ => error,
        }
    }

    /// Returns the maximum delay after this number of failed attempts.
    fn grown(&self, failed: u32) -> Duration {
        let exponent = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial_delay.as_secs_f64() * self.factor.powi(exponent);
        Duration::try_from_secs_f64(seconds).map_or(self.max_delay, |delay| delay.min(self.max_delay))
    }

    /// Returns a number in the half-open interval from 0 to 1.
    fn random(&self, failed: u32) -> f64 {
        let bits = match self.seed {
            Some(seed) => {
                let mut hasher = DefaultHasher::new();
                (seed, failed).hash(&mut hasher);
                hasher.finish()
            }
            None => RandomState::new().hash_one(failed),
        };
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    fn seconds(backoff: Backoff, failed: u32, asked: Option<u64>) -> Option<f64> {
        backoff.delay(failed, asked.map(Duration::from_secs)).map(|d| d.as_secs_f64())
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff::new().retries(99).jitter(0.0);
        let delays: Vec<_> = (1..=7).map(|n| seconds(backoff, n, None).expect("retries")).collect();
        assert_eq!(delays, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert_eq!(seconds(backoff, 90, None), Some(30.0));
        assert_eq!(seconds(backoff.factor(3.0), 3, None), Some(9.0));
        assert_eq!(seconds(backoff.factor(f64::NAN), 3, None), Some(30.0));
    }

    #[test]
    fn the_part_that_is_left_to_chance_is_drawn_each_time_unless_there_is_a_seed() {
        let draw = |backoff: Backoff| (0..20).map(|_| seconds(backoff, 1, None).expect("retries")).collect::<Vec<_>>();
        let (random, few) = (draw(Backoff::new()), draw(Backoff::new().jitter(0.1)));
        assert!(random.iter().all(|d| (0.0..=1.0).contains(d)), "{random:?}");
        assert!(random.iter().any(|d| d != &random[0]), "all the same: {random:?}");
        assert!(few.iter().all(|d| (0.9..=1.0).contains(d)), "{few:?}");
        let seeded = draw(Backoff::new().seed(7));
        assert!(seeded.iter().all(|d| d == &seeded[0]), "{seeded:?}");
        assert_ne!(seeded, draw(Backoff::new().seed(8)));
    }

    #[test]
    fn an_error_that_asks_for_too_long_a_wait_is_given_back_and_says_why() {
        let busy = |asked| Error::tool("busy").with_retry(Retry::Temporary(Some(Duration::from_secs(asked))));
        let backoff = Backoff::new();
        assert_eq!((seconds(backoff, 1, Some(30)).is_some(), seconds(backoff, 1, Some(31))), (true, None));
        assert_eq!(backoff.give_up(busy(30)).message(), "busy");
        let error = backoff.give_up(busy(31));
        let said = "busy (not tried again: it asks for a wait of 31s, and at most 30s are waited)";
        assert_eq!((error.kind(), error.message()), (ErrorKind::Tool, said));
    }

    proptest! {
        #[test]
        fn no_wait_is_shorter_than_asked_or_longer_than_allowed(
            (retries, failed) in (0u32..6, 1u32..9),
            (initial, longest) in (0u64..5_000, 0u64..60_000),
            asked in proptest::option::of(0u64..120_000),
            jitter in prop_oneof![8 => 0.0..=1.0f64, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(2.0)],
        ) {
            let ms = Duration::from_millis;
            let backoff = Backoff::new().retries(retries).initial_delay(ms(initial)).max_delay(ms(longest)).jitter(jitter);
            let delay = backoff.delay(failed, asked.map(ms));
            let allowed = failed <= retries && asked.is_none_or(|asked| asked <= longest);
            prop_assert_eq!(delay.is_some(), allowed);
            if let Some(delay) = delay {
                prop_assert!(delay >= ms(asked.unwrap_or(0)));
                prop_assert!(delay <= ms(asked.map_or(longest, |asked| asked + initial)));
            }
        }
    }
}
