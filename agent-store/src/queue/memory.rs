//! In-memory job queue: [`MemoryQueue`].

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use agent_core::{Answer, Result, async_trait};
use agent_dispatch::{
    Claim, Claimed, Dispatch, Dispatched, Job, JobStatus, JobStatusKind, Outcome, Queue, QueueAdmin, QueuedJob,
    RunAddress, Schedule, Signal, Told, Wanted,
};
use tokio::time::Instant;

use super::{
    limits::QueueLimits,
    news::News,
    record::{Record, Taken, cancels, later, millis, waits_for_nothing, written},
    schedule::{Times, in_words},
};

/// In-memory job queue for tests and single-process programs; its jobs are lost with the process.
/// Clones share one queue.
///
/// ```
/// use agent_core::RunRequest;
/// use agent_dispatch::{Dispatch, Dispatched, Job};
/// use agent_store::MemoryQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agent_core::Error> {
/// let queue = MemoryQueue::new();
/// let job = Job::new("helper", &RunRequest::user("hello").run_id("r1"))?;
/// assert_eq!(queue.dispatch(job.clone()).await?, Dispatched::New);
/// assert_eq!(queue.dispatch(job).await?, Dispatched::Known, "it is the same run");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryQueue(Arc<Inner>);

struct Inner {
    limits: QueueLimits,
    /// Wall-clock time at creation; tokio's clock counts from there.
    epoch: (u64, Instant),
    state: Mutex<State>,
    news: News,
}

#[derive(Default)]
struct State {
    /// Jobs by order of arrival.
    jobs: BTreeMap<u64, Record>,
    runs: HashMap<RunAddress, u64>,
    /// Signals with their ids and the jobs that they belong to.
    signals: Vec<(u64, u64, Signal)>,
    schedules: BTreeMap<String, (Schedule, u64)>,
    /// Number of each tenant's last claim.
    turns: HashMap<String, u64>,
    /// Last number given to a job, lease token, signal or claim.
    last: u64,
}

impl Default for MemoryQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryQueue {
    /// Creates an empty queue without limits.
    pub fn new() -> Self {
        Self::with_limits(QueueLimits::default())
    }

