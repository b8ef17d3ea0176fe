//! What the server notes of a session, in the storage that the session's agents share, so that it holds in every process.

use std::{collections::BTreeMap, time::Duration};

use agent::{
    ErrorKind,
    journal::{Entry, EntryBody},
    model::Backoff,
};
use serde_json::Value;

use super::App;
use crate::{clock::now, error::ApiError};

/// The side of a session that belongs to no agent: a run under way does not keep it.
const NOBODY: &str = "agent-server";

impl App {
    /// Notes values by their keys, which begin with `agent-server/`; none takes a key away. Another process that notes something in
    /// the session has it for a moment, which is waited for.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn note(&self, session: &str, notes: BTreeMap<String, Option<Value>>) -> Result<(), ApiError> {
        let (backoff, mut failures) = (Backoff::new().retries(8).initial_delay(Duration::from_millis(25)), 0);
        let writer = loop {
            match self.journal().open(session, NOBODY).await {
                Ok(writer) => break writer,
                Err(error) if error.kind() == ErrorKind::Busy => {
                    failures += 1;
                    let Some(delay) = backoff.delay(failures, None) else { return Err(error.into()) };
                    tokio::time::sleep(delay).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let body = EntryBody::StateChanged { state: BTreeMap::new(), globals: notes };
        writer.append(vec![Entry::new(NOBODY.into(), now(), body)]).await?;
        Ok(())
    }
}
