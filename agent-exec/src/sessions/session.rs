//! One agent's side of a session, outside of runs.

use std::{fmt, sync::Arc};

use agent_core::{
    Checkpoint, Error, ErrorKind, History, Journal, Message, Result,
    history::{Repair, ReplaceReason},
    journal::{EntryBody, JournalWriter, Liveness, RunRecord, SessionIndex, SessionView, liveness_of},
};

use super::edit;

/// One agent's side of a session, outside of runs: reads and edits the conversation, and returns
/// incomplete runs.
///
/// An edit is written as a separate run that ends at once. It fails with [`ErrorKind::Busy`] while
/// a run is in progress. It supersedes a run that waits for an answer, which can then no longer be
/// resumed. Nothing is ever removed from the journal, so every edit can be undone.
///
/// ```
/// use agent_core::{MemoryJournal, Message, RunRequest, testing::{ScriptedModel, Turn}};
/// use agent_exec::{Agent, SessionId};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let model = ScriptedModel::new([Turn::text("Hello."), Turn::text("Bees.")]);
/// let agent = Agent::builder("assistant", model).store(MemoryJournal::default()).build()?;
/// let id = SessionId::new("ada", "garden");
/// agent.start(RunRequest::user("Hi.").session(&id)).await?;
/// agent.start(RunRequest::user("What hums?").session(&id)).await?;
///
/// let session = agent.sessions()?.session(&id, "assistant");
/// let runs = session.runs().await?;
/// assert_eq!(runs[1].first_message.as_deref(), Some("What hums?"));
/// session.undo(&runs[1].run_id).await?;
/// session.append(Message::user("I keep bees.")).await?;
/// let said: Vec<_> = session.history().await?.iter().map(Message::text).collect();
/// assert_eq!(said, ["Hi.", "Hello.", "I keep bees."]);
/// # Ok::<(), agent_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Session {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) name: Arc<str>,
    pub(super) agent_id: Arc<str>,
}

impl Session {
    // --- reading ---

    /// Returns the conversation.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn history(&self) -> Result<History> {
        Ok(self.view().await?.history)
    }

    /// Returns the conversation, the shared storage, the usage, and the status of the newest run.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn view(&self) -> Result<SessionView> {
        self.look(|index| index.view(&self.agent_id)).await
    }

    /// Returns the agent's runs, including edits, oldest first.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn runs(&self) -> Result<Vec<RunRecord>> {
        Ok(self.journal.whole_index(&self.name).await?.look(|index| index.runs(&self.agent_id).to_vec()))
    }

    /// Returns the checkpoint of the newest run if it is incomplete, including the questions that
    /// it waits for. Any process can resume it with
    /// [`RunRequest::recover`](agent_core::RunRequest::recover).
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn unfinished(&self) -> Result<Option<Checkpoint>> {
        self.look(|index| index.unfinished(&self.agent_id)).await
    }

    // --- editing ---

    /// Appends a message; returns the edit's id.
    ///
    /// # Errors
    /// [`ErrorKind::History`] for a tool result, a message with calls (see
    /// [`extend`](Self::extend)) or an empty message; [`ErrorKind::Busy`]; the errors of the store.
    pub async fn append(&self, message: Message) -> Result<Arc<str>> {
        let mut history = History::default();
        history.push(message)?;
        self.write(None, edit::messages(&history)).await
    }

    /// As [`append`](Self::append), but idempotent: `key` is the edit's id, and if the session
    /// already has an edit of this id, nothing is written. Callers that do not know whether their
    /// message arrived can send it again, even after the edit was undone.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn append_once(&self, key: impl Into<Arc<str>>, message: Message) -> Result<Arc<str>> {
        let mut history = History::default();
        history.push(message)?;
        self.write(Some(key.into()), edit::messages(&history)).await
    }

    /// Appends messages atomically and repairs unpaired ones; returns the edit's id and the
    /// repairs.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]; the errors of the store.
    pub async fn extend(&self, messages: impl IntoIterator<Item = Message>) -> Result<(Arc<str>, Vec<Repair>)> {
        let (history, repairs) = History::import(messages);
        Ok((self.write(None, edit::messages(&history)).await?, repairs))
    }

    /// Replaces the conversation; returns the edit's id.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]; the errors of the store.
    pub async fn replace(&self, history: History, reason: impl Into<ReplaceReason>) -> Result<Arc<str>> {
        let writer = self.open().await?;
        let before = self.history().await?.len();
        let replaced = EntryBody::HistoryReplaced { reason: reason.into(), before, history };
        edit::write(&*writer, edit::ids(&self.name, &self.agent_id), vec![replaced]).await
    }

    /// Clears the conversation on behalf of the user; returns the edit's id.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]; the errors of the store.
    pub async fn clear(&self) -> Result<Arc<str>> {
        self.replace(History::default(), ReplaceReason::UserClear).await
    }

    /// Reverts the conversation to the state before a run of this agent, or before an edit: later
    /// messages are removed, and content that was replaced since is restored. The shared storage
    /// and the usage do not change.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the agent has no run of that id, in which case nothing is written;
    /// [`ErrorKind::Busy`]; the errors of the store.
    pub async fn undo(&self, before_run: &str) -> Result<()> {
        let writer = self.open().await?;
        let runs = self.runs().await?;
        let Some(run) = runs.iter().find(|run| *run.run_id == *before_run) else {
            let (session, agent) = (&self.name, &self.agent_id);
            return Err(Error::config(format!("agent '{agent}' has no run '{before_run}' in session '{session}'")));
        };
        let undone = EntryBody::Undone { before_run: run.run_id.clone() };
        edit::append(&*writer, &run.run_id, [undone]).await
    }

    async fn write(&self, key: Option<Arc<str>>, bodies: Vec<EntryBody>) -> Result<Arc<str>> {
        let writer = self.open().await?;
        let mut ids = edit::ids(&self.name, &self.agent_id);
        if let Some(key) = key {
            (ids.run_id, ids.root_run_id) = (key.clone(), key);
            // The open writer excludes other writers.
            if liveness_of(&*self.journal, &ids).await? != Liveness::Unknown {
                return Ok(ids.run_id);
            }
        }
        edit::write(&*writer, ids, bodies).await
    }

    async fn look<R>(&self, look: impl FnOnce(&SessionIndex) -> R) -> Result<R> {
        Ok(self.journal.index(&self.name).await?.look(look))
    }

    async fn open(&self) -> Result<Arc<dyn JournalWriter>> {
        self.journal.open(&self.name, &self.agent_id).await.map_err(|e| match e.kind() {
            ErrorKind::Busy => e.map_message(|m| format!("{m}: edit the session when the run is over")),
            _ => e,
        })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).field("agent_id", &self.agent_id).finish_non_exhaustive()
    }
}
