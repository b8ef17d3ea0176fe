//! What the server notes of a session, in the storage that the session's agents share, so that it holds in every process.

use std::{collections::BTreeMap, time::Duration};

use agent::{
    ErrorKind, Result,
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
        Ok(write(&**self.journal(), session, NOBODY, notes).await?)
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
