//! Child process: starts or resumes the run, until it ends or the process is killed.

use std::{io::Write, path::Path, sync::Arc};

use agent::{
    Checkpoint, Result, RunEnd, RunRequest,
    core::{
        BoxFuture, Error, Journal, async_trait,
        journal::{Ack, Entry, JournalWriter},
        tool::Doubt,
    },
};
use serde_json::{Value, json};

use super::{
    counter::Counter,
    moments::Moments,
    picture::digest,
    store::Store,
    world::{self, SESSION},
};

/// Instructions for a process.
pub(crate) struct Orders<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) store: Store,
    pub(crate) generation: u64,
    pub(crate) dies_at: Option<u64>,
}

/// Starts or resumes the run. Reports each acknowledged entry to the parent, and at the end the
/// number of kill points.
pub(crate) async fn live(orders: &Orders<'_>) -> Result<()> {
    let moments = Moments::new(orders.dies_at);
    let counter = Counter::open(orders.dir).map_err(|e| Error::config("no counter").with_source(e))?;
    let journal = Watched::new(orders.store.open(orders.dir, orders.generation).await?, moments.clone());
    let agent = world::tree(journal.clone(), &counter, &moments)?;
    loop {
        let request = match agent.unfinished(SESSION).await? {
            Some(stands) => RunRequest::recover(SESSION, answers(&stands, &counter)),
            None if journal.read(SESSION, 0, 1).await?.is_empty() => RunRequest::user("Go.").session(SESSION),
            None => break, // it had ended when the last process was killed
        };
        match agent.start(request).await? {
            RunEnd::Finished(_) => break,
            RunEnd::Interrupted(_) => {}
            other => return Err(Error::config(format!("nobody asked for a run that is {}", other.as_str()))),
        }
    }
    tell(&format!("end {}\n", moments.passed()));
    Ok(())
}

/// Returns the answers of a person who inspected the external effects.
pub(crate) fn answers(stands: &Checkpoint, counter: &Counter) -> Vec<(String, Value)> {
    let in_doubt = stands.questions.iter().filter(|question| question.kind == Doubt::KIND);
    let answer = in_doubt.map(|question| {
        let happened = question.payload["idempotency_key"].as_str().is_some_and(|key| counter.has(key));
        let given = json!({"happened": world::given(&question.payload["arguments"])});
        (question.id.clone(), if happened { given } else { json!("did_not") })
    });
    answer.collect()
}

/// Writes a line at once, so that the parent reads all of it or nothing.
fn tell(line: &str) {
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}

/// Journal that reports acknowledged entries to the parent, with kill points around every append.
#[derive(Clone)]
pub(crate) struct Watched {
    journal: Arc<dyn Journal>,
    moments: Moments,
}

struct WatchedWriter {
    writer: Arc<dyn JournalWriter>,
    session: String,
    moments: Moments,
}

impl Watched {
    pub(crate) fn new(journal: Arc<dyn Journal>, moments: Moments) -> Self {
        Self { journal, moments }
    }
}

#[async_trait]
impl Journal for Watched {
    async fn open(&self, session: &str, agent: &str) -> Result<Arc<dyn JournalWriter>> {
        let writer = self.journal.open(session, agent).await?;
        Ok(Arc::new(WatchedWriter { writer, session: session.to_owned(), moments: self.moments.clone() }))
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

impl JournalWriter for WatchedWriter {
    fn append(&self, entries: Vec<Entry>) -> Ack {
        let digests: Vec<_> = entries.iter().map(digest).collect();
        self.moments.pass(); // before the write
        let ack = self.writer.append(entries);
        self.moments.pass(); // during the write
        let (moments, session) = (self.moments.clone(), self.session.clone());
        Ack::Later(Box::pin(async move {
            let first = ack.await?;
            let lines = (first..).zip(digests).map(|(seq, digest)| format!("ack {session} {seq} {digest}\n"));
            tell(&lines.collect::<String>());
            moments.pass(); // after the acknowledgement
            Ok(first)
        }))
    }

    fn verify_lease(&self) -> BoxFuture<'static, Result<()>> {
        self.writer.verify_lease()
    }
}
