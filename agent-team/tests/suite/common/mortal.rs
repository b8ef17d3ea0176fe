//! A journal of a process that crashes at a given entry, over any journal.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use agent_core::{
    BoxFuture, Journal, Result, async_trait,
    journal::{Ack, Entry, JournalWriter},
};
use tokio::sync::watch;

/// A journal as a process sees it that crashes at an entry. The batch with that entry is lost, or it is
/// written and the process never hears of it; nothing is written afterwards.
#[derive(Clone)]
pub(crate) struct Mortal<J> {
    journal: J,
    dies_at: u64,
    is_written: bool,
    written: Arc<AtomicU64>,
    dead: watch::Sender<bool>,
}

impl<J: Journal> Mortal<J> {
    pub(crate) fn new(journal: J, dies_at: u64, is_written: bool) -> Self {
        Self { journal, dies_at, is_written, written: Arc::default(), dead: watch::channel(false).0 }
    }

    pub(crate) async fn died(&self) {
        self.dead.subscribe().wait_for(|dead| *dead).await.expect("the sender is here");
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }
}

struct Writer<J> {
    process: Mortal<J>,
    inner: Arc<dyn JournalWriter>,
}

#[async_trait]
impl<J: Journal + Clone> Journal for Mortal<J> {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        Ok(Arc::new(Writer { process: self.clone(), inner: self.journal.open(session, agent).await? }))
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

impl<J: Journal + Clone> JournalWriter for Writer<J> {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let process = &self.process;
        if *process.dead.borrow() {
            return Ack::Later(Box::pin(std::future::pending()));
        }
        let count = entries.len() as u64;
        if process.written.fetch_add(count, Ordering::AcqRel) + count < process.dies_at {
            return self.inner.append(entries);
        }
        let ack = process.is_written.then(|| self.inner.append(entries));
        let dead = process.dead.clone();
        if ack.is_none() {
            dead.send_replace(true);
        }
        Ack::Later(Box::pin(async move {
            if let Some(ack) = ack {
                ack.await.expect("written");
                dead.send_replace(true);
            }
            std::future::pending().await
        }))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        self.inner.verify_lease()
    }
}
