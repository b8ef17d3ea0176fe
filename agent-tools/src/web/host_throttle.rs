//! Per-host request throttle.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// Number of hosts that are kept before unused ones are dropped.
const MANY: usize = 1_000;

/// Time of the next request to a host. Callers queue for the lock; a cancelled one leaves the queue.
type Next = Arc<tokio::sync::Mutex<Instant>>;

/// Keeps a minimum time between requests to one host.
#[derive(Debug)]
pub(super) struct HostThrottle {
    apart: Duration,
    hosts: Mutex<HashMap<String, Next>>,
}

impl HostThrottle {
    pub(super) fn new(apart: Duration) -> Self {
        Self { apart, hosts: Mutex::default() }
    }

    /// Waits until the host may be asked again.
    ///
    /// # Cancellation safety
    /// A cancelled caller takes no turn.
    pub(super) async fn turn(&self, host: &str) {
        if !self.apart.is_zero() {
            let host = self.host(host);
            let mut next = host.lock().await;
            sleep_until(*next).await;
            *next = Instant::now() + self.apart;
        }
    }

    fn host(&self, host: &str) -> Next {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() > MANY {
            let now = Instant::now();
            hosts.retain(|_, next| Arc::strong_count(next) > 1 || next.try_lock().is_ok_and(|next| *next > now));
        }
        hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Instant::now()))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_host_are_apart_and_others_do_not_wait() {
        let (host_throttle, start) = (HostThrottle::new(Duration::from_secs(2)), Instant::now());
        for (host, after) in [("a", 0), ("b", 0), ("a", 2), ("a", 4), ("b", 4)] {
            host_throttle.turn(host).await;
            assert_eq!(start.elapsed().as_secs(), after, "{host}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_give_up_take_no_turn() {
        let (host_throttle, start) = (HostThrottle::new(Duration::from_secs(2)), Instant::now());
        host_throttle.turn("a").await;
        let waiting = (0..100).map(|_| timeout(Duration::from_secs(1), host_throttle.turn("a")));
        assert!(join_all(waiting).await.iter().all(Result::is_err));
        host_throttle.turn("a").await;
        assert_eq!(start.elapsed().as_secs(), 2);
    }
}
