//! Recovery of runs after the death of a process.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use agent::{
    ErrorKind, SessionId,
    dispatch::{Job, RunAddress},
    journal::{RunQuery, RunStatus as Status, SessionQuery},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::{App, brought::PersistedRequest, drained::is_drained};
use crate::{caller::Caller, clock::now, error::ApiError};

/// Numbers of entries of the sessions without stopped runs.
type Looked = HashMap<String, u64>;

/// Number of sessions and runs that are read at once.
const PAGE: usize = 500;
/// Maximum number of concurrently resumed runs: a restart must not overload the models.
const AT_ONCE: usize = 32;
/// Pause between two resumptions.
const PACE: Duration = Duration::from_millis(20);
/// Interval of the search while a run may be leased by a dead process.
const SOON: Duration = Duration::from_secs(2);
/// Interval of the search otherwise.
const LATER: Duration = Duration::from_secs(60);
/// Interval of the search of all sessions. Other searches look only at incomplete runs, and at
/// sessions that were active recently.
const WHOLE: Duration = Duration::from_secs(30 * 60);
/// Time since the last activity of the sessions that every search looks at.
const RECENT: Duration = Duration::from_secs(15 * 60);

impl App {
    /// Resumes stopped runs and delivers outstanding webhooks, periodically, until the server
    /// drains.
    pub(crate) async fn keep_recovering(&self) {
        if self.remote().is_some() && self.0.hooks.is_none() {
            return; // the backend resumes the runs, and there are no webhooks
        }
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let (mut looked, mut whole) = (HashMap::new(), None::<Instant>);
        while !self.is_draining() {
            // A backend without a queue answers by reading every session.
            let has_summaries = self.remote().is_none() || self.0.queue.is_some();
            let is_whole = !has_summaries || whole.is_none_or(|at| at.elapsed() >= WHOLE);
            let recovered = match is_whole {
                true => self.recover_all(&permits, &mut looked).await,
                false => self.recover_recent(&permits, &mut looked).await,
            };
            let is_held = match recovered {
                Ok(is_held) => {
                    whole = if is_whole { Some(Instant::now()) } else { whole };
                    is_held
                }
                Err(error) => {
                    tracing::warn!(%error, "the store could not be searched for stopped runs");
                    true
                }
            };
            sleep(if is_held { SOON } else { LATER }).await;
        }
    }

    /// Resumes the stopped runs of all sessions. Returns `true` if another process may still drive
    /// one of them. `looked` contains the sessions without stopped runs, with the number of their
    /// entries.
    async fn recover_all(&self, permits: &Arc<Semaphore>, looked: &mut Looked) -> Result<bool, ApiError> {
        let (mut after, mut is_held, mut seen) = (String::new(), false, HashMap::new());
        loop {
            let names = self.journal().list("", &after, PAGE).await?;
            let Some(last) = names.last() else { break };
            after.clone_from(last);
            for name in names {
                is_held |= self.recover_in(&name, permits, looked).await?;
                if self.is_draining() {
                    return Ok(false);
                }
                seen.extend(looked.remove_entry(&name));
            }
        }
        *looked = seen; // without deleted sessions
        Ok(is_held)
    }

    /// Like [`recover_all`](Self::recover_all), of sessions with incomplete runs and of those that
    /// were active recently: a queued run may be all that a session waits for.
    async fn recover_recent(&self, permits: &Arc<Semaphore>, looked: &mut Looked) -> Result<bool, ApiError> {
        let mut names = BTreeSet::new();
        let mut runs = RunQuery::incomplete().limit(PAGE);
        loop {
            let page = self.journal().runs(&runs).await?;
            let Some(last) = page.last() else { break };
            runs = runs.before(last);
            names.extend(page.into_iter().map(|run| run.session));
        }
        let since = now().saturating_sub(u64::try_from(RECENT.as_millis()).unwrap_or(u64::MAX));
        let mut sessions = SessionQuery::default().limit(PAGE);
        loop {
            let page = self.journal().recent(&sessions).await?;
            let Some(last) = page.last() else { break };
            let is_last = last.info.active < since;
            sessions = sessions.before(last.info.active, last.session.as_str());
            names.extend(page.into_iter().filter(|one| one.info.active >= since).map(|one| one.session));
            if is_last {
                break;
            }
        }
        let mut is_held = false;
        for name in names {
            is_held |= self.recover_in(&name, permits, looked).await?;
            if self.is_draining() {
                return Ok(false);
            }
        }
        Ok(is_held)
    }

