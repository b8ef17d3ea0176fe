//! Execution in this process: a queue of runs, and the worker that executes them.
//!
//! The queue holds active runs only. Suspended runs are in the journal, which is also where the
//! next process finds those that this process did not finish.

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use agent::{
    Agent, Drain, Error, ErrorKind, Event, Result, RunEnd, RunHandle, RunRequest, SessionId, WhenBusy, Worker,
    WorkerBuilder, WorkerHooks, async_trait,
    core::Resources,
    dispatch::{
        ChunkRelay, Claim, Claimed, Dispatch, Dispatched, Job, JobStatus, Outcome, Queue, RunAddress, Signal, Told,
    },
    journal::Journal,
    model::Backoff,
    run::Answer,
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    agents::Agents,
    brought::{PersistedRequest, StartOptions},
    dispatched::shape,
    drained::unmark,
    live::{Begun, LiveRun, Phase},
    settled::{keep, settle},
};
use crate::{caller::Caller, metrics::Metrics, spending::Spending};

/// Number of ended runs that are kept here; the journal has all.
const RECENT: usize = 100;
/// Lease of the worker, and its polling interval: the queue lives as long as the worker, and
/// notifies it of each run.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Runs of this process. Cheap to clone.
#[derive(Clone)]
pub(super) struct Local(Arc<Inner>);

/// Parts of the server that runs of this process need.
pub(super) struct LocalParts {
    pub(super) agents: Agents,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) drain: Drain,
    pub(super) metrics: Arc<Metrics>,
    pub(super) relay: Option<Arc<dyn ChunkRelay>>,
    pub(super) spending: Option<Spending>,
}

struct Inner {
    parts: LocalParts,
    runs: Mutex<Runs>,
    /// Number of runs that were enqueued.
    news: watch::Sender<u64>,
    worker: OnceLock<()>,
    /// Cancelled when the server is dropped.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Runs {
    /// Active runs. Ids are unique within a session only.
    active: HashMap<Arc<str>, Vec<Arc<LiveRun>>>,
    /// Ended runs, newest last.
    recent: VecDeque<Arc<LiveRun>>,
    /// Runs that the worker has not claimed.
    ready: VecDeque<Claimed>,
    /// Enqueued runs by receipt.
    held: HashMap<u64, Arc<LiveRun>>,
    /// Last receipt.
    last: u64,
}

/// Request to execute a run.
pub(super) struct Asked<'a> {
    pub(super) caller: &'a Caller,
    pub(super) job: Job,
    pub(super) digest: Option<Arc<str>>,
    /// Start position of a run that is resumed.
    pub(super) began: Option<u64>,
    pub(super) resources: Resources,
    /// Persisted options of the run, if there are any.
    pub(super) before: Option<PersistedRequest>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(caller: &'a Caller, job: Job) -> Self {
        Self { caller, job, digest: None, began: None, resources: Resources::default(), before: None }
    }

    pub(super) fn before(self, before: Option<PersistedRequest>) -> Self {
        Self { before, ..self }
    }

    /// Returns the options to persist, and whether they already are.
    pub(super) fn kept(&self) -> (Option<PersistedRequest>, bool) {
        let is_queued = self.began.is_none() && matches!(self.job.when_busy, Some(WhenBusy::Queue { .. }));
        let before = self.before.as_ref().filter(|before| before.over.is_none());
        if let Some(before) = before.filter(|before| is_queued && before.queued.is_some()) {
            return (Some(before.clone()), true);
        }
        let kept = PersistedRequest::of_job(&self.job, is_queued);
        let is_needed = is_queued || kept.brought.is_lasting();
        let is_kept = before.is_some_and(|before| !is_needed || before.brought == kept.brought);
        (is_needed.then_some(kept), is_kept)
    }
}

/// Run that has a place among the active ones. It loses the place when this is dropped before it
/// was [started](Local::start).
pub(super) struct Entered {
    local: Local,
    pub(super) run: Arc<LiveRun>,
    is_ready: bool,
}

/// Reason why a run has no place.
pub(super) enum NotEntered {
    /// The run is active.
    Active(Arc<LiveRun>),
    /// The caller has reached the key's limit of active runs, which is this number.
    TooMany(usize),
}

impl Local {
    /// Creates the queue. Its worker lives at least as long as the guard.
    pub(super) fn new(parts: LocalParts) -> (Self, DropGuard) {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let news = watch::Sender::new(1);
        (Self(Arc::new(Inner { parts, runs: Mutex::default(), news, worker: OnceLock::new(), closed })), guard)
    }

