//! A queue with injected faults.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{Answer, Error, ErrorKind, Result, async_trait};
use agent_dispatch::{Claim, Claimed, Dispatch, Dispatched, Job, JobStatus, Outcome, Queue, RunAddress, Signal, Told};
use agent_store::MemoryQueue;
use tokio::time::sleep;

#[derive(Clone, Default)]
pub(crate) struct Troubled {
    pub(crate) queue: MemoryQueue,
    /// The queue cannot be reached.
    pub(crate) is_away: Arc<AtomicBool>,
    /// The queue delivers no signals until a run is released.
    pub(crate) is_silent: Arc<AtomicBool>,
    /// Duration of a claim.
    pub(crate) claims_take: Duration,
    pub(crate) claims: Arc<AtomicU32>,
}

impl Troubled {
    pub(crate) fn new(queue: &MemoryQueue) -> Self {
        Self { queue: queue.clone(), ..Self::default() }
    }

    fn reached(&self) -> Result<&MemoryQueue> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Store, "nobody answers")),
            false => Ok(&self.queue),
        }
    }
}

#[async_trait]
impl Dispatch for Troubled {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        self.reached()?.dispatch(job).await
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        self.reached()?.answer(run, answers).await
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        self.reached()?.signal(run, signal).await
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<JobStatus>> {
        self.reached()?.standing(run).await
    }
}

#[async_trait]
impl Queue for Troubled {
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>> {
        sleep(self.claims_take).await;
        let claimed = self.reached()?.claim(by).await?;
        self.claims.fetch_add(u32::from(claimed.is_some()), Ordering::SeqCst);
        Ok(claimed)
    }

    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>> {
        self.reached()?.renew(receipts, lease).await
    }

    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64], stands: bool) -> Result<bool> {
        let released = self.reached()?.release(receipt, outcome, heard, stands).await;
        self.is_silent.store(false, Ordering::SeqCst);
        released
    }

    async fn fire(&self) -> Result<()> {
        self.reached()?.fire().await
    }

    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>> {
        match self.is_silent.load(Ordering::SeqCst) {
            true => Ok(Vec::new()),
            false => self.reached()?.signals(receipts).await,
        }
    }

    async fn forget(&self, signals: &[u64]) -> Result<()> {
        self.reached()?.forget(signals).await
    }

    async fn news(&self, since: u64) -> u64 {
        self.queue.news(since).await
    }
}
