//! Waking those who wait.

use tokio::sync::watch;

/// Counts what is new. Clones are one.
#[derive(Clone, Debug)]
pub(crate) struct News(watch::Sender<u64>);

impl Default for News {
    fn default() -> Self {
        Self(watch::channel(1).0)
    }
}

impl News {
    pub(crate) fn tell(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Waits until the count is past `since`, and gives it.
    pub(crate) async fn after(&self, since: u64) -> u64 {
        let mut count = self.0.subscribe();
        let seen = count.wait_for(|count| *count > since).await.map(|count| *count);
        seen.unwrap_or(since) // an error would say that all senders are gone, and one is here
    }
}
