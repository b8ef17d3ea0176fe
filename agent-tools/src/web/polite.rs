//! Per-host request throttle.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Hosts that are remembered before old ones are looked for.
const MANY: usize = 1_000;

/// Keeps requests to one host apart.
#[derive(Debug)]
pub(super) struct Polite {
    apart: Duration,
    next: Mutex<HashMap<String, Instant>>,
}

impl Polite {
    pub(super) fn new(apart: Duration) -> Self {
        Self { apart, next: Mutex::default() }
    }

    /// Waits until the host may be asked again.
    pub(super) async fn turn(&self, host: &str) {
        if !self.apart.is_zero() {
            sleep_until(self.book(host)).await;
        }
    }

    fn book(&self, host: &str) -> Instant {
        let (mut next, now) = (self.next.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if next.len() > MANY {
            next.retain(|_, free| *free > now);
        }
        let free = next.get(host).map_or(now, |free| now.max(*free));
        next.insert(host.to_owned(), free + self.apart);
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_host_are_apart_and_others_do_not_wait() {
        let (polite, start) = (Polite::new(Duration::from_secs(2)), Instant::now());
        for (host, after) in [("a", 0), ("b", 0), ("a", 2), ("a", 4), ("b", 4)] {
            polite.turn(host).await;
            assert_eq!(start.elapsed().as_secs(), after, "{host}");
        }
    }
}