    /// Returns all active runs.
    pub(super) fn all(&self) -> Vec<Arc<LiveRun>> {
        self.runs().active.values().flatten().cloned().collect()
    }

    /// True if the process is draining.
    pub(super) fn is_draining(&self) -> bool {
        self.0.parts.drain.is_draining()
    }

    /// Returns the store of all sessions.
    pub(super) fn journal(&self) -> &dyn Journal {
        &*self.0.parts.journal
    }

    /// Returns a tenant's active or recent run of this id, in a session of the store if one is
    /// given.
    pub(super) fn find(&self, tenant: &str, session: Option<&str>, id: &str) -> Option<Arc<LiveRun>> {
        let is_it = |run: &&Arc<LiveRun>| {
            let is_there = |session: &str| **run.session() == *session || *run.job.at.session == *session;
            run.id() == id && *run.tenant == *tenant && session.is_none_or(is_there)
        };
        let runs = self.runs();
        let active = runs.active.get(id).into_iter().flatten();
        active.chain(runs.recent.iter().rev()).find(is_it).cloned()
    }

    /// Returns the active or recent run at this address.
    pub(super) fn find_at(&self, at: &RunAddress) -> Option<Arc<LiveRun>> {
        self.find(&tenant_of(&at.session), Some(&at.session), &at.run)
    }

    /// Returns the active run of an agent in a session.
    pub(super) fn in_session(&self, agent: &str, session: &str) -> Option<Arc<LiveRun>> {
        let is_it =
            |run: &&Arc<LiveRun>| **run.agent() == *agent && **run.session() == *session && run.begun().is_some();
        self.runs().active.values().flatten().find(is_it).cloned()
    }

    /// Returns the active and recent runs of a tenant, newest first.
    pub(super) fn of_tenant(&self, tenant: &str) -> Vec<Arc<LiveRun>> {
        let runs = self.runs();
        let all = runs.active.values().flatten().chain(&runs.recent);
        let mut of_tenant: Vec<_> = all.filter(|run| *run.tenant == *tenant).cloned().collect();
        of_tenant.sort_by(|one, two| (two.asked, two.id()).cmp(&(one.asked, one.id())));
        of_tenant
    }

    /// Gives a run its place among the active ones.
    ///
    /// # Errors
    /// [`NotEntered`] if the run is active, or the caller has too many active runs.
    pub(super) fn enter(&self, asked: Asked<'_>) -> Result<Entered, NotEntered> {
        let mut runs = self.runs();
        let at = &asked.job.at;
        let is_same = |run: &Arc<LiveRun>| {
            run.job.at.run == at.run
                && run.job.at.agent == at.agent
                && (run.job.at.session == at.session || *run.session() == at.session)
        };
        if let Some(there) = runs.active.get(&at.run).into_iter().flatten().find(|run| is_same(run)) {
            return Err(NotEntered::Active(there.clone()));
        }
        let (tenant, subject) = (asked.caller.tenant(), asked.caller.subject());
        let is_own = |run: &&Arc<LiveRun>| *run.tenant == *tenant && *run.subject == *subject;
        if let Some(most) = asked.caller.limited().runs
            && runs.active.values().flatten().filter(is_own).count() >= most
        {
            return Err(NotEntered::TooMany(most));
        }
        runs.recent.retain(|run| !is_same(run));
        let run = Arc::new(LiveRun::new(asked));
        runs.active.entry(run.job.at.run.clone()).or_default().push(run.clone());
        Ok(Entered { local: self.clone(), run, is_ready: false })
    }

    /// Enqueues a run, and returns once its first entry is durable; a queued run, once its request
    /// is. The run continues if the future is dropped. [`Dispatched::Known`] means that the run
    /// exists and nothing is left to execute.
    ///
    /// # Errors
    /// The error with which the run ended before it began.
    pub(super) async fn start(
        &self,
        entered: Entered,
        answers: Option<BTreeMap<String, Answer>>,
    ) -> Result<Dispatched> {
        let run = entered.run.clone();
        if run.is_queued() {
            keep(self, &run, &run.job.at.session).await?;
        }
        entered.enqueue(answers);
        run.reaches(if run.is_queued() { Phase::Started } else { Phase::Begun }).await;
        match run.end().filter(|_| run.begun().is_none() && !run.is_queued()) {
            Some(end) => match &**end {
                Err(error) => Err(copy(error)),
                Ok(_) => Err(Error::new(ErrorKind::Busy, "another run has taken the messages")),
            },
            None if run.is_over() && !run.is_known() => Ok(Dispatched::Known),
            None => Ok(Dispatched::New),
        }
    }

