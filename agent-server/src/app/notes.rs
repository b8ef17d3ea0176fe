//! Session metadata of the server, shared by all processes: in the storage that the session's
//! agents share, or elsewhere.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent::{
    ErrorKind, Result, async_trait,
    journal::{Entry, EntryBody, Journal, METADATA},
};
use serde_json::Value;
use tokio::time::sleep;

use super::App;
use crate::{clock::now, error::ApiError};

/// Prefix of the storage keys of all notes; clients do not see them.
pub(crate) const NOTES: &str = "agent-server/";
/// Agent name of these entries, which belong to no run.
const NOBODY: &str = "agent-server";
/// Maximum number of attempts while another process writes the same note.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Storage of the server's session metadata: webhooks of runs, and their delivered messages.
/// Default: the server's store, in the storage that a session's agents share. A server whose store
/// is read-only needs [another implementation](crate::ServerBuilder::notes).
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Writes values by key, atomically; `None` removes a key. The values are durable when this
    /// returns.
    ///
    /// # Errors
    /// The errors of the storage.
    async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()>;

    /// Returns the values whose keys begin with `prefix`.
    ///
    /// # Errors
    /// The errors of the storage.
    async fn notes(&self, session: &str, prefix: &str) -> Result<BTreeMap<String, Value>>;
}

/// [`Notes`] in the storage that a session's agents share.
pub(crate) struct InJournal(pub(crate) Arc<dyn Journal>);

#[async_trait]
impl Notes for InJournal {
    async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()> {
        write(&*self.0, session, NOBODY, notes).await
    }

    async fn notes(&self, session: &str, prefix: &str) -> Result<BTreeMap<String, Value>> {
        let index = self.0.index(session).await?;
        Ok(index.look(|index| {
            let from = index.globals().range(prefix.to_owned()..);
            let own = from.take_while(|(key, _)| key.starts_with(prefix));
            own.map(|(key, value)| (key.clone(), value.clone())).collect()
        }))
    }
}

/// Writes or removes a value of the session's storage. The change is durable when this returns.
///
/// # Errors
/// The errors of the store.
pub(super) async fn note(journal: &dyn Journal, session: &str, key: &str, value: Option<Value>) -> Result<()> {
    // Uses a writer of its own per key: active runs and other notes do not hold it.
    write(journal, session, key, BTreeMap::from([(key.to_owned(), value)])).await
}

impl App {
    /// Sets the metadata of a session.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) async fn set_metadata(&self, session: &str, pairs: &BTreeMap<String, String>) -> Result<(), ApiError> {
        let pairs = pairs.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        let value = Value::Object(pairs.collect());
        Ok(note(&**self.journal(), session, METADATA, Some(value)).await?)
    }

    /// Writes notes by key, with the prefix `agent-server/`, atomically; `None` removes a key.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<(), ApiError> {
        Ok(self.0.notes.note(session, notes).await?)
    }

    /// Returns the notes whose keys begin with `prefix`.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn noted(&self, session: &str, prefix: &str) -> Result<BTreeMap<String, Value>, ApiError> {
        Ok(self.0.notes.notes(session, prefix).await?)
    }
}

/// Writes as one agent of the session; waits while another process briefly holds its lease.
async fn write(
    journal: &dyn Journal,
    session: &str,
    side: &str,
    globals: BTreeMap<String, Option<Value>>,
) -> Result<()> {
    let mut tries = 1;
    let writer = loop {
        match journal.open(session, side).await {
            Err(error) if error.kind() == ErrorKind::Busy && tries < TRIES => sleep(PAUSE).await,
            opened => break opened?,
        }
        tries += 1;
    };
    let body = EntryBody::StateChanged { state: BTreeMap::new(), globals };
    writer.append(vec![Entry::new(NOBODY.into(), now(), body)]).await?;
    Ok(())
}
