//! The queue in a database, beside what every queue does.

use std::{sync::Arc, time::Duration};

use agent_core::{
    ErrorKind, RunRequest,
    dispatch::{Claim, Dispatch, Job, Outcome, Queue, Standing, Upkeep},
};
use agent_store::{MemoryQueue, PostgresQueue, QueueLimits};

use crate::{Place, block_on};

pub(crate) async fn open(place: &Place, limits: QueueLimits, listen: bool) -> PostgresQueue {
    let builder = PostgresQueue::builder(&place.url).schema(&place.schema).limits(limits).listen(listen);
    builder.connect().await.expect("connects")
}

/// A way to open queues for the suite; in memory without a server, which was said.
pub(crate) fn opener(
    place: fn() -> Option<Place>,
    listen: bool,
) -> impl Fn(QueueLimits) -> Arc<dyn Upkeep> + Send + Sync {
    move |limits| match place() {
        Some(place) => Arc::new(block_on(open(&place, limits, listen))),
        None => Arc::new(MemoryQueue::with_limits(limits)),
    }
}

fn job(run: &str) -> Job {
    Job::new("a", &RunRequest::user("hello").run_id(run)).expect("it is data")
}

fn by(worker: &str) -> Claim {
    Claim::new(worker, ["a".into()], Duration::from_secs(60))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_woken_by_a_job_that_another_process_sends() {
    let Some(place) = Place::new() else { return };
    let (ours, theirs) =
        (open(&place, QueueLimits::default(), true).await, open(&place, QueueLimits::default(), false).await);
    let mut seen = ours.news(0).await;
    for n in 0..3 {
        let waking = tokio::time::timeout(Duration::from_secs(30), ours.news(seen));
        let (woken, sent) = tokio::join!(waking, theirs.dispatch(job(&format!("r{n}"))));
        (seen, _) = (woken.expect("is woken"), sent.expect("takes it"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_one_queue_and_what_they_do_survives_a_lost_connection() {
    let Some(place) = Place::new() else { return };
    let (one, two) =
        (open(&place, QueueLimits::default(), true).await, open(&place, QueueLimits::default(), true).await);
    let run = job("r").at;
    one.dispatch(job("r")).await.expect("takes it");
    place.cut().await;
    let claimed = two.claim(&by("w2")).await.expect("on another connection").expect("there is one");
    assert_eq!(one.standing(&run).await.expect("reads"), Some(Standing::Running { worker: "w2".into() }));
    assert_eq!(one.claim(&by("w1")).await.expect("works"), None);
    place.cut().await;
    assert_eq!(two.renew(&[claimed.receipt], Duration::from_secs(9)).await.expect("works"), [claimed.receipt]);
    assert!(two.release(claimed.receipt, Outcome::Done, &[]).await.expect("works"));
    assert_eq!(one.standing(&run).await.expect("reads"), Some(Standing::Done));
}

#[tokio::test]
async fn people_read_the_queue_with_psql() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("r").tenant("acme").priority(3)).await.expect("takes it");
    let sql = "SELECT count(*) FROM jobs WHERE agent = 'a' AND run = 'r' AND tenant = 'acme' AND priority = 3
               AND standing = 'queued' AND created > now() - interval '1 hour'";
    assert_eq!(place.count(sql).await, 1);
}

#[tokio::test]
async fn a_job_that_a_newer_release_wrote_is_refused_with_its_number() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("r")).await.expect("takes it");
    place.execute("UPDATE job SET body = '{}'").await;
    let e = queue.claim(&by("w")).await.expect_err("it cannot be read");
    assert!(e.kind() == ErrorKind::Store && e.context("job").is_some_and(|job| job.starts_with("1: ")), "{e}");
}

#[tokio::test]
async fn a_claim_among_many_jobs_reads_the_first_of_each_tenant_alone() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("template")).await.expect("takes it");
    let many = "INSERT INTO job (agent, session, run, tenant, priority, body, standing, ready_at, failures, begun, worker, expires, created, changed)
                SELECT agent, session || n::text::bytea, run || n::text::bytea, tenant, priority, body, standing, ready_at, failures, begun,
                       worker, expires, created, changed FROM job, generate_series(1, 20000) n; ANALYZE job";
    place.execute(many).await;
    let began = std::time::Instant::now();
    for _ in 0..20 {
        queue.claim(&by("w")).await.expect("works").expect("there is one");
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?} for 20 claims", began.elapsed());
}
