//! Readiness probes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent::{
    Error, Result, async_trait,
    error::ErrorKind,
    journal::{Entry, Journal, JournalWriter, MemoryJournal},
};
use agent_server::Server;
use serde_json::json;

use super::support::{Serving, support};

/// Store that can be made to fail.
struct Failing {
    inner: MemoryJournal,
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl Journal for Failing {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        self.inner.open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Store, "the database cannot be reached")),
            false => self.inner.read(session, after, limit).await,
        }
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.inner.sessions().await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.inner.delete(session).await
    }
}

#[tokio::test]
async fn a_server_whose_store_fails_is_not_ready_and_lives() {
    let fails = Arc::<AtomicBool>::default();
    let store = Failing { inner: MemoryJournal::default(), fails: fails.clone() };
    let agent = support([]).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).store(store)).await;
    let ready = serving.client().get("/ready").await;
    assert_eq!((ready.status, ready.json()), (200, json!({"status": "ready"})));
    fails.store(true, Ordering::Relaxed);
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(2)).await; // the last answer of the store is too old
    tokio::time::resume();
    let ready = serving.client().get("/ready").await;
    assert_eq!((ready.status, ready.json()), (503, json!({"status": "store unavailable"})));
    assert_eq!(serving.client().get("/health").await.status, 200);
}