    /// Creates an empty queue with these limits.
    pub fn with_limits(limits: QueueLimits) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis);
        let epoch = (wall, Instant::now());
        Self(Arc::new(Inner { limits, epoch, state: Mutex::default(), news: News::default() }))
    }

    fn now(&self) -> u64 {
        self.0.epoch.0 + millis(self.0.epoch.1.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the job of a run, if there is one.
    fn change<T>(&self, run: &RunAddress, change: impl FnOnce(&mut Record, u64) -> T) -> Option<T> {
        let (now, mut state) = (self.now(), self.lock());
        let id = *state.runs.get(run)?;
        let changed = change(state.jobs.get_mut(&id)?, now);
        drop(state);
        self.0.news.tell();
        Some(changed)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn count(&self, standing: JobStatusKind, which: impl Fn(&Job) -> bool) -> u64 {
        self.jobs.values().filter(|record| record.standing == standing && which(&record.job)).count() as u64
    }

    fn dispatch(&mut self, job: Job, limits: &QueueLimits, now: u64) -> Result<Dispatched> {
        if self.runs.contains_key(&job.at) {
            return Ok(Dispatched::Known);
        }
        written(&job)?;
        let queued = JobStatusKind::Queued;
        limits.admit(self.count(queued, |_| true), self.count(queued, |of| of.tenant == job.tenant))?;
        let id = self.next();
        self.runs.insert(job.at.clone(), id);
        self.jobs.insert(id, Record::new(job, now));
        Ok(Dispatched::New)
    }

    fn is_cancelled(&self, id: u64) -> bool {
        cancels(self.signals.iter().filter(|(_, job, _)| *job == id).map(|(.., signal)| signal))
    }

    /// Enqueues the jobs of schedules that are due and returns `true` if there were any. A job that
    /// the limits reject stays due.
    fn fire(&mut self, limits: &QueueLimits, now: u64) -> bool {
        let due: Vec<_> = self.schedules.values().filter(|(_, at)| *at <= now).cloned().collect();
        let mut fires = false;
        for (schedule, at) in due {
            if self.dispatch(schedule.job_at(&in_words(at)), limits, now).is_err() {
                continue;
            }
            fires = true;
            match Times::of(&schedule).and_then(|times| times.after(now)) {
                Ok(next) => drop(self.schedules.insert(schedule.name.clone(), (schedule, next))),
                Err(_) => drop(self.schedules.remove(&schedule.name)), // never due again
            }
        }
        fires
    }

    /// Returns the next job for these agents.
    fn candidate(&self, agents: &[Arc<str>], limits: &QueueLimits, now: u64) -> Option<u64> {
        let running = |which: &dyn Fn(&Job) -> bool| self.count(JobStatusKind::Running, which);
        let fits = |(_, record): &(&u64, &Record)| {
            let job = &record.job;
            record.standing == JobStatusKind::Queued
                && record.ready_at <= now
                && agents.contains(&job.at.agent)
                && running(&|of| of.tenant == job.tenant) < limits.of_tenant(&job.tenant)
                && running(&|of| of.at.agent == job.at.agent) < limits.of_agent(&job.at.agent)
        };
        let comes_first = |id: u64, record: &Record| {
            !self.jobs.iter().any(|(other, of)| {
                (&of.job.at.agent, &of.job.at.session) == (&record.job.at.agent, &record.job.at.session)
                    && *other != id
                    && match of.standing {
                        JobStatusKind::Running => true,
                        JobStatusKind::Queued => *other < id && (of.begun || of.ready_at <= now),
                        _ => false,
                    }
            })
        };
        let candidates = self.jobs.iter().filter(fits).filter(|(id, record)| comes_first(**id, record));
        let place = |id: u64, record: &Record| {
            let turn = self.turns.get(&record.job.tenant).copied().unwrap_or(0);
            (turn, record.job.tenant.clone(), -i32::from(record.job.priority), id)
        };
        candidates.min_by_key(|(id, record)| place(**id, record)).map(|(id, _)| *id)
    }

    fn held(&self, receipt: u64) -> Option<u64> {
        self.jobs.iter().find(|(_, record)| record.receipt == Some(receipt)).map(|(id, _)| *id)
    }
}

#[async_trait]
impl Dispatch for MemoryQueue {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        let dispatched = self.lock().dispatch(job, &self.0.limits, self.now())?;
        self.0.news.tell();
        Ok(dispatched)
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        written(&answers)?;
        self.change(run, |record, now| record.answer(answers, now)).unwrap_or_else(|| Err(waits_for_nothing(run)))
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        written(&signal)?;
        let (now, mut state) = (self.now(), self.lock());
        let Some(id) = state.runs.get(run).copied() else { return Ok(false) };
        let (is_cancelled, number) = (state.is_cancelled(id), state.next());
        let taken = state.jobs.get_mut(&id).map_or(Taken::No, |record| record.signal(&signal, is_cancelled, now));
        if taken == Taken::ForRun {
            state.signals.push((number, id, signal));
        }
        drop(state);
        self.0.news.tell();
        Ok(taken != Taken::No)
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        let state = self.lock();
        Ok(state.runs.get(run).map(|id| state.jobs[id].standing()))
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>> {
        let (now, mut state) = (self.now(), self.lock());
        state.jobs.values_mut().filter(|record| record.is_due(now)).for_each(|record| record.wake(now));
        let Some(id) = state.candidate(&by.agents, &self.0.limits, now) else { return Ok(None) };
        let (receipt, turn) = (state.next(), state.next());
        let record = state.jobs.get_mut(&id).expect("the job was just found");
        let (claimed, tenant) = (record.claim(receipt, by, now), record.job.tenant.clone());
        state.turns.insert(tenant, turn);
        Ok(Some(claimed))
    }

    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>> {
        let (now, mut state) = (self.now(), self.lock());
        let held = |record: &&mut Record| record.receipt.is_some_and(|receipt| receipts.contains(&receipt));
        let renew = |record: &mut Record| {
            record.expires = later(now, lease);
            record.receipt
        };
        Ok(state.jobs.values_mut().filter(held).filter_map(renew).collect())
    }

    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64], stands: bool) -> Result<bool> {
        let (now, mut state) = (self.now(), self.lock());
        let Some(id) = state.held(receipt) else { return Ok(false) };
        state.signals.retain(|(signal, ..)| !heard.contains(signal));
        let is_cancelled = state.is_cancelled(id);
        let State { jobs, signals, .. } = &mut *state;
        let record = jobs.get_mut(&id).expect("the job was just found");
        record.release(outcome, stands, is_cancelled, now);
        signals.retain(|(_, job, signal)| *job != id || record.keeps(signal));
        drop(state);
        self.0.news.tell();
        Ok(true)
    }

    async fn fire(&self) -> Result<()> {
        let now = self.now();
        if self.lock().fire(&self.0.limits, now) {
            self.0.news.tell();
        }
        Ok(())
    }

    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>> {
        let state = self.lock();
        let told = |(id, job, signal): &(u64, u64, Signal)| {
            let receipt = state.jobs.get(job)?.receipt.filter(|receipt| receipts.contains(receipt))?;
            Some(Told::new(*id, receipt, signal.clone()))
        };
        Ok(state.signals.iter().filter_map(told).collect())
    }

    async fn forget(&self, signals: &[u64]) -> Result<()> {
        self.lock().signals.retain(|(id, ..)| !signals.contains(id));
        Ok(())
    }

    async fn news(&self, since: u64) -> u64 {
        self.0.news.after(since).await
    }
}

