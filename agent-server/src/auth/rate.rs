//! Rate limits of callers.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::caller::Caller;

/// Burst size, in seconds' worth of requests.
const BURST: f64 = 10.0;
/// Maximum number of tracked callers; idle ones are dropped first.
const MOST: usize = 10_000;

/// `Retry-After` of a caller that may make no request at all.
const NEVER: Duration = Duration::from_secs(3600);

/// Token bucket of each limited caller.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<(String, String), Bucket>>);

#[derive(Debug)]
struct Bucket {
    /// Requests left in the bucket.
    left: f64,
    at: Instant,
}

impl Rates {
    /// Takes a request from the caller's bucket, or returns the time to wait.
    pub(super) fn take(&self, caller: &Caller) -> Result<(), Duration> {
        let Some(rate) = caller.limited().requests_per_second else { return Ok(()) };
        if rate.is_nan() || rate <= 0.0 {
            return Err(NEVER); // a caller of an application's own layer: no request is allowed
        }
        let (now, most) = (Instant::now(), (rate * BURST).max(1.0));
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST {
            // A full bucket carries no information.
            let full = Duration::from_secs_f64(BURST.max(1.0 / rate));
            buckets.retain(|_, bucket| now - bucket.at < full);
        }
        let name = (caller.tenant().to_owned(), caller.subject().to_owned());
        let bucket = buckets.entry(name).or_insert(Bucket { left: most, at: now });
        bucket.left = (bucket.left + (now - bucket.at).as_secs_f64() * rate).min(most);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / rate));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::CallerLimits;

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_zero_allows_no_request() {
        let nobody = Caller::new("t", "ada").limits(CallerLimits::default().requests_per_second(0.0));
        assert!(Rates::default().take(&nobody).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_seconds_of_requests_come_at_once_and_then_one_after_the_other() {
        let limits = CallerLimits { requests_per_second: Some(2.0), ..CallerLimits::default() };
        let (rates, ada) = (Rates::default(), Caller::new("t", "ada").limits(limits));
        assert_eq!((0..25).filter(|_| rates.take(&ada).is_ok()).count(), 20);
        assert_eq!(rates.take(&ada), Err(Duration::from_millis(500)));
        assert!(rates.take(&Caller::new("t", "bob").limits(limits)).is_ok(), "each has a bucket");
        tokio::time::advance(Duration::from_millis(600)).await;
        assert!(rates.take(&ada).is_ok() && rates.take(&ada).is_err());
    }
}
