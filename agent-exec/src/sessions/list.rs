//! All sessions of a store.

use std::{fmt, sync::Arc};

use agent_core::{Entry, EntryBody, Journal, Result, each_entry};

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

/// What is known of a session without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The newest title that it was given.
    pub title: Option<String>,
    /// When it was created: milliseconds since 1970, UTC.
    pub created: u64,
    /// When something was last written to it: milliseconds since 1970, UTC.
    pub updated: u64,
    /// Entries in its journal.
    pub entries: u64,
    /// Runs of agents at the top, edits among them; runs below others do not count.
    pub runs: u64,
    /// The agents at the top, by id, in the order in which they came.
    pub agents: Vec<Arc<str>>,
}

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

    /// What is known of a session; `None` if there is none. Reads the whole session.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        let mut info = SessionInfo::default();
        each_entry(&*self.0, &id.to_string(), |entry| info.apply(entry)).await?;
        Ok((info.entries > 0).then_some(info))
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

impl SessionInfo {
    fn apply(&mut self, entry: &Entry) {
        if self.entries == 0 {
            self.created = entry.time;
        }
        self.entries += 1;
        self.updated = self.updated.max(entry.time);
        match &entry.body {
            EntryBody::Titled { title } => self.title = Some(title.clone()),
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() => {
                self.runs += 1;
                if !self.agents.contains(&ids.agent_id) {
                    self.agents.push(ids.agent_id.clone());
                }
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
