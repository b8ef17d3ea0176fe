//! Word of new entries: one look for all who wait in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agent_core::Result;
use tokio::sync::watch::{Receiver, Sender};

use super::readers::Readers;

/// How long there is between two looks. A look takes a tenth of the time at most, however many wait.
const PAUSE: Duration = Duration::from_millis(100);

/// Who waits for entries of which session.
#[derive(Clone)]
pub(super) struct News(Arc<Inner>);

struct Inner {
    readers: Readers,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// The newest entries as they were last seen, of sessions that somebody waits for.
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
            // A look failed. This one's own says why.
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

    /// Looks again and again while anybody waits.
    async fn look(self) {
        while let Some(sessions) = self.wanted() {
            let began = Instant::now();
            match self.0.readers.heads(&sessions).await {
                Ok(heads) => self.tell(heads),
                Err(error) => {
                    tracing::debug!(%error, "nobody knows what is new in the sessions that are waited for");
                    self.lock().heads.clear();
                }
            }
            tokio::time::sleep(PAUSE.max(began.elapsed() * 10)).await;
        }
    }

    /// The sessions that somebody waits for. If there are none, whoever comes next looks.
    fn wanted(&self) -> Option<Vec<Arc<str>>> {
        let mut waiting = self.lock();
        waiting.heads.retain(|_, head| head.receiver_count() > 0);
        waiting.is_looking = !waiting.heads.is_empty();
        waiting.is_looking.then(|| waiting.heads.keys().cloned().collect())
    }

    fn tell(&self, heads: Vec<(String, u64)>) {
        let waiting = self.lock();
        for (session, newest) in heads {
            let Some(head) = waiting.heads.get(&*session) else { continue };
            head.send_if_modified(|seen| std::mem::replace(seen, newest) != newest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
