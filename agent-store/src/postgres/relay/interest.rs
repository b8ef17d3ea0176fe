//! Runs that are watched, as publishers know them from notifications.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// Time after which a run counts as unwatched, unless its subscription is repeated.
const LIFETIME: Duration = Duration::from_secs(30);

/// Subscriptions by topic.
#[derive(Default)]
pub(super) struct Interest {
    topics: Mutex<HashMap<String, Topic>>,
    /// Number of subscriptions so far.
    subscriptions: AtomicU64,
}

struct Topic {
    /// End of the interest.
    until: Option<Instant>,
    /// Number of the newest subscription.
    newest: watch::Sender<u64>,
}

impl Topic {
    fn new() -> Self {
        Self { until: None, newest: watch::Sender::new(0) }
    }

    fn is_watched(&self) -> bool {
        self.until.is_some_and(|until| until > Instant::now())
    }
}

impl Interest {
    pub(super) fn is_watched(&self, topic: &str) -> bool {
        self.lock().get(topic).is_some_and(Topic::is_watched)
    }

    /// Waits for a subscription after `since`, and returns its number.
    pub(super) async fn watched(&self, topic: String, since: u64) -> u64 {
        loop {
            let mut newest = self.lock().entry(topic.clone()).or_insert_with(Topic::new).newest.subscribe();
            // The sender is dropped only if the topic had no receiver, which this one is.
            if let Ok(newest) = newest.wait_for(|newest| *newest > since).await {
                return *newest;
            }
        }
    }

    /// Records that a subscription to this topic exists; it `is_new`, or was announced before.
    pub(super) fn announced(&self, topic: &str, is_new: bool) {
        let mut topics = self.lock();
        let topic = topics.entry(topic.to_owned()).or_insert_with(Topic::new);
        let is_new = is_new || !topic.is_watched();
        topic.until = Some(Instant::now() + LIFETIME);
        if is_new {
            let number = self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1;
            topic.newest.send_modify(|newest| *newest = number);
        }
    }

    /// Removes the topics that nobody watches or waits for.
    pub(super) fn prune(&self) {
        self.lock().retain(|_, topic| topic.is_watched() || topic.newest.receiver_count() > 0);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Topic>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_run_is_watched_as_long_as_its_subscription_is_repeated() {
        let interest = Interest::default();
        assert!(!interest.is_watched("t"));
        interest.announced("t", true);
        let since = interest.watched("t".into(), 0).await;
        for _ in 0..3 {
            tokio::time::advance(LIFETIME / 3).await;
            interest.announced("t", false);
            assert!(interest.is_watched("t"));
            assert!(interest.watched("t".into(), since).now_or_never().is_none(), "it is the same subscription");
        }
        tokio::time::advance(LIFETIME).await;
        assert!(!interest.is_watched("t"));
        interest.prune();
        assert!(interest.lock().is_empty());
        interest.announced("t", false);
        assert!(interest.watched("t".into(), since).await > since, "its beginning was missed");
    }
}
