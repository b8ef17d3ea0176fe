//! What the server notes of a session so that it holds in every process: in the storage that the session's agents share, or beside it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent::{
    ErrorKind, Result, async_trait,
    journal::{Entry, EntryBody, Journal},
};
use serde_json::Value;
use tokio::time::sleep;

use super::App;
use crate::{clock::now, error::ApiError};

/// Who writes it: no run.
const NOBODY: &str = "agent-server";
/// How often a note is tried while another process writes the same one.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Where a server keeps what it notes of sessions: who is told of a run, and what they were told. Default: in its store, in the storage that a
/// session's agents share. A server whose store it cannot write to is given [another place](crate::ServerBuilder::notes).
#[async_trait]
pub trait Notes: Send + Sync + 'static {
    /// Keeps values under their keys, at once; none takes a key away. They are durable when this returns.
    ///
    /// # Errors
    /// Those of the place.
    async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<()>;

    /// The values whose keys begin with `prefix`.
    ///
    /// # Errors
    /// Those of the place.
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

/// Notes a value under a key of the session's storage, or removes what is there. It is durable when this returns.
///
/// # Errors
/// Those of the store.
pub(super) async fn note(journal: &dyn Journal, session: &str, key: &str, value: Option<Value>) -> Result<()> {
    // A side of its own: a run under way does not hold it, nor another note.
    write(journal, session, key, BTreeMap::from([(key.to_owned(), value)])).await
}

impl App {
    /// Notes values by their keys, which begin with `agent-server/`, at once; none takes a key away.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<(), ApiError> {
        Ok(self.0.notes.note(session, notes).await?)
    }

    /// The notes whose keys begin so.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn noted(&self, session: &str, prefix: &str) -> Result<BTreeMap<String, Value>, ApiError> {
        Ok(self.0.notes.notes(session, prefix).await?)
    }
}

/// Writes as one side of the session. Another process that does so has it for a moment, which is waited for.
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
