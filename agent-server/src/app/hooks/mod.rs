//! Webhooks of runs.
//!
//! The webhooks of a run are [persisted](super::Notes) in its session, encrypted, before the start
//! of the run is acknowledged, together with the id of the last delivered message. Any process that
//! finds the run stopped delivers the message, at least once; receivers detect duplicates by the
//! message id, which is derived from the event.

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
    webhooks::{Hook, Teller, Version},
};

/// Prefix of the keys of webhooks.
const PREFIX: &str = "agent-server/webhooks/";

/// Payload format of another protocol.
pub(crate) type Written = fn(&RunView, Version) -> Value;

/// Webhook state of the server.
pub(crate) struct Hooks {
    pub(super) teller: Teller,
    /// Task format of Agent2Agent.
    task: Written,
    /// Webhooks in processing; true if something happened to the run meanwhile.
    busy: Mutex<HashMap<String, bool>>,
}

/// Persisted webhook, with the id of the last delivered message.
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

    /// Claims a webhook for processing; if it is already claimed, marks it for another pass.
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

    /// Releases a webhook. Returns `false` if another pass is needed.
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
    /// Returns the secret that verifies messages to the caller's tenant; none if webhooks are
    /// disabled.
    pub(crate) fn webhook_secret(&self, caller: &Caller) -> Option<String> {
        self.0.hooks.as_ref().map(|hooks| hooks.teller.secrets.of_tenant(caller.tenant()))
    }

    /// Returns the webhook state.
    ///
    /// # Errors
    /// 400 if webhooks are disabled.
    fn hooks(&self) -> Result<&Arc<Hooks>, ApiError> {
        let none = || ApiError::invalid("webhooks are disabled: the server has no webhook secret");
        self.0.hooks.as_ref().ok_or_else(none)
    }

    /// Checks that a webhook's address is allowed.
    ///
    /// # Errors
    /// 400 if the address is not allowed, or webhooks are disabled.
    pub(crate) async fn check_hook(&self, hook: &Hook) -> Result<(), ApiError> {
        match self.hooks()?.teller.outbound.check(&hook.to.url).await {
            // A name that cannot be resolved now may be later.
            Err(error) if !error.is_retryable() => Err(ApiError::invalid(format!("the webhook: {}", error.message()))),
            _ => Ok(()),
        }
    }

    /// Adds webhooks to a run. A webhook of the same id is replaced.
    ///
    /// # Errors
    /// 400 if webhooks are disabled; the errors of the store.
    pub(crate) async fn hook(&self, run: &FoundRun, told: Vec<Hook>) -> Result<(), ApiError> {
        self.write_hooks(run, told).await?;
        self.tell_when_at_rest(run);
        Ok(())
    }

    /// Persists these webhooks of a run and the caller's default ones, unless they are already
    /// persisted. Returns `false` if the run has no webhooks.
    ///
    /// # Errors
    /// The errors of [`hook`](Self::hook).
    pub(super) async fn note_hooks(
        &self,
        caller: &Caller,
        run: &FoundRun,
        mut told: Vec<Hook>,
    ) -> Result<bool, ApiError> {
        let mut usual = self.usual_hooks(caller);
        if !usual.is_empty() {
            let noted = self.notes_of(run.store_name(), run.id()).await?;
            // Their events of a finished run were delivered, and the webhooks are gone.
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

    /// Deletes the webhooks of a run that was not accepted, and its session if that contains
    /// nothing else.
    ///
    /// # Errors
    /// The errors of the store.
    pub(super) async fn forget_hooks(&self, run: &FoundRun) -> Result<(), ApiError> {
        let (journal, session) = (self.journal(), run.store_name());
        let notes = self.notes_of(session, run.id()).await?;
        self.note(session, notes.into_keys().map(|key| (key, None)).collect()).await?;
        let info = journal.info(session).await?;
        let is_empty = info.is_some_and(|info| info.runs == 0 && info.title.is_none());
        if (self.0.queue.is_some() || self.remote().is_none()) && is_empty && self.noted(session, "").await?.is_empty()
        {
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

    /// Returns the default webhooks for the caller's runs.
    fn usual_hooks(&self, caller: &Caller) -> Vec<Hook> {
        let Some(hooks) = &self.0.hooks else { return Vec::new() };
        let of_key = caller.told().map(|webhook| Hook::of("key", webhook.clone()));
        hooks.teller.hooks.iter().cloned().chain(of_key).collect()
    }

    /// Returns the webhooks of a run.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) async fn hooks_of(&self, run: &FoundRun) -> Result<Vec<Hook>, ApiError> {
        let Some(hooks) = &self.0.hooks else { return Ok(Vec::new()) };
        let notes = self.notes_of(run.store_name(), run.id()).await?;
        Ok(notes.into_values().filter_map(|note| hooks.teller.secrets.open(&note.sealed)).collect())
    }

    /// Removes a webhook of a run.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) async fn unhook(&self, run: &FoundRun, id: &str) -> Result<(), ApiError> {
        self.note(run.store_name(), BTreeMap::from([(key(run.id(), id), None)])).await
    }

    /// Delivers the outstanding webhooks of the stopped runs of a session. Returns `true` if there
    /// are some.
    ///
    /// # Errors
    /// The errors of the store.
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
                // The run never began, or belonged to another session before this one was forked.
                // One that is about to be dispatched may become a dead letter before it begins.
                Err(error) if error.status() == http::StatusCode::NOT_FOUND => {
                    is_left |= self.remote().is_some();
                    continue;
                }
                found => found?,
            };
            if !run.is_live() {
                is_left |= self.tell(&run).await?;
            }
        }
        Ok(is_left)
    }

    /// Returns the webhooks of a run, by key.
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
