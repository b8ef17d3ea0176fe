//! Read access to the sessions that Restate stores: [`RestateJournal`].

use std::{fmt, sync::Arc};

use agent_core::{
    Error, ErrorKind, Journal, Result, async_trait,
    journal::{Entry, IndexCache, JournalWriter, SessionInfo, SharedIndex},
};

use crate::{
    Restate,
    blobs::{BlobStore, Blobs},
    session::{Head, Page},
    tell::ReadEntries,
};

/// Read-only journal of the sessions of a [`Restate`] server, for every reader of the framework and
/// from any machine that reaches the server. Only runs write to these sessions;
/// [`dispatch`](agent_dispatch::Dispatch::dispatch) starts them.
///
/// A run's entries become visible in batches, together with the results of its steps.
pub struct RestateJournal {
    restate: Restate,
    blobs: Blobs,
    indexes: IndexCache,
}

impl RestateJournal {
    /// Creates a journal of this server's sessions.
    pub fn new(restate: Restate) -> Self {
        Self { restate, blobs: Blobs::new(None, 0), indexes: IndexCache::default() }
    }

    /// Sets the blob store for entries of more than 14 MiB, which must be the one of the
    /// [endpoint](crate::AgentEndpointBuilder::blobs). Default: none, so that a session with such
    /// an entry cannot be read.
    #[must_use]
    pub fn blobs(mut self, store: impl BlobStore) -> Self {
        self.blobs = Blobs::new(Some(Arc::new(store)), 0);
        self
    }

    /// Returns the server's client.
    pub fn restate(&self) -> &Restate {
        &self.restate
    }

    async fn head(&self, session: &str) -> Result<Head> {
        self.restate.call(session, "head", &()).await
    }

    /// Returns the entry with this sequence number; none for 0.
    async fn entry(&self, session: &str, seq: u64) -> Result<Option<Arc<Entry>>> {
        match seq.checked_sub(1) {
            Some(before) => Ok(self.read(session, before, 1).await?.pop()),
            None => Ok(None),
        }
    }

    /// Returns the names of the sessions that match the condition, in its order.
    async fn named(&self, and: &str) -> Result<Vec<String>> {
        let service = quoted(self.restate.service());
        let sql = format!("SELECT service_key FROM state WHERE service_name = {service} AND key = 'head' {and}");
        let rows = self.restate.query(&sql).await?;
        Ok(rows.iter().filter_map(|row| row["service_key"].as_str().map(str::to_owned)).collect())
    }
}

#[async_trait]
impl Journal for RestateJournal {
    async fn open(&self, _: &str, _: &str) -> Result<Arc<dyn JournalWriter>> {
        Err(only_read())
    }

    async fn read(&self, session: &str, after: u64, limit: usize) -> Result<Vec<Arc<Entry>>> {
        let mut found = Vec::<Arc<Entry>>::new();
        let mut more = true;
        while more && found.len() < limit {
            let after = found.last().map_or(after, |entry| entry.seq);
            let reads = ReadEntries { after, limit: limit - found.len() };
            match self.restate.call(session, "read", &reads).await? {
                Page::Entries { entries, more: is_more } => {
                    found.extend(entries);
                    more = is_more;
                }
                Page::Elsewhere(piece) => {
                    let entries = piece.read(&self.blobs).await?.into_iter().filter(|entry| entry.seq > after);
                    found.extend(entries.take(reads.limit));
                }
            }
        }
        Ok(found)
    }

    async fn sessions(&self) -> Result<Vec<String>> {
        self.named("ORDER BY service_key").await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        let [prefix, after] = [prefix, after].map(quoted);
        self.named(&format!(
            "AND service_key > {after} AND starts_with(service_key, {prefix}) ORDER BY service_key LIMIT {limit}"
        ))
        .await
    }

    async fn newest(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        self.entry(session, self.head(session).await?.newest).await
    }

    async fn info(&self, session: &str) -> Result<Option<SessionInfo>> {
        Ok(Some(self.head(session).await?.info).filter(|info| info.entries > 0))
    }

    async fn anchor(&self, session: &str) -> Result<Option<Arc<Entry>>> {
        match self.head(session).await?.anchors.last() {
            Some(place) => self.entry(session, place.seq).await,
            None => Ok(None),
        }
    }

    async fn index(&self, session: &str) -> Result<SharedIndex> {
        self.indexes.index(self, session).await
    }

    async fn whole_index(&self, session: &str) -> Result<SharedIndex> {
        self.indexes.whole_index(self, session).await
    }

    async fn delete(&self, _: &str) -> Result<bool> {
        Err(only_read())
    }
}

/// Quotes text as a SQL string literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn only_read() -> Error {
    Error::new(
        ErrorKind::Config,
        "Restate's sessions are read-only here: dispatch runs to the server and delete sessions there",
    )
}

impl fmt::Debug for RestateJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestateJournal").field("restate", &self.restate).finish_non_exhaustive()
    }
}