    /// Starts the worker, unless it works already.
    fn work(&self) {
        self.0.worker.get_or_init(|| {
            let (queue, closed) = (Arc::new(self.clone()), self.0.closed.clone());
            let worker = Worker::builder(queue.clone()).hooks(queue.clone()).at_once(usize::MAX);
            let worker = worker.lease(FOREVER).poll(FOREVER).attempts(Backoff::new().retries(0));
            let worker = self.0.parts.relay.iter().cloned().fold(worker, WorkerBuilder::relay);
            let agents = self.0.parts.agents.all();
            let worker = agents.iter().map(|served| served.agent().clone()).fold(worker, WorkerBuilder::agent);
            let worker = worker.build().expect("served agents have a store, and names of their own");
            tokio::spawn(async move {
                let closed = async {
                    closed.cancelled().await;
                    for run in queue.all() {
                        run.reaches(Phase::Ended).await;
                    }
                };
                worker.run_until(closed).await;
            });
        });
    }

    /// Returns the active run of a job.
    fn at(&self, at: &RunAddress) -> Option<Arc<LiveRun>> {
        self.runs().active.get(&at.run)?.iter().find(|run| run.job.at == *at).cloned()
    }

    fn leave(&self, run: &Arc<LiveRun>) {
        let mut runs = self.runs();
        if let Entry::Occupied(mut active) = runs.active.entry(run.job.at.run.clone()) {
            active.get_mut().retain(|other| !Arc::ptr_eq(run, other));
            if active.get().is_empty() {
                active.remove();
            }
        }
        if run.is_known() {
            if runs.recent.len() == RECENT {
                runs.recent.pop_front();
            }
            runs.recent.push_back(run.clone());
        }
        drop(runs);
        run.leave();
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entered {
    fn enqueue(mut self, answers: Option<BTreeMap<String, Answer>>) {
        self.is_ready = true;
        self.local.work();
        let mut runs = self.local.runs();
        runs.last += 1;
        let receipt = runs.last;
        let mut claimed = Claimed::new(receipt, self.run.job.clone());
        (claimed.answers, claimed.stands) = (answers, self.run.began.is_some());
        runs.ready.push_back(claimed);
        runs.held.insert(receipt, self.run.clone());
        drop(runs);
        self.local.0.news.send_modify(|news| *news += 1);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if !mem::replace(&mut self.is_ready, true) {
            self.local.leave(&self.run);
        }
    }
}

#[async_trait]
impl Dispatch for Local {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        let caller = on_behalf_of(&job.at, job.user.as_deref());
        let index = self.journal().index(&job.at.session).await?;
        let before = index.look(|index| PersistedRequest::of_run(index, &job.at.run));
        match self.enter(Asked::new(&caller, job).before(before)) {
            Ok(entered) => self.start(entered, None).await,
            Err(_) => Ok(Dispatched::Known), // this caller has no limit
        }
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        let index = self.journal().index(&run.session).await?;
        let (began, user, before) = index.look(|index| {
            let began = index.run(&run.run).map(|(_, record)| record.seq);
            let user = index.unfinished(&run.agent).and_then(|open| open.ids.user);
            (began, user, PersistedRequest::of_run(index, &run.run))
        });
        let job = resuming(run, &before.as_ref().map(|before| before.brought.clone()).unwrap_or_default())?;
        let caller = on_behalf_of(run, user.as_deref());
        match self.enter(Asked { began, ..Asked::new(&caller, job).before(before) }) {
            Ok(entered) => self.start(entered, Some(answers)).await.map(drop),
            Err(_) => Err(Error::new(ErrorKind::Stale, format!("run '{}' is not waiting", run.run))),
        }
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        self.find_at(run).map_or(Ok(false), |live| live.signal(signal))
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        let active = self.find_at(run).filter(|run| !run.is_over());
        Ok(active.map(|run| match run.begun() {
            Some(_) => JobStatus::Running { worker: "server".to_owned() },
            None => JobStatus::Queued,
        }))
    }
}

/// All runs go to the worker of this process, which holds them until they stop. Runs of one session
/// are ordered by the agent, and signals are delivered directly.
#[async_trait]
impl Queue for Local {
    async fn claim(&self, _: &Claim) -> Result<Option<Claimed>> {
        Ok(self.runs().ready.pop_front())
    }