    /// Resumes the stopped runs of a session. Returns `true` if another process may still drive one
    /// of them.
    async fn recover_in(&self, name: &str, permits: &Arc<Semaphore>, looked: &mut Looked) -> Result<bool, ApiError> {
        let Some(id) = SessionId::parse(name) else { return Ok(false) };
        let Some(info) = self.journal().info(name).await? else { return Ok(false) };
        if looked.get(name) == Some(&info.entries) {
            return Ok(false);
        }
        let mut is_quiet = true;
        // An unreadable session must not prevent the others from being resumed.
        let stopped = self.stopped(&id).await.unwrap_or_else(|error| {
            tracing::warn!(session = name, %error, "a session could not be searched for stopped runs");
            is_quiet = false;
            Vec::new()
        });
        if self.tell_left(&Caller::new(id.user(), "recovery"), &id).await.unwrap_or(true) {
            is_quiet = false;
        }
        for (at, queued) in stopped {
            if self.is_draining() {
                return Ok(false);
            }
            is_quiet = false;
            if !self.recover_one(&at, queued, permits).await {
                return Ok(true); // queued runs of this session wait for this one
            }
        }
        if is_quiet {
            looked.insert(name.to_owned(), info.entries);
        }
        Ok(false)
    }

    /// Resumes a run, or starts a queued one. Returns `false` if another process may still drive it.
    async fn recover_one(&self, at: &RunAddress, queued: Option<Job>, permits: &Arc<Semaphore>) -> bool {
        let Ok(permit) = permits.clone().acquire_owned().await else { return true };
        sleep(PACE).await;
        let (run, is_begun) = (&at.run, queued.is_none());
        let recovered = match queued {
            Some(job) => self.dispatch().dispatch(job).await.map(drop),
            None => self.dispatch().answer(at, BTreeMap::new()).await,
        };
        match recovered {
            Ok(()) => {
                tracing::info!(%run, agent = &*at.agent, "a stopped run was resumed");
                let found = self.found(at);
                if is_begun {
                    self.tell_when_at_rest(&found);
                }
                tokio::spawn(async move {
                    found.ended_here().await;
                    drop(permit);
                });
                true
            }
            Err(error) if error.kind() == ErrorKind::Busy => false,
            Err(error) => {
                tracing::warn!(%run, %error, "a stopped run could not be resumed");
                true
            }
        }
    }

    /// Returns the runs of a session that are neither active here nor suspended: their process died
    /// or drained. Those that have not begun come with their jobs.
    async fn stopped(&self, id: &SessionId) -> Result<Vec<(RunAddress, Option<Job>)>, ApiError> {
        if self.remote().is_some() {
            return Ok(Vec::new()); // the backend resumes them
        }
        let name = id.to_string();
        let index = self.journal().index(&name).await?;
        let is_here = |run: &str| self.0.local.find(id.user(), Some(&name), run).is_some_and(|run| !run.is_over());
        let mut stopped = Vec::new();
        for agent in &self.0.agents.names() {
            let Some(ids) = index.look(|index| index.unfinished(agent).map(|open| open.ids)) else { continue };
            let goes_on =
                index.look(|index| match index.run(&ids.run_id).and_then(|(_, record)| record.status.as_ref()) {
                    None => true,
                    Some(Status::Paused | Status::Cancelled) => is_drained(index, &ids.run_id),
                    Some(_) => false,
                });
            if goes_on && !is_here(&ids.run_id) {
                stopped.push((RunAddress::new(agent.as_str(), name.as_str(), ids.run_id), None));
            }
        }
        for (run, kept) in index.look(PersistedRequest::waiting) {
            if let Some(job) = kept.job()?.filter(|job| !is_here(&run) && self.0.agents.find(&job.at.agent).is_some()) {
                stopped.push((job.at.clone(), Some(job)));
            }
        }
        Ok(stopped)
    }
}
