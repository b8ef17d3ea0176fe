//! Tests of the in-memory queue.

#![cfg(feature = "queue")]

use std::{sync::Arc, time::Duration};

use agent_core::RunRequest;
use agent_dispatch::{Claim, Dispatch, Job, Queue, QueueAdmin};
use agent_store::{MemoryQueue, QueueLimits};

mod conformance {
    use super::*;

    agent_store::queue_conformance!(|| {
        let open = |limits: QueueLimits| Arc::new(MemoryQueue::with_limits(limits)) as Arc<dyn QueueAdmin>;
        (open, ())
    });
}

#[tokio::test(start_paused = true)]
async fn a_lease_runs_out_on_the_clock_that_tests_move() {
    let queue = MemoryQueue::new();
    queue.dispatch(Job::new("a", &RunRequest::user("x")).expect("data")).await.expect("takes it");
    let by = Claim::new("w", ["a".into()], Duration::from_secs(30));
    queue.claim(&by).await.expect("works").expect("there is one");
    tokio::time::advance(Duration::from_secs(29)).await;
    assert!(queue.claim(&by).await.expect("works").is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(queue.claim(&by).await.expect("works").is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_news_misses_none() {
    let queue = MemoryQueue::new();
    let seen = queue.news(0).await;
    queue.dispatch(Job::new("a", &RunRequest::user("x")).expect("data")).await.expect("takes it");
    let newer = queue.news(seen).await;
    assert!(newer > seen);
    let nothing = tokio::time::timeout(Duration::from_secs(9), queue.news(newer)).await;
    assert!(nothing.is_err(), "there was nothing since");
}