#[async_trait]
impl QueueAdmin for MemoryQueue {
    async fn jobs(&self, wanted: &Wanted) -> Result<Vec<QueuedJob>> {
        let state = self.lock();
        let asked = |record: &&Record| {
            wanted.standing.is_none_or(|standing| standing == record.standing)
                && wanted.tenant.as_ref().is_none_or(|tenant| *tenant == record.job.tenant)
                && wanted
                    .agents
                    .as_ref()
                    .is_none_or(|agents| agents.iter().any(|agent| **agent == *record.job.at.agent))
                && wanted.session.as_ref().is_none_or(|session| **session == *record.job.at.session)
                && wanted.run.as_ref().is_none_or(|run| **run == *record.job.at.run)
        };
        Ok(state.jobs.values().rev().filter(asked).take(wanted.most).map(Record::shown).collect())
    }

    async fn retry(&self, run: &RunAddress) -> Result<bool> {
        Ok(self.change(run, Record::retry).unwrap_or(false))
    }

    async fn remove(&self, run: &RunAddress) -> Result<bool> {
        let (now, mut state) = (self.now(), self.lock());
        let Some(id) = state.runs.get(run).copied() else { return Ok(false) };
        let record = &state.jobs[&id];
        if record.standing == JobStatusKind::Running && !record.is_due(now) {
            return Ok(false);
        }
        state.runs.remove(run);
        state.jobs.remove(&id);
        state.signals.retain(|(_, job, _)| *job != id);
        Ok(true)
    }

    async fn purge(&self, age: Duration) -> Result<u64> {
        let (before, mut state) = (self.now().saturating_sub(millis(age)), self.lock());
        let State { jobs, runs, .. } = &mut *state;
        let (all, done) =
            (jobs.len(), |record: &Record| record.standing == JobStatusKind::Done && record.changed <= before);
        jobs.retain(|_, record| !done(record));
        runs.retain(|_, id| jobs.contains_key(id));
        Ok((all - jobs.len()) as u64)
    }

    async fn set_schedule(&self, schedule: &Schedule) -> Result<()> {
        let next = Times::of(schedule)?.after(self.now())?;
        written(schedule)?;
        let mut state = self.lock();
        let before = state.schedules.get(&schedule.name).filter(|(before, _)| before.cron == schedule.cron);
        let due = before.map_or(next, |(_, due)| *due);
        state.schedules.insert(schedule.name.clone(), (schedule.clone(), due));
        Ok(())
    }

    async fn remove_schedule(&self, name: &str) -> Result<bool> {
        Ok(self.lock().schedules.remove(name).is_some())
    }

    async fn schedules(&self) -> Result<Vec<(Schedule, u64)>> {
        Ok(self.lock().schedules.values().cloned().collect())
    }
}

impl fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryQueue").field("jobs", &self.lock().jobs.len()).finish_non_exhaustive()
    }
}
