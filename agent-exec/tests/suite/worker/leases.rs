//! Lost leases.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use agent_core::testing::Turn;
use agent_dispatch::JobStatusKind;
use agent_exec::Worker;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Shared, job, troubled::Troubled};
use crate::common::{Log, hangs};

#[tokio::test(start_paused = true)]
async fn a_run_is_dropped_when_its_lease_has_run_out_unrenewed_and_goes_on_when_the_queue_is_back() {
    let (shared, log) = (Shared::default(), Log::default());
    let away = Troubled::new(&shared.queue);
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
    shared.comes_to(&run, JobStatusKind::Running).await;
    process.abort();
}

#[tokio::test(start_paused = true)]
async fn what_became_of_a_run_is_told_to_the_queue_when_it_is_back() {
    let shared = Shared::default();
    let away = Troubled::new(&shared.queue);
    let slow = Turn::text("hello").delay(Duration::from_secs(5));
    let agent = shared.agent([slow]).build().expect("builds");
    let worker = Worker::builder(Arc::new(away.clone())).agent(agent).build().expect("builds");
    let _process = tokio::spawn(async move { worker.run_until(std::future::pending()).await });
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(1)).await;
    away.is_away.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(10)).await;
    shared.comes_to(&run, JobStatusKind::Running).await;
    away.is_away.store(false, Ordering::SeqCst);
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(shared.shown(&run).await.failures, 0);
}
