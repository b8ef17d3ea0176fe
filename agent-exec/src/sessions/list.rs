//! All sessions of a store.

use std::{fmt, sync::Arc};

use agent_core::{
    Journal, Result,
    journal::{EntryBody, SessionInfo},
};

use super::{Session, SessionId, edit};

/// The sessions in a store, by user.
///
/// A session is there as soon as a run wrote to it. Every run loads it and appends to it as it goes; nothing is ever written
/// again as a whole.
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
pub struct Sessions(Arc<dyn Journal>);

/// The place under which titles are written: beside the runs of all agents.
const TITLE: &str = "";

impl Sessions {
    /// The sessions in `journal`.
    pub fn new(journal: impl Journal) -> Self {
        Self(Arc::new(journal))
    }

    pub(crate) fn of(journal: Arc<dyn Journal>) -> Self {
        Self(journal)
    }

    /// At most `limit` sessions of `user` after `after`, by name.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, user: &str, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionId>> {
        let prefix = SessionId::prefix(user);
        let mut after = after.map(ToString::to_string).unwrap_or_default();
        let mut ids = Vec::new();
        // A name that is not of this form was not made here: it is passed over.
        while ids.len() < limit {
            let names = self.0.list(&prefix, &after, limit - ids.len()).await?;
            let Some(last) = names.last() else { break };
            after.clone_from(last);
            ids.extend(names.iter().filter_map(|name| SessionId::parse(name)));
        }
        Ok(ids)
    }

    /// What is known of a session; `None` if there is none. It costs the same for a long session as for a short one, in the
    /// stores that come with the framework.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        self.0.info(&id.to_string()).await
    }

    /// Gives a session a title, whether a run is under way or not.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](agent_core::ErrorKind::Busy) if another title is just being written; those of the store.
    pub async fn set_title(&self, id: &SessionId, title: impl Into<String>) -> Result<()> {
        let writer = self.0.open(&id.to_string(), TITLE).await?;
        edit::append(&*writer, &TITLE.into(), [EntryBody::Titled { title: title.into() }]).await
    }

    /// Deletes a session and everything in it; true if there was one.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](agent_core::ErrorKind::Busy) while a run is under way; those of the store.
    pub async fn delete(&self, id: &SessionId) -> Result<bool> {
        self.0.delete(&id.to_string()).await
    }

    /// An agent's side of a session. The agent is known by its id there, which is its name unless a request said otherwise.
    pub fn session(&self, id: &SessionId, agent_id: impl Into<Arc<str>>) -> Session {
        self.named(id, agent_id)
    }

    /// As [`session`](Self::session), of a session that an application named in a way of its own.
    pub fn named(&self, name: impl Into<Arc<str>>, agent_id: impl Into<Arc<str>>) -> Session {
        Session { journal: self.0.clone(), name: name.into(), agent_id: agent_id.into() }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
