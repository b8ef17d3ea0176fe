//! The journal of a team: appends commands and folds them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use agent_core::{
    Error, ErrorKind, Journal, Result, RunIds,
    journal::{Entry, EntryBody, JournalWriter, RunStatus},
    run::{Clock, new_id},
};
use tokio::sync::watch;

use crate::{
    command::{Command, Outcome, TeamEntry},
    event::{TeamChange, Watchers},
    mail::Actor,
    state::TeamState,
};

/// Name under which commands are recorded as decisions of the team's run.
const NAME: &str = "team";
pub(crate) const PAGE: usize = 500;

/// Author of a command, with its idempotency key and the turn in which it acts.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub(crate) by: Actor,
    pub(crate) turn: Option<Arc<str>>,
    pub(crate) key: Option<String>,
}

impl Author {
    pub(crate) fn new(by: Actor) -> Self {
        Self { by, turn: None, key: None }
    }

    pub(crate) fn keyed(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// The log of one team session as one process sees it. Commands of all processes are folded in the
/// order of the journal.
pub(crate) struct TeamLog {
    journal: Arc<dyn Journal>,
    session: Arc<str>,
    team: Arc<str>,
    writer: Arc<dyn JournalWriter>,
    clock: Clock,
    /// Identifies the entries of this writer.
    origin: Arc<str>,
    next: AtomicU64,
    folded: Mutex<Folded>,
    /// Sequence number of the newest applied entry; changes while `folded` is locked.
    seq: watch::Sender<u64>,
    watchers: Watchers,
}

#[derive(Default)]
struct Folded {
    state: TeamState,
    /// Outcomes that this process waits for, by the number of the entry.
    waiting: HashMap<u64, Option<Outcome>>,
}

impl TeamLog {
    /// Opens a log for appending. `writer` names the writer: the team for its driver, anything else
    /// for a client.
    pub(crate) async fn open(
        journal: Arc<dyn Journal>,
        session: Arc<str>,
        team: Arc<str>,
        writer: &str,
        clock: Clock,
        watchers: Watchers,
    ) -> Result<Self> {
        let writer = journal.open(&session, writer).await?;
        let log = Self {
            journal,
            session,
            team,
            writer,
            clock,
            origin: new_id().into(),
            next: AtomicU64::new(1),
            folded: Mutex::default(),
            seq: watch::channel(0).0,
            watchers,
        };
        log.catch_up().await?;
        Ok(log)
    }

    pub(crate) fn session(&self) -> &Arc<str> {
        &self.session
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Returns a part of the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&TeamState) -> T) -> T {
        look(&self.folded().state)
    }

    /// Notifies of applied entries: the sequence number of the newest one.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.seq.subscribe()
    }

    /// Sequence number of the newest applied entry.
    pub(crate) fn seq(&self) -> u64 {
        *self.seq.borrow()
    }