    async fn renew(&self, receipts: &[u64], _: Duration) -> Result<Vec<u64>> {
        Ok(receipts.to_vec())
    }

    async fn release(&self, receipt: u64, _: Outcome, _: &[u64], _: bool) -> Result<bool> {
        let Some(run) = self.runs().held.remove(&receipt) else { return Ok(false) };
        self.leave(&run);
        Ok(true)
    }

    async fn fire(&self) -> Result<()> {
        Ok(())
    }

    async fn signals(&self, _: &[u64]) -> Result<Vec<Told>> {
        Ok(Vec::new())
    }

    async fn forget(&self, _: &[u64]) -> Result<()> {
        Ok(())
    }

    async fn news(&self, since: u64) -> u64 {
        let mut news = self.0.news.subscribe();
        news.wait_for(|news| *news > since).await.map_or(since, |news| *news)
    }
}

#[async_trait]
impl WorkerHooks for Local {
    async fn agent(&self, job: &Job, own: &Agent) -> Result<Agent> {
        let agents = &self.0.parts.agents;
        let then = match self.at(&job.at).and_then(|run| run.began) {
            None => None,
            Some(_) => self.journal().index(&job.at.session).await?.look(|index| {
                let (_, record) = index.run(&job.at.run)?;
                agents.when(own.name(), record.started, &index.unfinished(own.name())?.fingerprint)
            }),
        };
        Ok(then.or_else(|| Some(agents.find(own.name())?.agent().clone())).unwrap_or_else(|| own.clone()))
    }

    fn request(&self, job: &Job, agent: &Agent, request: RunRequest) -> Result<RunRequest> {
        let mut request = shape(job, agent, request)?;
        if let Some(run) = self.at(&job.at) {
            request.resources = run.resources.clone().extended(&request.resources);
        }
        self.0.parts.spending.as_ref().map_or(Ok(request.clone()), |spending| spending.charge(request))
    }

    fn run_started(&self, job: &Job, handle: &RunHandle) {
        if let Some(run) = self.at(&job.at) {
            self.0.parts.metrics.started(run.agent());
            run.start(handle);
        }
    }

    async fn run_begun(&self, job: &Job, first: &Event) {
        let Some(run) = self.at(&job.at) else { return };
        let session = first.ids.session.clone();
        let kept = async {
            keep(self, &run, &session).await?;
            match run.began {
                Some(_) => unmark(self.journal(), &session, run.id()).await,
                None => Ok(()),
            }
        };
        if let Err(error) = kept.await {
            tracing::error!(run = run.id(), %error, "the options of a request could not be persisted");
        }
        run.begin(Begun { session, seq: run.began.unwrap_or(first.position.seq) });
    }

    async fn run_ended(&self, job: &Job, end: Arc<Result<RunEnd>>) {
        let Some(run) = self.at(&job.at) else { return };
        settle(self, &run, &end).await;
        if run.handle().is_some() {
            self.0.parts.metrics.ended_with(run.agent(), Some(&end));
        }
        run.end_with(end);
    }
}

/// Creates the job that resumes a run with these options.
///
/// # Errors
/// An error if the options cannot be encoded as JSON.
pub(super) fn resuming(run: &RunAddress, options: &StartOptions) -> Result<Job> {
    let request = RunRequest::new(Vec::new()).session(run.session.clone()).run_id(run.run.clone()).streaming(true);
    Ok(Job::new(run.agent.clone(), &request)?.tenant(tenant_of(&run.session)).extra(options.to_extra()?))
}

fn tenant_of(session: &str) -> String {
    SessionId::parse(session).map_or_else(String::new, |id| id.user().to_owned())
}

/// Derives the caller of a run from its tenant and user. It has no limits.
fn on_behalf_of(at: &RunAddress, user: Option<&str>) -> Caller {
    let subject = user.and_then(SessionId::parse).map_or_else(|| "recovery".to_owned(), |id| id.session().to_owned());
    Caller::new(tenant_of(&at.session), subject)
}

/// Copies an error. Its sources stay with the original.
fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message().to_owned()).with_retry(error.retry());
    error.checkpoint().into_iter().cloned().fold(copy, Error::with_checkpoint)
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("runs", &*self.runs()).finish_non_exhaustive()
    }
}
