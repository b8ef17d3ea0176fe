//! Programs elsewhere that are told what becomes of a run.
//!
//! Who is to be told is [noted](super::Notes) of the run's session, sealed, before the run's start is answered, and with it what was told last. So a message
//! is sent by whichever process finds the run at rest, at least once; a receiver knows one that came before by its id, which follows from
//! what happened.

mod deliver;

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use agent::{SessionId, journal::RunStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{App, FoundRun, RunView};
use crate::{
    caller::Caller,
    error::ApiError,
    webhooks::{Hook, Teller},
};

/// What the keys of notes begin with.
const PREFIX: &str = "agent-server/webhooks/";

/// How other protocols have a run told.
pub(crate) type Written = fn(&RunView) -> Value;

/// Telling programs elsewhere of runs.
pub(crate) struct Hooks {
    pub(super) teller: Teller,
    /// A run as Agent2Agent has it.
    task: Written,
    /// The notes that are being acted on here; true if something happened to the run meanwhile.
    busy: Mutex<HashMap<String, bool>>,
}

/// A note: who is told, and the id of what was told last.
#[derive(Serialize, Deserialize)]
struct Note {
    sealed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

impl Hooks {
    pub(crate) fn new(teller: Teller, task: Written) -> Self {
        Self { teller, task, busy: Mutex::default() }
    }

    /// Takes a note for one who acts on it; if somebody does already, he is told to look again.
    fn claim(&self, key: &str) -> bool {
        match self.busy.lock().unwrap_or_else(PoisonError::into_inner).entry(key.to_owned()) {
            Entry::Occupied(mut taken) => {
                taken.insert(true);
                false
            }
            Entry::Vacant(free) => {
                free.insert(false);
                true
            }
        }
    }

    /// Gives a note back; false if there is more to do.
    fn release(&self, key: &str) -> bool {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.get_mut(key) {
            Some(again) if *again => {
                *again = false;
                false
            }
            _ => {
                busy.remove(key);
                true
            }
        }
    }
}

impl App {
    /// The secret by which the caller's tenant knows messages of this server's; none if it sends none.
    pub(crate) fn webhook_secret(&self, caller: &Caller) -> Option<String> {
        self.0.hooks.as_ref().map(|hooks| hooks.teller.secrets.of_tenant(caller.tenant()))
    }

    /// What it takes to tell programs elsewhere.
    ///
    /// # Errors
    /// 400 if the server does not.
    fn hooks(&self) -> Result<&Arc<Hooks>, ApiError> {
        let none = || ApiError::invalid("this server sends no webhooks: its operator has set no secret for them");
        self.0.hooks.as_ref().ok_or_else(none)
    }

    /// Checks that an address may be told.
    ///
    /// # Errors
    /// 400 if it may not, or if this server tells nobody.
    pub(crate) async fn check_hook(&self, hook: &Hook) -> Result<(), ApiError> {
        match self.hooks()?.teller.outbound.check(&hook.to.url).await {
            // A name that cannot be resolved now may be later.
            Err(error) if !error.is_retryable() => Err(ApiError::invalid(format!("the webhook: {}", error.message()))),
            _ => Ok(()),
        }
    }

    /// Has programs told what becomes of a run. One of the same id takes the place of the one before.
    ///
    /// # Errors
    /// 400 if this server tells nobody; those of the store.
    pub(crate) async fn hook(&self, run: &FoundRun, told: Vec<Hook>) -> Result<(), ApiError> {
        self.write_hooks(run, told).await?;
        self.tell_when_at_rest(run);
        Ok(())
    }

    /// As [`hook`](Self::hook), and has those told who are told of every run of the caller's.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn hook_usual(&self, caller: &Caller, run: &FoundRun, told: Vec<Hook>) -> Result<(), ApiError> {
        if self.note_hooks(caller, run, told).await? {
            self.tell_when_at_rest(run);
        }
        Ok(())
    }

    /// Notes who is told of a run: these, and those who are told of every run of the caller's, if they are not noted already. False if that is nobody.
    ///
    /// # Errors
    /// As [`hook`](Self::hook).
    pub(super) async fn note_hooks(
        &self,
        caller: &Caller,
        run: &FoundRun,
        mut told: Vec<Hook>,
    ) -> Result<bool, ApiError> {
        let mut usual = self.usual_hooks(caller);
        if !usual.is_empty() {
            let noted = self.notes_of(run.store_name(), run.id()).await?;
            // Of one that is over they were told, and their notes are gone.
            let is_over =
                !run.is_new() && matches!(run.record().await?.and_then(|run| run.status), Some(RunStatus::Finished(_)));
            usual.retain(|hook| !is_over && !noted.contains_key(&key(run.id(), &hook.id)));
        }
        told.extend(usual);
        let is_told = !told.is_empty();
        if is_told {
            self.write_hooks(run, told).await?;
        }
        Ok(is_told)
    }

    /// Takes back who is told of a run that nobody took, and its session if that is all there is of it.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn forget_hooks(&self, run: &FoundRun) -> Result<(), ApiError> {
        let (journal, session) = (self.journal(), run.store_name());
        let notes = self.notes_of(session, run.id()).await?;
        self.note(session, notes.into_keys().map(|key| (key, None)).collect()).await?;
        let info = journal.info(session).await?;
        let is_empty = info.is_some_and(|info| info.runs == 0 && info.title.is_none());
        if self.0.queue.is_some() && is_empty && self.noted(session, "").await?.is_empty() {
            journal.delete(session).await?;
        }
        Ok(())
    }

    async fn write_hooks(&self, run: &FoundRun, told: Vec<Hook>) -> Result<(), ApiError> {
        let hooks = self.hooks()?;
        let mut notes = BTreeMap::new();
        for hook in told {
            let note = Note { sealed: hooks.teller.secrets.seal(&hook)?, told: None };
            notes.insert(key(run.id(), &hook.id), Some(serde_json::json!(note)));
        }
        self.note(run.store_name(), notes).await
    }

    /// Those who are told of every run of the caller's.
    fn usual_hooks(&self, caller: &Caller) -> Vec<Hook> {
        let Some(hooks) = &self.0.hooks else { return Vec::new() };
        let of_key = caller.told().map(|webhook| Hook::of("key", webhook.clone()));
        hooks.teller.hooks.iter().cloned().chain(of_key).collect()
    }

    /// Those who are told of a run.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn hooks_of(&self, run: &FoundRun) -> Result<Vec<Hook>, ApiError> {
        let Some(hooks) = &self.0.hooks else { return Ok(Vec::new()) };
        let notes = self.notes_of(run.store_name(), run.id()).await?;
        Ok(notes.into_values().filter_map(|note| hooks.teller.secrets.open(&note.sealed)).collect())
    }

    /// Has a program told no more.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn unhook(&self, run: &FoundRun, id: &str) -> Result<(), ApiError> {
        self.note(run.store_name(), BTreeMap::from([(key(run.id(), id), None)])).await
    }

    /// Tells what is not told yet of the runs of a session that are at rest; true if there is something.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn tell_left(&self, caller: &Caller, session: &SessionId) -> Result<bool, ApiError> {
        if self.0.hooks.is_none() {
            return Ok(false);
        }
        let notes = self.noted(&session.to_string(), PREFIX).await?;
        let mut runs: Vec<&str> = notes.keys().filter_map(|key| key[PREFIX.len()..].split('/').next()).collect();
        runs.dedup();
        let mut is_left = false;
        for id in runs {
            let run = match self.run(caller, id, Some(session.session())).await {
                // It never began, or was another session's before this one was forked. One that is about to be handed over may be given up before it begins.
                Err(error) if error.status() == http::StatusCode::NOT_FOUND => {
                    is_left |= self.dispatch().is_some();
                    continue;
                }
                found => found?,
            };
            if run.handle().is_none() {
                is_left |= self.tell(&run).await?;
            }
        }
        Ok(is_left)
    }

    /// The notes of a run, by their keys.
    async fn notes_of(&self, session: &str, run: &str) -> Result<BTreeMap<String, Note>, ApiError> {
        let notes = self.noted(session, &key(run, "")).await?.into_iter();
        Ok(notes.filter_map(|(key, note)| Some((key, Note::deserialize(note).ok()?))).collect())
    }
}

fn key(run: &str, hook: &str) -> String {
    format!("{PREFIX}{run}/{hook}")
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("teller", &self.teller).finish_non_exhaustive()
    }
}