    /// Appends a command, and returns its outcome once it is durable and applied.
    ///
    /// # Errors
    /// Those of the journal. Whether the command was appended is unknown then.
    pub(crate) async fn submit(&self, author: Author, command: Command) -> Result<Outcome> {
        let before = match &command {
            Command::Start { run, .. } => vec![self.started(run)],
            _ => Vec::new(),
        };
        let run = match &command {
            Command::Start { run, .. } => run.clone(),
            _ => self.look(|state| state.run().cloned()).unwrap_or_default(),
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let origin = (self.origin.clone(), number);
        let Author { by, turn, key } = author;
        let entry = TeamEntry { key, by, turn, time: self.now(), origin, command };
        let value = serde_json::to_value(&entry)
            .map_err(|e| Error::new(ErrorKind::Store, "the command cannot be stored as JSON").with_source(e))?;
        let decided = EntryBody::Decided { name: NAME.into(), value, beginning: false };
        self.folded().waiting.insert(number, None);
        let entries = before.into_iter().chain([Entry::new(run, entry.time, decided)]).collect();
        let appended = match self.writer.append(entries).await {
            Ok(_) => self.catch_up().await,
            Err(e) => Err(e),
        };
        let outcome = self.folded().waiting.remove(&number).flatten();
        appended?;
        outcome.ok_or_else(|| Error::new(ErrorKind::Store, "the journal did not return an acknowledged entry"))
    }

    /// Records that the team's run ended or was suspended, for readers of the session's runs.
    pub(crate) async fn record_ended(&self, run: &Arc<str>, status: RunStatus, error: Option<&str>) -> Result<()> {
        // The usage is that of the members' sessions.
        let (usage, error) = (Box::default(), error.map(Into::into));
        self.record(run, EntryBody::RunEnded { status, usage, error, answer: None }).await
    }

    /// Records that the team's run resumed.
    pub(crate) async fn record_resumed(&self, run: &Arc<str>) -> Result<()> {
        self.record(run, EntryBody::RunResumed { ids: self.ids(run), attempt: self.origin.to_string() }).await
    }

    async fn record(&self, run: &Arc<str>, body: EntryBody) -> Result<()> {
        self.writer.append(vec![Entry::new(run.clone(), self.now(), body)]).await?;
        self.catch_up().await
    }

    fn started(&self, run: &Arc<str>) -> Entry {
        Entry::new(run.clone(), self.now(), EntryBody::RunStarted { ids: self.ids(run), fingerprint: String::new() })
    }

    fn ids(&self, run: &Arc<str>) -> Arc<RunIds> {
        let mut ids = RunIds::root(self.team.clone(), self.session.clone());
        (ids.run_id, ids.root_run_id) = (run.clone(), run.clone());
        Arc::new(ids)
    }

    /// Applies all entries that the journal has. No lock is held while entries are read: a reader that is
    /// not polled delays nobody.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        loop {
            let page = self.journal.read(&self.session, self.seq(), PAGE).await?;
            let parsed = page.iter().map(|entry| Ok((entry.seq, parse(entry)?))).collect::<Result<Vec<_>>>()?;
            self.apply(parsed);
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Applies the entries of a page that were not applied meanwhile.
    fn apply(&self, page: Vec<(u64, Option<TeamEntry>)>) {
        let mut folded = self.folded();
        let applied = self.seq();
        for (seq, entry) in page.into_iter().filter(|(seq, _)| *seq > applied) {
            if let Some(entry) = entry {
                self.apply_entry(&mut folded, seq, &entry);
            }
            self.seq.send_replace(seq);
        }
    }

    fn apply_entry(&self, folded: &mut Folded, seq: u64, entry: &TeamEntry) {
        let was_open = folded.state.is_open();
        let is_repeated = folded.state.is_repeated(entry);
        let outcome = folded.state.apply(entry);
        if self.watchers.has_any() && !is_repeated {
            TeamChange::of(entry, &outcome).into_iter().for_each(|change| self.watchers.publish(seq, &change));
            if let Some(reason) = folded.state.reason().filter(|_| was_open) {
                self.watchers.publish(seq, &TeamChange::Ended { reason: reason.clone() });
            }
        }
        if entry.origin.0 == self.origin
            && let Some(waiting) = folded.waiting.get_mut(&entry.origin.1)
        {
            *waiting = Some(outcome);
        }
    }

    fn folded(&self) -> MutexGuard<'_, Folded> {
        self.folded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the command of an entry; `None` for other entries of the session.
pub(crate) fn parse(entry: &Entry) -> Result<Option<TeamEntry>> {
    let EntryBody::Decided { name, value, .. } = &entry.body else { return Ok(None) };
    if name != NAME {
        return Ok(None);
    }
    let unreadable = |e| Error::new(ErrorKind::Store, "an entry of the team cannot be read").with_source(e);
    <TeamEntry as serde::Deserialize>::deserialize(value).map(Some).map_err(unreadable)
}
