//! Tests of the PostgreSQL queue, beside the conformance tests.

use std::{sync::Arc, time::Duration};

use agent_core::RunRequest;
use agent_dispatch::{Claim, Dispatch, Job, JobStatus, JobStatusKind, Outcome, Queue, QueueAdmin, Schedule, Wanted};
use agent_store::{MemoryQueue, PostgresQueue, QueueLimits};

use super::{Place, block_on, stalling::Stalling};

pub(crate) async fn open(place: &Place, limits: QueueLimits, listen: bool) -> PostgresQueue {
    let builder = PostgresQueue::builder(&place.url).schema(&place.schema).limits(limits).listen(listen);
    builder.connect().await.expect("connects")
}

/// Returns a function that opens queues for the suite; in memory without a server, which is logged.
pub(crate) fn opener(
    place: fn() -> Option<Place>,
    listen: bool,
) -> impl Fn(QueueLimits) -> Arc<dyn QueueAdmin> + Send + Sync {
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
    assert_eq!(one.standing(&run).await.expect("reads"), Some(JobStatus::Running { worker: "w2".into() }));
    assert_eq!(one.claim(&by("w1")).await.expect("works"), None);
    place.cut().await;
    assert_eq!(two.renew(&[claimed.receipt], Duration::from_secs(9)).await.expect("works"), [claimed.receipt]);
    assert!(two.release(claimed.receipt, Outcome::Done, &[], true).await.expect("works"));
    assert_eq!(one.standing(&run).await.expect("reads"), Some(JobStatus::Done));
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
async fn a_worker_leaves_jobs_that_it_cannot_read_unchanged_to_a_newer_one() {
    let Some(place) = Place::new() else { return };
    let old = open(&place, QueueLimits::default(), false).await;
    for run in ["unknown", "answered", "rests", "later", "good"] {
        old.dispatch(job(run).tenant(run)).await.expect("takes it");
    }
    let newer = "CREATE TABLE written AS SELECT run, body, answers, taken FROM job;
                 UPDATE job SET body = '{}' WHERE run = 'unknown'; UPDATE job SET answers = '[]' WHERE run = 'answered';
                 UPDATE job SET taken = '{', standing = 'at_rest', ready_at = 0, begun = true WHERE run = 'rests';
                 UPDATE job SET version = 2 WHERE run = 'later'";
    place.execute(newer).await;
    let claimed = old.claim(&by("old")).await.expect("works").expect("there is one that can be read");
    assert_eq!(&*claimed.job.at.run, "good");
    for _ in 0..2 {
        assert_eq!(old.claim(&by("old")).await.expect("works"), None);
    }
    let queued = old.jobs(&Wanted::default().standing(JobStatusKind::Queued)).await.expect("lists");
    let listed: Vec<_> = queued.iter().map(|job| (&*job.job.at.run, job.failures, job.error.as_deref())).collect();
    assert_eq!(listed, [("later", 0, None), ("answered", 0, None), ("unknown", 0, None)]);
    assert_eq!(old.standing(&job("rests").at).await.expect("reads"), Some(JobStatus::AtRest));

    // A newer release reads them all.
    let readable = "UPDATE job SET body = written.body, answers = written.answers, taken = written.taken, version = 1
                    FROM written WHERE written.run = job.run";
    place.execute(readable).await;
    let new = open(&place, QueueLimits::default(), false).await;
    let mut runs = Vec::new();
    while let Some(claimed) = new.claim(&by("new")).await.expect("works") {
        runs.push(claimed.job.at.run.to_string());
    }
    runs.sort();
    assert_eq!(runs, ["answered", "later", "rests", "unknown"]);
}

#[tokio::test]
async fn a_claimed_job_whose_answers_the_worker_cannot_read_returns_to_the_queue() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("r")).await.expect("takes it");
    let claimed = queue.claim(&by("old")).await.expect("works").expect("there is one");
    place.execute("UPDATE job SET answers = '[]'").await;
    let rest = Outcome::AtRest { after: None, note: None };
    assert!(queue.release(claimed.receipt, rest, &[], true).await.expect("works"));
    assert_eq!(queue.standing(&job("r").at).await.expect("reads"), Some(JobStatus::Queued));
    assert_eq!(queue.claim(&by("old")).await.expect("works"), None, "it is left to a worker that reads the answers");
    assert_eq!(place.count("SELECT count(*) FROM job WHERE answers = '[]'").await, 1, "nothing is lost");
}

#[tokio::test]
async fn a_schedule_that_a_worker_cannot_read_stays_due_and_one_that_was_disabled_is_due_again_once_set() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    let schedule = Schedule::new("nightly", "0 6 * * *", job("template"));
    queue.set_schedule(&schedule).await.expect("sets it");
    place.execute("CREATE TABLE written AS SELECT body FROM schedule; UPDATE schedule SET body = '{}', due = 0").await;
    queue.fire().await.expect("works");
    let e = queue.schedules().await.expect_err("it cannot be read");
    assert!(e.context("queue").is_some_and(|which| which.contains("schedule 'nightly'")), "{e}");
    place.execute("UPDATE schedule SET body = written.body, version = 2 FROM written").await;
    queue.fire().await.expect("works");
    assert_eq!(place.count("SELECT count(*) FROM schedule WHERE due = 0").await, 1, "a newer worker fires it");
    assert_eq!(place.count("SELECT count(*) FROM job").await, 0);
    place.execute("UPDATE schedule SET version = 1").await;
    queue.fire().await.expect("works");
    assert_eq!(place.count("SELECT count(*) FROM job").await, 1);

    // Earlier releases disabled a schedule that they could not read.
    place.execute("UPDATE schedule SET due = 9223372036854775807").await;
    queue.set_schedule(&schedule).await.expect("sets it");
    let (_, due) = queue.schedules().await.expect("lists").remove(0);
    assert!(due < u64::MAX >> 1, "{due}");
    assert!(queue.remove_schedule("nightly").await.expect("works"));
}

