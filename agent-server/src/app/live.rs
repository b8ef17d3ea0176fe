//! The runs of this process: those under way, and how the newest of the others ended.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent::{Drain, Event, Result, Run, RunEnd, RunHandle, event::EventStream};
use futures::StreamExt;
use tokio::sync::watch;

use crate::{clock::now, metrics::Metrics};

/// Runs that are over of which the end is kept here; the journal has all.
const RECENT: usize = 100;

/// The runs of this process, by id.
#[derive(Clone, Debug)]
pub(super) struct Live {
    runs: Arc<Mutex<Runs>>,
    metrics: Arc<Metrics>,
    drain: Drain,
}

#[derive(Debug, Default)]
struct Runs {
    under_way: HashMap<Arc<str>, Arc<LiveRun>>,
    /// The newest last.
    recent: VecDeque<Arc<LiveRun>>,
    /// Those that stopped because the process is about to end.
    drained: Vec<Arc<LiveRun>>,
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
pub(super) struct Asked {
    pub(super) id: Arc<str>,
    pub(super) agent: Arc<str>,
    pub(super) tenant: Arc<str>,
    pub(super) subject: Arc<str>,
    pub(super) session: Arc<str>,
    pub(super) digest: Option<[u8; 32]>,
    /// Where it began, if it goes on.
    pub(super) began: Option<u64>,
}

impl Live {
    /// Nothing is under way.
    pub(super) fn new(metrics: Arc<Metrics>, drain: Drain) -> Self {
        Self { runs: Arc::default(), metrics, drain }
    }

    /// The runs that stopped because the process is about to end, and that nobody else stopped.
    pub(super) fn take_drained(&self) -> Vec<Arc<LiveRun>> {
        std::mem::take(&mut self.runs().drained)
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

    /// How many runs somebody has under way.
    pub(super) fn under_way(&self, tenant: &str, subject: &str) -> usize {
        self.runs().under_way.values().filter(|run| *run.tenant == *tenant && *run.subject == *subject).count()
    }

    /// Drives a run in a task of its own; nobody needs to watch. Gives the run that is there already if there is one of this id.
    pub(super) fn drive(&self, asked: Asked, run: impl FnOnce() -> Run) -> (Arc<LiveRun>, bool) {
        let mut runs = self.runs();
        if let Some(there) = runs.under_way.get(&asked.id) {
            return (there.clone(), false);
        }
        let run = run();
        let handle = run.handle();
        let (kept, first) = (handle.events(), handle.events());
        let live = Arc::new(LiveRun {
            id: asked.id.clone(),
            agent: asked.agent,
            tenant: asked.tenant,
            subject: asked.subject,
            asked: now(),
            digest: asked.digest,
            handle,
            is_stopped: AtomicBool::new(false),
            wanted: asked.session,
            _kept: Mutex::new(kept),
            begun: OnceLock::new(),
            phase: watch::Sender::new(Phase::Waiting),
        });
        runs.recent.retain(|run| run.id != asked.id);
        runs.under_way.insert(asked.id, live.clone());
        drop(runs);
        self.metrics.started(&live.agent);
        let leaving = Leaving { live: self.clone(), run: live.clone(), end: None };
        tokio::spawn(drive(leaving, run, first, asked.began));
        (live, true)
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
            leaving.run.begin(Begun { session: event.ids.session.clone(), seq: began.unwrap_or(event.position.seq) });
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
        if self.run.begun.get().is_some() {
            if runs.recent.len() == RECENT {
                runs.recent.pop_front();
            }
            runs.recent.push_back(self.run.clone());
        }
        let is_at_a_safe_point = matches!(&*end, Ok(RunEnd::Paused(_) | RunEnd::Cancelled(_)));
        if is_at_a_safe_point && self.live.drain.is_draining() && !self.run.is_stopped.load(Ordering::Relaxed) {
            runs.drained.push(self.run.clone());
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
