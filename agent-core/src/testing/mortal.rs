//! A journal with simulated crashes.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::Faults;
use crate::{
    error::Result,
    journal::{Ack, Entry, Journal, JournalWriter, MemoryJournal},
};

/// A journal as seen by a process that crashes at a given entry: the batch with that entry is not
/// written, nothing is acknowledged afterwards, and [`died`](Self::died) resolves. Entries written
/// before are in the inner journal, for the next process.
///
/// ```
/// use agent_core::{Journal, MemoryJournal, journal::{Entry, EntryBody}, testing::MortalJournal};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let journal = MemoryJournal::default();
/// let process = MortalJournal::new(journal.clone()).dying_at(2);
/// let writer = process.open("s", "a").await?;
/// let entry = || vec![Entry::new("r".into(), 0, EntryBody::Undone { before_run: "r".into() })];
/// writer.append(entry()).await?;
/// let never = writer.append(entry());
/// process.died().await;
/// assert_eq!(journal.read("s", 0, 9).await?.len(), 1);
/// # drop(never); Ok::<(), agent_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct MortalJournal {
    journal: MemoryJournal,
    dies_at: Option<u64>,
    written: Arc<Mutex<u64>>,
    dead: CancellationToken,
    order: Option<Faults>,
}

impl MortalJournal {
    /// Creates a process over `journal` that does not crash.
    pub fn new(journal: MemoryJournal) -> Self {
        Self { journal, dies_at: None, written: Arc::default(), dead: CancellationToken::new(), order: None }
    }

    /// Crashes at the entry number `entry`, counted from 1 from now on.
    #[must_use]
    pub fn dying_at(mut self, entry: u64) -> Self {
        self.dies_at = Some(entry);
        self
    }

    /// Delays acknowledgements by these numbers.
    #[must_use]
    pub fn shuffled(mut self, order: Faults) -> Self {
        self.order = Some(order);
        self
    }

    /// Waits until the process has crashed.
    pub async fn died(&self) {
        self.dead.cancelled().await;
    }

    /// Number of entries written.
    pub fn written(&self) -> u64 {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Writer(MortalJournal, Arc<dyn JournalWriter>);

#[async_trait]
impl Journal for MortalJournal {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Writer(self.clone(), self.journal.open(session, agent).await?)))
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.journal.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.journal.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.journal.delete(session).await
    }
}

impl JournalWriter for Writer {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let mut written = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        let all = *written + entries.len() as u64;
        if self.0.dead.is_cancelled() || self.0.dies_at.is_some_and(|at| all >= at) {
            self.0.dead.cancel();
            return Ack::Later(Box::pin(std::future::pending()));
        }
        *written = all;
        let ack = self.1.append(entries);
        match self.0.order.clone() {
            None => ack,
            Some(order) => Ack::Later(Box::pin(async move {
                order.shuffle().await;
                ack.await
            })),
        }
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        self.1.verify_lease()
    }
}

impl fmt::Debug for MortalJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MortalJournal").field("dies_at", &self.dies_at).field("written", &self.written()).finish()
    }
}
