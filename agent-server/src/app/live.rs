//! Runs of this process: active ones, and recent ends of others.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent::{
    Drain, Event, Result, Run, RunEnd, RunHandle, Worker,
    dispatch::{ChunkRelay, RunAddress},
    event::EventStream,
    journal::Journal,
};
use futures::StreamExt;
use tokio::sync::watch;

use super::{
    brought::PersistedRequest,
    settled::{keep, settle},
    viewers::Viewers,
};
use crate::{caller::Caller, clock::now, metrics::Metrics};

/// Number of ended runs that are kept here; the journal has all.
const RECENT: usize = 100;

/// Runs of this process, by id.
#[derive(Clone)]
pub(super) struct Live {
    runs: Arc<Mutex<Runs>>,
    metrics: Arc<Metrics>,
    drain: Drain,
    journal: Arc<dyn Journal>,
    relay: Option<Arc<dyn ChunkRelay>>,
}

#[derive(Debug, Default)]
struct Runs {
    /// Ids are unique within a session only.
    under_way: HashMap<Arc<str>, Vec<Arc<LiveRun>>>,
    /// Ended runs, newest last.
    recent: VecDeque<Arc<LiveRun>>,
}

/// Run of this process.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) tenant: Arc<str>,
    pub(super) subject: Arc<str>,
    /// Time of the request: milliseconds since 1970, UTC.
    pub(super) asked: u64,
    /// Digest of the request, to detect a different request with the same key.
    pub(super) digest: Option<Arc<str>>,
    pub(super) handle: RunHandle,
    /// True once a user stopped the run.
    is_stopped: AtomicBool,
    /// True if the run is marked for resumption by the next process.
    is_marked: AtomicBool,
    /// Options of the request to persist.
    kept: Option<PersistedRequest>,
    is_kept: AtomicBool,
    pub(super) viewers: Viewers,
    /// Requested session.
    wanted: Arc<str>,
    /// A reader from the beginning that consumes nothing: it keeps transient events for later and
    /// reconnecting readers.
    _kept: Mutex<EventStream>,
    begun: OnceLock<Begun>,
    phase: watch::Sender<Phase>,
}

/// Start position of a run.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// Name of the session in the store.
    pub(super) session: Arc<str>,
    /// Sequence number of the run's first entry.
    pub(super) seq: u64,
}

/// Phase of a run.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Waiting,
    Begun,
    Ended(Arc<Result<RunEnd>>),
}

/// Request to drive a run.
pub(super) struct Asked<'a> {
    pub(super) caller: &'a Caller,
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) session: Arc<str>,
    pub(super) digest: Option<Arc<str>>,
    /// Start position of a resumed run.
    pub(super) began: Option<u64>,
    /// Options of the request to persist.
    pub(super) kept: Option<PersistedRequest>,
    /// True if the options are already persisted.
    pub(super) is_kept: bool,
}

/// The caller has reached the key's limit of active runs, which is this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany(pub(super) usize);

impl Live {
    /// Creates an empty registry.
    pub(super) fn new(
        metrics: Arc<Metrics>,
        drain: Drain,
        journal: Arc<dyn Journal>,
        relay: Option<Arc<dyn ChunkRelay>>,
    ) -> Self {
        Self { runs: Arc::default(), metrics, drain, journal, relay }
    }

    /// Returns all active runs.
    pub(super) fn all(&self) -> Vec<Arc<LiveRun>> {
        self.runs().under_way.values().flatten().cloned().collect()
    }

    /// True if the process is draining.
    pub(super) fn is_draining(&self) -> bool {
        self.drain.is_draining()
    }

    /// Returns the store of all sessions.
    pub(super) fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    /// Returns a tenant's active or recent run of this id, in a session of the store if one is
    /// given.
    pub(super) fn find(&self, tenant: &str, session: Option<&str>, id: &str) -> Option<Arc<LiveRun>> {
        let is_it = |run: &&Arc<LiveRun>| {
            let is_there = |session: &str| **run.session() == *session || *run.wanted == *session;
            *run.id == *id && *run.tenant == *tenant && session.is_none_or(is_there)
        };
        let runs = self.runs();
        let active = runs.under_way.get(id).into_iter().flatten();
        active.chain(runs.recent.iter().rev()).find(is_it).cloned()
    }

