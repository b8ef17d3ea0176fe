//! State of a running worker: its leased jobs, and the renewal of their leases.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{Error, ErrorKind, Result};
use agent_dispatch::{Claimed, Signal, Told};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Inner, life::live};
use crate::{Agent, Drain, Drained, RunHandle};

/// A running worker.
pub(super) struct WorkerState {
    pub(super) worker: Arc<Inner>,
    pub(super) drain: Drain,
    held: Mutex<HashMap<u64, Held>>,
}

/// A leased job.
struct Held {
    lost: CancellationToken,
    /// End of the lease, as far as this process knows.
    good_until: Instant,
    handle: Option<RunHandle>,
    /// Pending signals of the run, in order, which the run has not consumed yet.
    told: Vec<Told>,
    /// Ids of the signals that the run consumed. A cancellation is never among them: it takes
    /// effect through the end of the run only.
    heard: Vec<u64>,
    /// Ids of consumed messages that are not yet known to be in the run's journal, with the time
    /// since which they should be on their way there.
    steered: Vec<(u64, Instant)>,
    /// True if the run was cancelled or paused.
    was_told: bool,
}

/// Registers a leased job with the worker until it is dropped.
pub(super) struct JobGuard {
    pub(super) lost: CancellationToken,
    shift: Arc<WorkerState>,
    receipt: u64,
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        let held = self.shift.lock().remove(&self.receipt);
        drop(held); // outside of the mutex
    }
}

impl Inner {
    pub(super) fn agent(&self, name: &str) -> Result<&Agent> {
        self.agents.get(name).ok_or_else(|| Error::config(format!("this worker has no agent '{name}'")))
    }

    /// Interval at which leases are renewed, and the timeout of a renewal: two renewals can fail
    /// before a lease expires.
    fn heartbeat(&self) -> Duration {
        self.claim.lease / 3
    }
}

impl WorkerState {
    pub(super) fn new(worker: Arc<Inner>) -> Self {
        Self { worker, drain: Drain::new(), held: Mutex::default() }
    }

    /// Claims jobs until the queue is empty, the concurrency limit is reached, or the worker shuts
    /// down; returns true if the limit is reached.
    pub(super) async fn fill(self: &Arc<Self>, runs: &mut JoinSet<()>, ends: &CancellationToken) -> bool {
        while runs.len() < self.worker.at_once && !ends.is_cancelled() {
            let (queue, claim) = (&self.worker.queue, &self.worker.claim);
            let begun = Instant::now();
            let answer = timeout(self.worker.claim.lease, queue.claim(claim)).await;
            if let Ok(Ok(_)) = &answer {
                self.worker.hooks.queue_answered();
            }
            match answer {
                Ok(Ok(Some(claimed))) => {
                    let stay = self.enter(&claimed, begun + claim.lease);
                    drop(runs.spawn(live(self.clone(), claimed, stay)));
                }
                Ok(Ok(None)) => return false,
                Ok(Err(e)) => {
                    tracing::warn!(error = %e, "the queue gives no runs; trying again");
                    return false;
                }
                Err(_) => {
                    tracing::warn!("the queue does not answer; trying again");
                    return false;
                }
            }
        }
        true
    }

    fn enter(self: &Arc<Self>, claimed: &Claimed, good_until: Instant) -> JobGuard {
        let lost = CancellationToken::new();
        let held = Held {
            lost: lost.clone(),
            good_until,
            handle: None,
            told: Vec::new(),
            heard: Vec::new(),
            steered: Vec::new(),
            was_told: false,
        };
        self.lock().insert(claimed.receipt, held);
        JobGuard { lost, shift: self.clone(), receipt: claimed.receipt }
    }

    pub(super) fn has_begun(&self, receipt: u64, handle: RunHandle) {
        if let Some(held) = self.lock().get_mut(&receipt) {
            held.begin(handle);
        }
    }

    /// True if a cancellation of the run is known to this worker.
    pub(super) fn is_cancelled(&self, receipt: u64) -> bool {
        let is_cancel = |told: &Told| told.signal == Signal::Cancel;
        self.lock().get(&receipt).is_some_and(|held| held.told.iter().any(is_cancel))
    }

    pub(super) fn heard(&self, receipt: u64) -> Vec<u64> {
        self.lock().get(&receipt).map(|held| held.heard.clone()).unwrap_or_default()
    }

    pub(super) fn was_told(&self, receipt: u64) -> bool {
        self.lock().get(&receipt).is_some_and(|held| held.was_told)
    }

    pub(super) async fn drain(&self, within: Duration) -> Drained {
        self.drain.drain(within).await
    }

