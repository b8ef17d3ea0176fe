//! What the server keeps of a session: in the storage that its agents share, so that it holds in every process.

use std::{collections::BTreeMap, time::Duration};

use agent::{
    ErrorKind, Result,
    journal::{Entry, EntryBody, Journal},
};
use serde_json::Value;
use tokio::time::sleep;

use super::live::now;

/// Who writes it: no run.
const NOBODY: &str = "agent-server";
/// How often a note is tried while another process writes the same one.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps a value under a key of the session's storage, or removes what is there. It is durable when this returns.
///
/// # Errors
/// Those of the store.
pub(super) async fn note(journal: &dyn Journal, session: &str, key: &str, value: Option<Value>) -> Result<()> {
    let mut tries = 1;
    // A side of its own: a run under way does not hold it, nor another note.
    let writer = loop {
        match journal.open(session, key).await {
            Err(error) if error.kind() == ErrorKind::Busy && tries < TRIES => sleep(PAUSE).await,
            opened => break opened?,
        }
        tries += 1;
    };
    let globals = BTreeMap::from([(key.to_owned(), value)]);
    let body = EntryBody::StateChanged { state: BTreeMap::new(), globals };
    writer.append(vec![Entry::new(NOBODY.into(), now(), body)]).await?;
    Ok(())
}
