//! Searches for stopped runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent::{
    Message, Result, async_trait,
    journal::{Entry, EntryBody, Journal, JournalWriter, MemoryJournal, RunQuery, RunSummary, SessionInfo},
};
use agent_server::Server;

use super::support::{Serving, support};

/// Store that counts the sessions that are looked at, and the queries for incomplete runs.
#[derive(Clone, Default)]
struct Counting {
    inner: MemoryJournal,
    looked: Arc<AtomicUsize>,
    searched: Arc<AtomicUsize>,
}

#[async_trait]
impl Journal for Counting {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        self.inner.open(session, agent).await
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        self.inner.read(session, after, limit).await
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.inner.sessions().await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        self.looked.fetch_add(1, Ordering::Relaxed);
        self.inner.info(session).await
    }

    async fn runs(&self, query: &RunQuery) -> Result<Vec<RunSummary>> {
        self.searched.fetch_add(1, Ordering::Relaxed);
        self.inner.runs(query).await
    }

    async fn delete(&self, session: &str) -> Result<bool> {
        self.inner.delete(session).await
    }
}

#[tokio::test]
async fn a_server_looks_at_all_sessions_once_and_then_at_those_with_incomplete_runs() {
    let journal = Counting::default();
    for n in 0..50 {
        let writer = journal.inner.open_now(&format!("local/{n}"), "support").expect("is free");
        let body = EntryBody::MessageAppended { message: Message::user("x") };
        writer.append(vec![Entry::new("r".into(), 1, body)]).await.expect("appends");
    }
    let agent = support([]).build().expect("an agent");
    let serving = Serving::new(Server::builder().agent(agent).store(journal.clone())).await;
    while journal.looked.load(Ordering::Relaxed) < 50 {
        tokio::task::yield_now().await;
    }
    for searches in 1..4 {
        while journal.searched.load(Ordering::Relaxed) < searches {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(61)).await;
            tokio::time::resume();
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(journal.looked.load(Ordering::Relaxed), 50, "old sessions without runs are left alone");
    serving.stopped().await;
}
