//! The runs of this process: those under way, and how the newest of the others ended.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent::{Drain, Event, Result, Run, RunEnd, RunHandle, event::EventStream, journal::Journal};
use futures::StreamExt;
use tokio::sync::watch;

use super::{
    brought::Kept,
    settled::{keep, settle},
    viewers::Viewers,
};
use crate::{caller::Caller, clock::now, metrics::Metrics};

/// Runs that are over of which the end is kept here; the journal has all.
const RECENT: usize = 100;

/// The runs of this process, by id.
#[derive(Clone)]
pub(super) struct Live {
    runs: Arc<Mutex<Runs>>,
    metrics: Arc<Metrics>,
    drain: Drain,
    journal: Arc<dyn Journal>,
}

#[derive(Debug, Default)]
struct Runs {
    under_way: HashMap<Arc<str>, Arc<LiveRun>>,
    /// The newest last.
    recent: VecDeque<Arc<LiveRun>>,
}

/// A run of this process.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) tenant: Arc<str>,
    pub(super) subject: Arc<str>,
    /// When it was asked for: milliseconds since 1970, UTC.
    pub(super) asked: u64,
    /// What was asked for, to know it again.
    pub(super) digest: Option<[u8; 32]>,
    pub(super) handle: RunHandle,
    /// Somebody stopped it.
    is_stopped: AtomicBool,
    /// It is marked to be gone on with by the next process.
    is_marked: AtomicBool,
    /// What is to be kept of its request.
    kept: Option<Kept>,
    is_kept: AtomicBool,
    pub(super) viewers: Viewers,
    /// The session that was asked for.
    wanted: Arc<str>,
    /// A reader from the beginning that takes nothing: what passes is kept for those who come later, or come back.
    _kept: Mutex<EventStream>,
    begun: OnceLock<Begun>,
    phase: watch::Sender<Phase>,
}

/// Where a run began.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// The session, by its name in the store.
    pub(super) session: Arc<str>,
    /// The sequence number of the run's first entry.
    pub(super) seq: u64,
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    Waiting,
    Begun,
    Ended(Arc<Result<RunEnd>>),
}

/// A run as it is asked for.
pub(super) struct Asked<'a> {
    pub(super) caller: &'a Caller,
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) session: Arc<str>,
    pub(super) digest: Option<[u8; 32]>,
    /// Where it began, if it goes on.
    pub(super) began: Option<u64>,
    /// What is to be kept of its request.
    pub(super) kept: Option<Kept>,
    /// True if that is kept already.
    pub(super) is_kept: bool,
}

/// A caller has as many runs under way as the key allows: so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany(pub(super) usize);

impl Live {
    /// Nothing is under way.
    pub(super) fn new(metrics: Arc<Metrics>, drain: Drain, journal: Arc<dyn Journal>) -> Self {
        Self { runs: Arc::default(), metrics, drain, journal }
    }

    /// All runs under way.
    pub(super) fn all(&self) -> Vec<Arc<LiveRun>> {
        self.runs().under_way.values().cloned().collect()
    }

    /// True if the process is about to end.
    pub(super) fn is_draining(&self) -> bool {
        self.drain.is_draining()
    }

    /// Where all sessions are kept.
    pub(super) fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    /// The run of this id, under way or of the recent ones.
    pub(super) fn find(&self, id: &str) -> Option<Arc<LiveRun>> {
        let runs = self.runs();
        let recent = || runs.recent.iter().rev().find(|run| *run.id == *id);
        runs.under_way.get(id).or_else(recent).cloned()
    }

    /// The run that an agent has under way in a session.
    pub(super) fn in_session(&self, agent: &str, session: &str) -> Option<Arc<LiveRun>> {
        let is_it =
            |run: &&Arc<LiveRun>| *run.agent == *agent && **run.session() == *session && run.begun.get().is_some();
        self.runs().under_way.values().find(is_it).cloned()
    }

