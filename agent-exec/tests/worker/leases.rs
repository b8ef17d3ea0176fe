//! Leases that are lost.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Answer, Error, ErrorKind, Result, async_trait,
    dispatch::{
        Claim, Claimed, Dispatch, Dispatched, Job, Outcome, Queue, RunAddress, Signal, Standing, StandingKind, Told,
    },
    testing::Turn,
};
use agent_exec::Worker;
use agent_store::MemoryQueue;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Shared,
    common::{Log, hangs},
    job,
};

/// A queue that cannot be reached for a while.
#[derive(Clone, Default)]
struct Away {
    queue: MemoryQueue,
    is_away: Arc<AtomicBool>,
}

impl Away {
    fn reached(&self) -> Result<&MemoryQueue> {
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Store, "nobody answers")),
            false => Ok(&self.queue),
        }
    }
}

#[async_trait]
impl Dispatch for Away {
    async fn dispatch(&self, job: Job) -> Result<Dispatched> {
        self.reached()?.dispatch(job).await
    }

    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()> {
        self.reached()?.answer(run, answers).await
    }

    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool> {
        self.reached()?.signal(run, signal).await
    }

    async fn standing(&self, run: &RunAddress) -> Result<Option<Standing>> {
        self.reached()?.standing(run).await
    }
}

#[async_trait]
impl Queue for Away {
    async fn claim(&self, by: &Claim) -> Result<Option<Claimed>> {
        self.reached()?.claim(by).await
    }

    async fn renew(&self, receipts: &[u64], lease: Duration) -> Result<Vec<u64>> {
        self.reached()?.renew(receipts, lease).await
    }

    async fn release(&self, receipt: u64, outcome: Outcome, heard: &[u64]) -> Result<bool> {
        self.reached()?.release(receipt, outcome, heard).await
    }

    async fn signals(&self, receipts: &[u64]) -> Result<Vec<Told>> {
        self.reached()?.signals(receipts).await
    }

    async fn forget(&self, signals: &[u64]) -> Result<()> {
        self.reached()?.forget(signals).await
    }

    async fn news(&self, since: u64) -> u64 {
        self.queue.news(since).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_dropped_when_its_lease_has_run_out_unrenewed_and_goes_on_when_the_queue_is_back() {
    let (shared, log) = (Shared::default(), Log::default());
    let away = Away { queue: shared.queue.clone(), ..Away::default() };
    let call = || Turn::call("1", "hangs", json!({}));
    let agent = shared.agent([call(), call()]).tool(hangs("hangs", &log).repeatable()).build().expect("builds");
    let worker = Worker::builder(Arc::new(away.clone())).agent(agent).build().expect("builds");
    let process = tokio::spawn(async move { worker.run_until(std::future::pending()).await });
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(15)).await;
    away.is_away.store(true, Ordering::SeqCst);
    let since = Instant::now();
    while log.seen() != ["1 begins", "1 dropped"] {
        sleep(Duration::from_millis(100)).await;
        assert!(since.elapsed() < Duration::from_secs(60), "it is not dropped");
    }
    assert!(since.elapsed() > Duration::from_secs(20), "{:?}: it was still its own", since.elapsed());
    away.is_away.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(shared.shown(&run).await.failures, 1);
    shared.comes_to(&run, StandingKind::Running).await;
    process.abort();
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_run_is_told_to_the_queue_when_it_is_back() {
    let shared = Shared::default();
    let away = Away { queue: shared.queue.clone(), ..Away::default() };
    let slow = Turn::text("hello").delay(Duration::from_secs(5));
    let agent = shared.agent([slow]).build().expect("builds");
    let worker = Worker::builder(Arc::new(away.clone())).agent(agent).build().expect("builds");
    let _process = tokio::spawn(async move { worker.run_until(std::future::pending()).await });
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    away.is_away.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(10)).await;
    shared.comes_to(&run, StandingKind::Running).await;
    away.is_away.store(false, Ordering::SeqCst);
    shared.comes_to(&run, StandingKind::Done).await;
    assert_eq!(shared.shown(&run).await.failures, 0);
}
