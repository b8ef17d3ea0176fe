//! Notification of new entries: one query for all waiters of this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agent_core::Result;
use tokio::sync::watch::{Receiver, Sender};

use super::readers::Readers;

/// Minimum and maximum pause between two queries; within this range, ten times the duration of a
/// query.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Waiters for new entries, by session.
#[derive(Clone)]
pub(super) struct News(Arc<Inner>);

struct Inner {
    readers: Readers,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Newest sequence number seen, of sessions with waiters.
    heads: HashMap<Arc<str>, Sender<u64>>,
    is_looking: bool,
}

impl News {
    pub(super) fn new(readers: Readers) -> Self {
        Self(Arc::new(Inner { readers, waiting: Mutex::default() }))
    }

    /// Waits until a session has an entry after `after`.
    pub(super) async fn after(&self, session: &str, after: u64) -> Result<()> {
        loop {
            let mut head = self.head(session);
            if head.wait_for(|head| *head > after).await.is_ok() {
                return Ok(());
            }
            // A query failed. A query of this waiter reports the reason.
            self.0.readers.heads(&[session.into()]).await?;
        }
    }

    fn head(&self, session: &str) -> Receiver<u64> {
        let mut waiting = self.lock();
        let head = waiting.heads.entry(session.into()).or_insert_with(|| Sender::new(0)).subscribe();
        if !std::mem::replace(&mut waiting.is_looking, true) {
            drop(self.0.readers.runtime().spawn(self.clone().look()));
        }
        head
    }

    /// Polls as long as there are waiters.
    async fn look(self) {
        while let Some(sessions) = self.wanted() {
            let began = Instant::now();
            match self.0.readers.heads(&sessions).await {
                Ok(heads) => self.tell(&heads.into_iter().collect()),
                Err(error) => {
                    tracing::debug!(%error, "new entries could not be polled; trying again");
                    self.lock().heads.clear();
                }
            }
            tokio::time::sleep((began.elapsed() * 10).clamp(PAUSE.0, PAUSE.1)).await;
        }
    }

    /// Returns the sessions with waiters. Without any, polling stops until the next waiter.
    fn wanted(&self) -> Option<Vec<Arc<str>>> {
        let mut waiting = self.lock();
        waiting.heads.retain(|_, head| head.receiver_count() > 0);
        waiting.is_looking = !waiting.heads.is_empty();
        waiting.is_looking.then(|| waiting.heads.keys().cloned().collect())
    }

    fn tell(&self, heads: &HashMap<String, u64>) {
        for (session, head) in &self.lock().heads {
            let newest = heads.get(&**session).copied().unwrap_or(0);
            head.send_if_modified(|seen| std::mem::replace(seen, newest) != newest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