    /// Returns the active run of an agent in a session.
    pub(super) fn in_session(&self, agent: &str, session: &str) -> Option<Arc<LiveRun>> {
        let is_it =
            |run: &&Arc<LiveRun>| *run.agent == *agent && **run.session() == *session && run.begun.get().is_some();
        self.runs().under_way.values().flatten().find(is_it).cloned()
    }

    /// Returns the active and recent runs of a tenant, newest first.
    pub(super) fn of_tenant(&self, tenant: &str) -> Vec<Arc<LiveRun>> {
        let runs = self.runs();
        let all = runs.under_way.values().flatten().chain(&runs.recent);
        let mut of_tenant: Vec<_> = all.filter(|run| *run.tenant == *tenant).cloned().collect();
        of_tenant.sort_by(|one, two| (two.asked, &two.id).cmp(&(one.asked, &one.id)));
        of_tenant
    }

    /// Drives a run in its own task, independently of viewers. Returns the existing run if there is
    /// one at this address.
    ///
    /// # Errors
    /// [`TooMany`] if the caller has reached the key's limit of active runs.
    pub(super) fn drive(&self, asked: Asked<'_>, run: impl FnOnce() -> Run) -> Result<(Arc<LiveRun>, bool), TooMany> {
        let mut runs = self.runs();
        let is_same = |run: &Arc<LiveRun>| {
            run.id == asked.id
                && run.agent == asked.agent
                && (run.wanted == asked.session || *run.session() == asked.session)
        };
        if let Some(there) = runs.under_way.get(&asked.id).into_iter().flatten().find(|run| is_same(run)) {
            return Ok((there.clone(), false));
        }
        let (tenant, subject) = (asked.caller.tenant(), asked.caller.subject());
        let is_own = |run: &&Arc<LiveRun>| *run.tenant == *tenant && *run.subject == *subject;
        if let Some(most) = asked.caller.limited().runs
            && runs.under_way.values().flatten().filter(is_own).count() >= most
        {
            return Err(TooMany(most));
        }
        let run = run();
        let first = run.handle().events();
        let began = asked.began;
        runs.recent.retain(|run| !is_same(run));
        let live = Arc::new(LiveRun::new(asked, run.handle()));
        runs.under_way.entry(live.id.clone()).or_default().push(live.clone());
        drop(runs);
        self.metrics.started(&live.agent);
        let published = self.relay.is_some().then(|| run.handle().events());
        let leaving = Leaving { live: self.clone(), run: live.clone(), end: None };
        tokio::spawn(drive(leaving, run, first, began));
        if let (Some(relay), Some(events)) = (self.relay.clone(), published) {
            let at = RunAddress::new(live.agent.clone(), live.wanted.clone(), live.id.clone());
            tokio::spawn(async move { Worker::relay_events(&*relay, &at, events).await });
        }
        Ok((live, true))
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn drive(mut leaving: Leaving, run: Run, mut first: EventStream, began: Option<u64>) {
    let mut run = std::pin::pin!(run);
    let end = tokio::select! {
        biased;
        Some(event) = durable(&mut first) => {
            // The run takes no further step until its limits are persisted.
            let session = event.ids.session.clone();
            keep(&leaving.live, &leaving.run, &session).await;
            leaving.run.begin(Begun { session, seq: began.unwrap_or(event.position.seq) });
            drop(first);
            run.await
        }
        end = &mut run => {
            if let Some(event) = durable(&mut first).await {
                leaving.run.begin(Begun { session: event.ids.session.clone(), seq: began.unwrap_or(event.position.seq) });
            }
            end
        }
    };
    settle(&leaving.live, &leaving.run, &end).await;
    leaving.end = Some(end);
}

/// Returns the first durable event: transient events before it have no position in the session yet.
async fn durable(events: &mut EventStream) -> Option<Event> {
    while let Some(event) = events.next().await {
        if event.position.after == 0 {
            return Some(event);
        }
    }
    None
}

/// Guard that records the end of a run, even by a panic.
struct Leaving {
    live: Live,
    run: Arc<LiveRun>,
    end: Option<Result<RunEnd>>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let panicked = || Err(agent::Error::new(agent::ErrorKind::Unexpected, "the run panicked"));
        let end = Arc::new(self.end.take().unwrap_or_else(panicked));
        let mut runs = self.live.runs();
        if let Entry::Occupied(mut active) = runs.under_way.entry(self.run.id.clone()) {
            active.get_mut().retain(|run| !Arc::ptr_eq(run, &self.run));
            if active.get().is_empty() {
                active.remove();
            }
        }
        if self.run.is_known() {
            if runs.recent.len() == RECENT {
                runs.recent.pop_front();
            }
            runs.recent.push_back(self.run.clone());
        }
        drop(runs);
        let (status, tokens) = match &*end {
            Ok(RunEnd::Finished(finished)) => ("finished", finished.tree_usage.total()),
            Ok(end) => (end.as_str(), 0),
            Err(_) => ("failed", 0),
        };
        self.live.metrics.ended(&self.run.agent, status, tokens);
        self.run.phase.send_replace(Phase::Ended(end));
    }
}

impl LiveRun {
    fn new(asked: Asked<'_>, handle: RunHandle) -> Self {
        Self {
            id: asked.id,
            agent: asked.agent,
            tenant: asked.caller.tenant().into(),
            subject: asked.caller.subject().into(),
            asked: now(),
            digest: asked.digest,
            is_stopped: AtomicBool::new(false),
            is_marked: AtomicBool::new(false),
            kept: asked.kept,
            is_kept: AtomicBool::new(asked.is_kept),
            viewers: Viewers::default(),
            wanted: asked.session,
            _kept: Mutex::new(handle.events()),
            handle,
            begun: OnceLock::new(),
            phase: watch::Sender::new(Phase::Waiting),
        }
    }