    /// All runs of a tenant that are under way or recent, newest first.
    pub(super) fn of_tenant(&self, tenant: &str) -> Vec<Arc<LiveRun>> {
        let runs = self.runs();
        let all = runs.under_way.values().chain(&runs.recent);
        let mut of_tenant: Vec<_> = all.filter(|run| *run.tenant == *tenant).cloned().collect();
        of_tenant.sort_by(|one, two| (two.asked, &two.id).cmp(&(one.asked, &one.id)));
        of_tenant
    }

    /// Drives a run in a task of its own; nobody needs to watch. Gives the run that is there already if there is one of this id.
    ///
    /// # Errors
    /// If the caller has as many runs under way as the key allows.
    pub(super) fn drive(&self, asked: Asked<'_>, run: impl FnOnce() -> Run) -> Result<(Arc<LiveRun>, bool), TooMany> {
        let mut runs = self.runs();
        if let Some(there) = runs.under_way.get(&asked.id) {
            return Ok((there.clone(), false));
        }
        let (tenant, subject) = (asked.caller.tenant(), asked.caller.subject());
        let is_own = |run: &&Arc<LiveRun>| *run.tenant == *tenant && *run.subject == *subject;
        if let Some(most) = asked.caller.limited().runs
            && runs.under_way.values().filter(is_own).count() >= most
        {
            return Err(TooMany(most));
        }
        let run = run();
        let first = run.handle().events();
        let began = asked.began;
        let live = Arc::new(LiveRun::new(asked, run.handle()));
        runs.recent.retain(|run| run.id != live.id);
        runs.under_way.insert(live.id.clone(), live.clone());
        drop(runs);
        self.metrics.started(&live.agent);
        let leaving = Leaving { live: self.clone(), run: live.clone(), end: None };
        tokio::spawn(drive(leaving, run, first, began));
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
            // Until its limits are kept, the run takes no further step.
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

/// The first event of the journal's: what passes before it has no place in the session yet.
async fn durable(events: &mut EventStream) -> Option<Event> {
    while let Some(event) = events.next().await {
        if event.position.after == 0 {
            return Some(event);
        }
    }
    None
}

/// Notes the end of a run, even one by a panic.
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
        runs.under_way.remove(&self.run.id);
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

    /// Stops it as somebody wishes: no process goes on with it by itself.
    pub(super) fn stop(&self, stop: impl FnOnce(&RunHandle)) {
        self.is_stopped.store(true, Ordering::Relaxed);
        stop(&self.handle);
    }

    /// True if somebody stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// True if it is marked to be gone on with by the next process.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    pub(super) fn set_marked(&self) {
        self.is_marked.store(true, Ordering::Relaxed);
    }

    /// What is to be kept of its request.
    pub(super) fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    /// True if that is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub(super) fn set_kept(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// True if it began, or somebody was told that it will.
    pub(super) fn is_known(&self) -> bool {
        self.begun().is_some() || self.kept().is_some_and(|kept| kept.queued.is_some())
    }

    /// The session, by its name in the store: where it runs, or else where it was asked for.
    pub(super) fn session(&self) -> &Arc<str> {
        self.begun.get().map_or(&self.wanted, |begun| &begun.session)
    }

    /// Where it began; none while it waits for its turn.
    pub(super) fn begun(&self) -> Option<&Begun> {
        self.begun.get()
    }

    /// True if it is not under way any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.phase.borrow(), Phase::Ended(_))
    }

    /// How far it has come.
    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Waits until it has begun, or ended without.
    pub(super) async fn begins(&self) -> Phase {
        self.wait(|phase| !matches!(phase, Phase::Waiting)).await
    }

    /// Waits until it is at rest.
    pub(super) async fn ends(&self) -> Arc<Result<RunEnd>> {
        match self.wait(|phase| matches!(phase, Phase::Ended(_))).await {
            Phase::Ended(end) => end,
            _ => unreachable!("it was waited for"),
        }
    }

    async fn wait(&self, until: impl FnMut(&Phase) -> bool) -> Phase {
        let mut phases = self.phase.subscribe();
        // The sender is this run's own: it is there as long as the run.
        phases.wait_for(until).await.map_or(Phase::Waiting, |phase| phase.clone())
    }
}
