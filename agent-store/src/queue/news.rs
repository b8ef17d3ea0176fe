//! Wake-up of waiting workers.

use tokio::sync::watch;

/// Change counter. Clones share one counter.
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

    /// Waits until the counter exceeds `since` and returns it.
    pub(crate) async fn after(&self, since: u64) -> u64 {
        let mut count = self.0.subscribe();
        let seen = count.wait_for(|count| *count > since).await.map(|count| *count);
        seen.unwrap_or(since) // fails only if all senders are gone, and `self` is one
    }
}