    fn begin(&self, begun: Begun) {
        if self.begun.set(begun).is_ok() {
            self.phase.send_replace(Phase::Begun);
        }
    }

    /// Stops the run on behalf of a user: no process resumes it automatically.
    pub(super) fn stop(&self, stop: impl FnOnce(&RunHandle)) {
        self.is_stopped.store(true, Ordering::Relaxed);
        stop(&self.handle);
    }

    /// True if a user stopped the run.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// True if the run is marked for resumption by the next process.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    pub(super) fn set_marked(&self) {
        self.is_marked.store(true, Ordering::Relaxed);
    }

    /// Returns the options to persist.
    pub(super) fn kept(&self) -> Option<&PersistedRequest> {
        self.kept.as_ref()
    }

    /// True if the options are persisted.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub(super) fn set_kept(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// True if the run began, or its client was promised that it will.
    pub(super) fn is_known(&self) -> bool {
        self.begun().is_some() || self.kept().is_some_and(|kept| kept.queued.is_some())
    }

    /// Returns the session's name in the store: the actual one, or else the requested one.
    pub(super) fn session(&self) -> &Arc<str> {
        self.begun.get().map_or(&self.wanted, |begun| &begun.session)
    }

    /// Returns the start position; none while the run is queued.
    pub(super) fn begun(&self) -> Option<&Begun> {
        self.begun.get()
    }

    /// True if the run is no longer active.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Ended(_))
    }

    /// Returns the current phase.
    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Waits until the run has begun, or ended without beginning.
    pub(super) async fn begins(&self) -> Phase {
        self.wait(|phase| !matches!(phase, Phase::Waiting)).await
    }

    /// Waits until the run has stopped.
    pub(super) async fn ends(&self) -> Arc<Result<RunEnd>> {
        match self.wait(|phase| matches!(phase, Phase::Ended(_))).await {
            Phase::Ended(end) => end,
            _ => unreachable!("the phase is `Ended`"),
        }
    }

    async fn wait(&self, until: impl FnMut(&Phase) -> bool) -> Phase {
        let mut phases = self.phase.subscribe();
        // The sender belongs to this run and lives as long as it.
        phases.wait_for(until).await.map_or(Phase::Waiting, |phase| phase.clone())
    }
}
