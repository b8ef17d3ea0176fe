//! Runs that a person stopped: they are not gone on with by themselves.
//!
//! What a person wished is kept in the session itself, in the storage that its agents share, so that it holds in every process.

use std::collections::BTreeMap;

use agent::{
    ErrorKind,
    journal::{Entry, EntryBody},
};

use super::{App, FoundRun, live::now};
use crate::error::ApiError;

/// The key of the storage under which the run stands that a person stopped.
const HELD: &str = "agent-server/held";
/// The side of a session that belongs to no agent: a run under way does not keep it.
const NOBODY: &str = "agent-server";

impl App {
    /// Keeps a run from being gone on with by itself.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn hold(&self, run: &FoundRun) -> Result<(), ApiError> {
        self.mark(run.store_name(), Some(run.id())).await
    }

    /// The run is gone on with.
    pub(super) async fn release(&self, run: &FoundRun) -> Result<(), ApiError> {
        if self.held(run.store_name()).await?.is_some() {
            self.mark(run.store_name(), None).await?;
        }
        Ok(())
    }

    /// The run of a session that a person stopped.
    pub(super) async fn held(&self, session: &str) -> Result<Option<String>, ApiError> {
        let index = self.journal().index(session).await?;
        Ok(index.look(|index| index.globals().get(HELD).and_then(|run| run.as_str().map(str::to_owned))))
    }

    async fn mark(&self, session: &str, run: Option<&str>) -> Result<(), ApiError> {
        let globals = BTreeMap::from([(HELD.to_owned(), run.map(Into::into))]);
        let entry = Entry::new(NOBODY.into(), now(), EntryBody::StateChanged { state: BTreeMap::new(), globals });
        let writer = match self.journal().open(session, NOBODY).await {
            Ok(writer) => writer,
            Err(error) if error.kind() == ErrorKind::Busy => {
                return Err(ApiError::conflict("busy", "the run is being stopped already: ask again"));
            }
            Err(error) => return Err(error.into()),
        };
        writer.append(vec![entry]).await?;
        Ok(())
    }
}
