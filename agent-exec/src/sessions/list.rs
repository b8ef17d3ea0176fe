//! All sessions of a store.

use std::{fmt, sync::Arc};

use agent_core::{
    Budget, Journal, Result, Window,
    journal::{EntryBody, SessionInfo},
};

use super::{Session, SessionId, edit};

/// The sessions in a store, by user.
///
/// A session exists as soon as a run has written to it. Every run loads it and appends to it;
/// entries are never rewritten.
///
/// ```
/// use agent_core::{MemoryJournal, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_exec::{Agent, SessionId};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([Turn::text("Hello."), Turn::text("Hello.")]);
/// let agent = Agent::builder("assistant", model).store(MemoryJournal::default()).build()?;
/// for user in ["ada", "bob"] {
///     agent.start(RunRequest::user("Hi.").session(SessionId::new(user, "first"))).await?;
/// }
/// let sessions = agent.sessions()?;
/// let ids = sessions.list("ada", None, 20).await?;
/// assert_eq!(ids, [SessionId::new("ada", "first")]);
/// sessions.set_title(&ids[0], "A greeting").await?;
/// assert_eq!(sessions.info(&ids[0]).await?.expect("it is there").title.as_deref(), Some("A greeting"));
/// assert!(sessions.delete(&ids[0]).await?);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Sessions(Arc<dyn Journal>, Budget);

/// Agent id under which titles are written, apart from the runs of all agents.
const TITLE: &str = "";

impl Sessions {
    /// Opens the sessions in `journal`.
    pub fn new(journal: impl Journal) -> Self {
        Self(Arc::new(journal), Budget::default())
    }

    pub(crate) fn of(journal: Arc<dyn Journal>, budget: Budget) -> Self {
        Self(journal, budget)
    }

    /// Returns at most `limit` sessions of `user` after `after`, ordered by name.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn list(&self, user: &str, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionId>> {
        let prefix = SessionId::prefix(user);
        let mut after = after.map(ToString::to_string).unwrap_or_default();
        let mut ids = Vec::new();
        // Names of another form were not created here and are skipped.
        while ids.len() < limit {
            let names = self.0.list(&prefix, &after, limit - ids.len()).await?;
            let Some(last) = names.last() else { break };
            after.clone_from(last);
            ids.extend(names.iter().filter_map(|name| SessionId::parse(name)));
        }
        Ok(ids)
    }

    /// Returns the metadata of a session; `None` if it does not exist. In the stores of this
    /// framework, the cost does not depend on the length of the session.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.0.info(&id.to_string()).await
    }

    /// Sets the title of a session. This also works while a run is in progress.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](agent_core::ErrorKind::Busy) if another title is being written; the
    /// errors of the store.
    pub async fn set_title(&self, id: &SessionId, title: impl Into<String>) -> Result<()> {
        let writer = self.0.open(&id.to_string(), TITLE).await?;
        edit::append(&*writer, &TITLE.into(), [EntryBody::Titled { title: title.into() }]).await
    }

    /// Deletes a session and its contents; returns true if it existed. If the agent has a budget, its
    /// account of the session is deleted too.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](agent_core::ErrorKind::Busy) while a run is in progress; the errors of
    /// the store.
    pub async fn delete(&self, id: &SessionId) -> Result<bool> {
        let name = id.to_string();
        let existed = self.0.delete(&name).await?;
        self.1.forget(Window::Session, &name);
        Ok(existed)
    }

    /// Returns an agent's side of a session. `agent_id` is the agent's name unless the run request
    /// set another id.
    pub fn session(&self, id: &SessionId, agent_id: impl Into<Arc<str>>) -> Session {
        self.named(id, agent_id)
    }

    /// As [`session`](Self::session), for a session with an arbitrary name.
    pub fn named(&self, name: impl Into<Arc<str>>, agent_id: impl Into<Arc<str>>) -> Session {
        Session { journal: self.0.clone(), name: name.into(), agent_id: agent_id.into() }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