#[tokio::test]
async fn questions_that_end_together_go_on_a_few_with_each_claim() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("template")).await.expect("takes it");
    let many = "INSERT INTO job (agent, session, run, tenant, priority, body, standing, ready_at, failures, begun, worker, expires, created, changed)
                SELECT agent, session || n::text::bytea, run || n::text::bytea, tenant, priority, body, 'at_rest', 0, failures, true,
                       worker, expires, created, changed FROM job, generate_series(1, 250) n";
    place.execute(many).await;
    queue.claim(&by("w")).await.expect("works").expect("there is one");
    let waiting = "SELECT count(*) FROM job WHERE standing = 'at_rest'";
    assert_eq!(place.count(waiting).await, 150);
    for _ in 0..2 {
        queue.claim(&by("w")).await.expect("works").expect("there is one");
    }
    assert_eq!(place.count(waiting).await, 0);
}

/// Returns the statement that takes the lock of claims.
fn lock(place: &Place) -> String {
    let schema = place.schema.replace('"', "\"\"");
    format!("SELECT pg_advisory_xact_lock(hashtextextended('claim', hashtextextended(E'\"{schema}\"', 0)))")
}

fn briefly(worker: &str) -> Claim {
    Claim::new(worker, ["a".into()], Duration::from_secs(1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_others_are_in_the_way_of_gives_its_connection_back_and_leases_are_renewed() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("held")).await.expect("takes it");
    let held = queue.claim(&by("w")).await.expect("works").expect("there is one");
    queue.dispatch(job("waits")).await.expect("takes it");
    let other = place.client().await;
    other.batch_execute(&format!("BEGIN; {}", lock(&place))).await.expect("locks");
    for _ in 0..5 {
        let claim = tokio::time::timeout(Duration::from_millis(1), queue.claim(&briefly("w"))).await;
        assert!(claim.is_err(), "{claim:?}");
    }
    let receipts = [held.receipt];
    let renewing = tokio::time::timeout(Duration::from_secs(9), queue.renew(&receipts, Duration::from_secs(60)));
    assert_eq!(renewing.await.expect("in time").expect("works"), [held.receipt]);
    let e = queue.claim(&briefly("w")).await.expect_err("others are in the way");
    assert!(e.is_retryable() && e.message().contains("could not be acquired in time"), "{e}");
    other.batch_execute("COMMIT").await.expect("makes way");
    queue.claim(&briefly("w")).await.expect("works").expect("there is one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_with_nothing_to_do_are_in_nobodys_way() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    queue.dispatch(job("later").not_before(u64::MAX)).await.expect("takes it");
    let other = place.client().await;
    other.batch_execute(&format!("BEGIN; {}", lock(&place))).await.expect("locks");
    assert_eq!(queue.claim(&briefly("w")).await.expect("does not wait"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_lost_in_the_middle_of_a_claim_holds_up_the_others_for_a_part_of_its_lease() {
    let Some(place) = Place::new() else { return };
    let lost = Stalling::new().await;
    let theirs = open(&lost.place(&place), QueueLimits::default(), false).await;
    let ours = open(&place, QueueLimits::default(), false).await;
    ours.dispatch(job("r")).await.expect("takes it");
    // Its statement does not finish before the test lets it, and the caller has disconnected by
    // then.
    let slow = "CREATE TABLE opened ();
                CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
                    IF NEW.worker = 'lost' THEN
                        PERFORM pg_try_advisory_xact_lock(7001);
                        WHILE NOT EXISTS (SELECT FROM opened) LOOP PERFORM pg_sleep(0.01); END LOOP;
                    END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER slow BEFORE UPDATE ON job FOR EACH ROW EXECUTE FUNCTION slow()";
    place.execute(slow).await;
    let claiming = tokio::spawn(async move { theirs.claim(&briefly("lost")).await });
    let holds = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7001";
    while place.count(holds).await == 0 {
        assert!(!claiming.is_finished(), "it never came so far");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lost.stall();
    place.execute("INSERT INTO opened DEFAULT VALUES").await;
    let began = std::time::Instant::now();
    let claimed = ours.claim(&by("w")).await.expect("works").expect("there is one");
    assert_eq!((claimed.failures, began.elapsed() < Duration::from_secs(8)), (0, true), "{:?}", began.elapsed());
    claiming.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stalls_with_one_job_costs_a_worker_that_job_alone() {
    let Some(place) = Place::new() else { return };
    let queue = open(&place, QueueLimits::default(), false).await;
    let mut receipts = Vec::new();
    for run in ["stalled", "one", "two"] {
        queue.dispatch(job(run)).await.expect("takes it");
        receipts.push(queue.claim(&by("w")).await.expect("works").expect("there is one").receipt);
    }
    let other = place.client().await;
    other.batch_execute("BEGIN; SELECT FROM job WHERE run = 'stalled' FOR UPDATE").await.expect("locks");
    let (began, lease) = (std::time::Instant::now(), Duration::from_secs(6));
    let mut renewed = queue.renew(&receipts, lease).await.expect("works");
    renewed.sort_unstable();
    assert_eq!((&renewed[..], began.elapsed() < lease / 2), (&receipts[1..], true), "{:?}", began.elapsed());
    other.batch_execute("COMMIT").await.expect("makes way");
    assert_eq!(queue.renew(&receipts, lease).await.expect("works").len(), 3, "nobody has claimed it meanwhile");
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