    /// Renews the leases, and deletes the signals that are in the runs' journals. A run whose lease
    /// is lost is dropped.
    async fn renew(&self) {
        let (receipts, heartbeat) = (self.receipts(), self.worker.heartbeat());
        if receipts.is_empty() {
            return;
        }
        let asked = Instant::now();
        let good = match timeout(heartbeat, self.worker.queue.renew(&receipts, self.worker.claim.lease)).await {
            Ok(Ok(good)) => {
                self.worker.hooks.queue_answered();
                Some(good)
            }
            Ok(Err(e)) => {
                tracing::warn!(error = %e, "leases could not be renewed; trying again");
                None
            }
            Err(_) => None,
        };
        for (receipt, held) in &mut *self.lock() {
            match &good {
                Some(good) if good.contains(receipt) => held.good_until = asked + self.worker.claim.lease,
                Some(_) if receipts.contains(receipt) => held.lost.cancel(),
                _ if held.good_until <= Instant::now() => held.lost.cancel(),
                _ => {}
            }
        }
        let kept = self.kept_by_now(heartbeat);
        if good.is_some()
            && !kept.is_empty()
            && let Ok(Err(e)) = timeout(heartbeat, self.worker.queue.forget(&kept)).await
        {
            tracing::warn!(error = %e, "what runs were told could not be forgotten; they may be told again");
        }
    }

    /// Returns the messages that runs accepted long enough ago to be in their journals.
    fn kept_by_now(&self, age: Duration) -> Vec<u64> {
        let mut kept = Vec::new();
        for held in self.lock().values_mut() {
            if !held.handle.as_ref().is_some_and(|handle| handle.inbox.is_kept()) {
                held.steered.iter_mut().for_each(|(_, at)| *at = Instant::now());
            }
            let (old, new): (Vec<_>, _) = held.steered.drain(..).partition(|(_, at)| at.elapsed() >= age);
            held.steered = new;
            kept.extend(old.into_iter().map(|(id, _)| id));
        }
        kept
    }

    /// Delivers the pending signals to the runs.
    pub(super) async fn listen(&self) {
        let receipts = self.receipts();
        if receipts.is_empty() {
            return;
        }
        match timeout(self.worker.heartbeat(), self.worker.queue.signals(&receipts)).await {
            Ok(Ok(told)) => {
                self.worker.hooks.queue_answered();
                let mut held = self.lock();
                told.into_iter()
                    .for_each(|told| held.get_mut(&told.receipt).into_iter().for_each(|held| held.hear(&told)));
            }
            Ok(Err(e)) => tracing::warn!(error = %e, "the queue does not say what runs are told; trying again"),
            Err(_) => {}
        }
    }

    fn receipts(&self) -> Vec<u64> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Attaches the started run, and delivers the signals that arrived before.
    fn begin(&mut self, handle: RunHandle) {
        let told: Vec<_> = mem::take(&mut self.told);
        self.handle = Some(handle);
        told.into_iter().for_each(|told| self.hear(&told));
    }

    fn hear(&mut self, told: &Told) {
        if self.told.iter().any(|known| known.id == told.id) {
            return;
        }
        self.told.push(told.clone());
        let Some(handle) = &self.handle else { return };
        match &told.signal {
            Signal::Cancel => {
                self.was_told = true;
                return handle.cancel();
            }
            Signal::Pause => {
                self.was_told = true;
                handle.pause();
            }
            Signal::Steer(message) => match handle.steer(message.clone()) {
                Ok(()) => self.steered.push((told.id, Instant::now())),
                // The run accepts no more messages; the signal stays pending until the run resumes,
                // if it does.
                Err(e) if e.kind() == ErrorKind::Stopped => return,
                Err(e) => tracing::warn!(error = %e, "a run was told what it cannot take"),
            },
            _ => tracing::warn!("a run was told what this release does not know"),
        }
        self.heard.push(told.id);
    }
}

/// Renews leases, delivers signals and fires due schedules, forever and concurrently.
pub(super) async fn keep(shift: Arc<WorkerState>) {
    tokio::join!(renew(&shift), listen(&shift), fire(&shift));
}

async fn renew(shift: &WorkerState) {
    let mut beat = interval(shift.worker.heartbeat());
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let _ = beat.tick().await;
        shift.renew().await;
    }
}

async fn listen(shift: &WorkerState) {
    let mut seen = 0;
    loop {
        // Without a notification, signals are fetched after the poll interval.
        if let Ok(news) = timeout(shift.worker.poll, shift.worker.queue.news(seen)).await {
            seen = news;
        }
        shift.listen().await;
    }
}

async fn fire(shift: &WorkerState) {
    let mut poll = interval(shift.worker.poll);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let _ = poll.tick().await;
        match timeout(shift.worker.claim.lease, shift.worker.queue.fire()).await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => tracing::warn!(error = %e, "schedules do not fire; trying again"),
            Err(_) => tracing::warn!("the queue does not answer; trying again"),
        }
    }
}
