//! Conformance tests of queues.
// Over 500 lines: the claims of one contract, in the order of the list that generates their tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use agent_core::{Answer, ErrorKind, Message, RunRequest};
use agent_dispatch::{
    Claim, Claimed, Dispatched, Job, JobStatus, JobStatusKind, Outcome, QueueAdmin, RunAddress, Schedule, Signal, Told,
    Wanted,
};
use futures::future::join_all;
use serde_json::json;

use crate::QueueLimits;

/// Generates one test per claim about a queue ([`QueueAdmin`](agent_dispatch::QueueAdmin)). Takes a
/// closure that returns a function to open one fresh queue with given limits, and a guard that must
/// outlive it.
///
/// ```
/// mod in_memory {
///     use std::sync::Arc;
///
///     use agent_dispatch::QueueAdmin;
///     use agent_store::{MemoryQueue, QueueLimits};
///
///     agent_store::queue_conformance!(|| {
///         let open = |limits: QueueLimits| Arc::new(MemoryQueue::with_limits(limits)) as Arc<dyn QueueAdmin>;
///         (open, ())
///     });
/// }
/// ```
#[macro_export]
macro_rules! queue_conformance {
    ($make:expr) => {
        $crate::claims! { by_reference, $make;
            a_run_that_is_sent_twice_is_queued_once
            a_job_comes_as_it_was_sent_whatever_its_names_are
            tenants_take_turns_however_many_jobs_each_has
            higher_priorities_of_a_tenant_go_first_and_then_who_came_first
            a_session_has_one_run_out_at_a_time_in_order_of_arrival
            what_is_not_due_waits_and_holds_up_nobody
            a_worker_gets_the_jobs_of_its_agents_alone
            many_who_claim_at_once_get_each_job_once
            a_lease_that_ran_out_makes_way_and_its_old_holder_changes_nothing
            a_lease_that_is_renewed_is_kept
            a_job_whose_lease_ran_out_is_no_workers_and_can_be_removed
            whoever_claims_a_job_is_told_whether_a_worker_left_its_run_in_the_journal
            answers_are_kept_until_a_run_rests_that_had_them
            an_answer_that_comes_before_its_run_rests_is_not_lost
            a_run_at_rest_goes_on_by_itself_when_what_it_waits_for_has_ended
            what_waits_for_nothing_takes_no_answer
            signals_survive_a_worker_and_go_when_they_were_heard
            a_run_that_was_cancelled_as_it_came_to_rest_does_not_rest
            a_run_at_rest_that_is_cancelled_goes_to_a_worker_which_is_told
            a_message_waits_while_its_run_rests_and_is_told_when_it_goes_on
            a_pause_does_not_take_back_that_a_run_was_cancelled
            a_job_that_never_began_is_cancelled_and_paused_by_itself
            a_run_that_was_cancelled_is_told_when_it_is_retried_after_it_was_given_up
            a_job_that_was_paused_before_its_time_still_waits_for_it
            failures_are_counted_until_a_run_rests
            what_was_given_up_is_listed_and_tried_again_or_removed
            what_is_listed_was_asked_for_and_is_the_newest_of_that
            jobs_that_are_done_are_purged_and_others_are_not
            no_more_is_taken_than_the_limits_allow
            no_more_runs_at_once_than_the_limits_allow
            a_schedule_makes_one_job_of_each_time
            a_time_that_is_due_is_not_lost_when_its_schedule_is_set_again
            what_is_nested_too_deeply_is_refused_when_it_is_sent
        }
    };
}

type Open<'a> = &'a (dyn Fn(QueueLimits) -> Arc<dyn QueueAdmin> + Send + Sync);

const LEASE: Duration = Duration::from_secs(600);

fn job(run: &str) -> Job {
    Job::new("a", &RunRequest::user("hello").run_id(run)).expect("is serializable")
}

fn of_session(session: &str, run: &str) -> Job {
    Job::new("a", &RunRequest::user("hello").session(session).run_id(run)).expect("is serializable")
}

async fn send(queue: &dyn QueueAdmin, job: Job) -> RunAddress {
    let at = job.at.clone();
    assert_eq!(queue.dispatch(job).await.expect("accepts the job"), Dispatched::New);
    at
}

async fn claim_for(queue: &dyn QueueAdmin, lease: Duration) -> Option<Claimed> {
    queue.claim(&Claim::new("w", ["a".into()], lease)).await.expect("works")
}

async fn claim(queue: &dyn QueueAdmin) -> Option<Claimed> {
    claim_for(queue, LEASE).await
}

async fn next(queue: &dyn QueueAdmin) -> Claimed {
    claim(queue).await.expect("a job is available")
}

/// Claims all available jobs and returns their runs.
async fn rest(queue: &dyn QueueAdmin) -> Vec<String> {
    let mut runs = Vec::new();
    while let Some(claimed) = claim(queue).await {
        runs.push(claimed.job.at.run.to_string());
    }
    runs
}

async fn release(queue: &dyn QueueAdmin, claimed: &Claimed, outcome: Outcome) {
    assert!(queue.release(claimed.receipt, outcome, &[], true).await.expect("works"), "the lease is valid");
}

fn answers(value: &str) -> BTreeMap<String, Answer> {
    BTreeMap::from([("q".to_owned(), json!(value).into())])
}

fn at_rest() -> Outcome {
    Outcome::AtRest { after: None, note: None }
}

async fn standing(queue: &dyn QueueAdmin, run: &RunAddress) -> Option<JobStatus> {
    queue.standing(run).await.expect("reads")
}

/// Dispatching the same run again, at any time, changes nothing.
pub async fn a_run_that_is_sent_twice_is_queued_once(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    for outcome in [None, Some(Outcome::Done)] {
        assert_eq!(queue.dispatch(job("r").priority(9)).await.expect("accepts the job"), Dispatched::Known);
        if let Some(outcome) = outcome {
            let claimed = next(&*queue).await;
            assert_eq!(claimed.job.priority, 0, "the first job is kept");
            release(&*queue, &claimed, outcome).await;
        }
    }
    assert_eq!(queue.dispatch(job("r")).await.expect("accepts the job"), Dispatched::Known);
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (Some(JobStatus::Done), None));
}

/// Jobs survive without loss, and names are opaque.
pub async fn a_job_comes_as_it_was_sent_whatever_its_names_are(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for name in ["", "'; DROP TABLE job; --", "日本 \u{1f600}", "nul\0in", "%_"] {
        let request = RunRequest::user(name).session(name).run_id(name).state(name, name);
        let job = Job::new(name, &request).expect("data").tenant(name).extra(json!({name: [name, 0.1]}));
        let run = send(&*queue, job.clone()).await;
        let by = Claim::new(name, [name.into()], LEASE);
        let claimed = queue.claim(&by).await.expect("works").expect("a job is available");
        assert_eq!((claimed.job.clone(), claimed.answers.clone(), claimed.failures), (job, None, 0));
        assert!(matches!(standing(&*queue, &run).await, Some(JobStatus::Running { .. })));
        queue.answer(&run, BTreeMap::from([(name.to_owned(), json!(name).into())])).await.expect("taken");
        release(&*queue, &claimed, Outcome::Dead { error: name.to_owned() }).await;
        assert_eq!(queue.jobs(&Wanted::default().tenant(name)).await.expect("lists").len(), 1, "{name}");
    }
}

/// A tenant with many jobs does not delay one with few.
pub async fn tenants_take_turns_however_many_jobs_each_has(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for n in 0..4 {
        send(&*queue, job(&format!("big{n}")).tenant("big").priority(100)).await;
    }
    for n in 0..2 {
        send(&*queue, job(&format!("small{n}")).tenant("small")).await;
    }
    assert_eq!(rest(&*queue).await, ["big0", "small0", "big1", "small1", "big2", "big3"]);
}

/// Independently of the order of dispatch.
pub async fn higher_priorities_of_a_tenant_go_first_and_then_who_came_first(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for (run, priority) in [("a", 0), ("b", -5), ("c", 7), ("d", 0), ("e", 7)] {
        send(&*queue, job(run).priority(priority)).await;
    }
    assert_eq!(rest(&*queue).await, ["c", "e", "a", "d", "b"]);
}

/// Also while a job that was begun and failed waits for its retry.
pub async fn a_session_has_one_run_out_at_a_time_in_order_of_arrival(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for (session, run) in [("s", "s1"), ("s", "s2"), ("t", "t1"), ("s", "s3")] {
        send(&*queue, of_session(session, run)).await;
    }
    let first = next(&*queue).await;
    assert_eq!((&*first.job.at.run, rest(&*queue).await), ("s1", vec!["t1".to_owned()]));
    let after = Outcome::Later { after: LEASE, error: Some("busy".into()) };
    release(&*queue, &first, after).await;
    assert_eq!(claim(&*queue).await, None, "the others were added later");
    assert!(queue.remove(&first.job.at).await.expect("works"));
    let second = next(&*queue).await;
    assert_eq!(&*second.job.at.run, "s2");
    release(&*queue, &second, at_rest()).await;
    assert_eq!(&*next(&*queue).await.job.at.run, "s3", "a suspended job does not block");
}

/// A job scheduled for tomorrow does not block one for today.
pub async fn what_is_not_due_waits_and_holds_up_nobody(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let tomorrow = u64::MAX >> 2;
    send(&*queue, of_session("s", "later").not_before(tomorrow)).await;
    send(&*queue, of_session("s", "now").not_before(1)).await;
    assert_eq!(rest(&*queue).await, ["now"]);
    let listed = queue.jobs(&Wanted::default().standing(JobStatusKind::Queued)).await.expect("lists");
    assert_eq!(listed.iter().map(|job| job.ready_at).collect::<Vec<_>>(), [tomorrow]);
}

/// Jobs of agents without a worker wait.
pub async fn a_worker_gets_the_jobs_of_its_agents_alone(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for agent in ["a", "b", "c"] {
        send(&*queue, Job::new(agent, &RunRequest::user("x").run_id(agent)).expect("data")).await;
    }
    let by = Claim::new("w", ["b".into(), "c".into()], LEASE);
    let mut agents = Vec::new();
    while let Some(claimed) = queue.claim(&by).await.expect("works") {
        agents.push(claimed.job.at.agent.to_string());
    }
    assert_eq!(agents, ["b", "c"]);
}

/// Meanwhile no session is claimed twice.
pub async fn many_who_claim_at_once_get_each_job_once(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for n in 0..40 {
        send(&*queue, of_session(&format!("s{}", n % 20), &format!("r{n}")).tenant(format!("t{}", n % 3))).await;
    }
    let workers = (0..8).map(|_| {
        let queue = queue.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            while let Some(claimed) = claim(&*queue).await {
                mine.push(claimed);
            }
            mine
        })
    });
    let claimed: Vec<_> = join_all(workers).await.into_iter().flat_map(|mine| mine.expect("no panic")).collect();
    let sessions: BTreeSet<_> = claimed.iter().map(|claimed| claimed.job.at.session.clone()).collect();
    let receipts: BTreeSet<_> = claimed.iter().map(|claimed| claimed.receipt).collect();
    assert_eq!((claimed.len(), sessions.len(), receipts.len()), (20, 20, 20));
}

/// The expiry counts as a failure whose error names the worker.
pub async fn a_lease_that_ran_out_makes_way_and_its_old_holder_changes_nothing(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let sleeper = claim_for(&*queue, Duration::ZERO).await.expect("a job is available");
    let heir = next(&*queue).await;
    assert!(heir.receipt != sleeper.receipt && heir.job == sleeper.job);
    assert_eq!(heir.failures, 1);
    assert!(heir.error.as_ref().is_some_and(|error| error.contains("worker 'w'")), "{heir:?}");
    assert_eq!(queue.renew(&[sleeper.receipt, heir.receipt], LEASE).await.expect("works"), [heir.receipt]);
    assert!(!queue.release(sleeper.receipt, Outcome::Done, &[], true).await.expect("works"));
    assert_eq!(standing(&*queue, &run).await, Some(JobStatus::Running { worker: "w".into() }));
    release(&*queue, &heir, Outcome::Done).await;
    assert!(!queue.release(heir.receipt, Outcome::Done, &[], true).await.expect("works"), "the lease was released");
}

/// The holder keeps the lease.
pub async fn a_lease_that_is_renewed_is_kept(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    send(&*queue, job("r")).await;
    let held = claim_for(&*queue, Duration::ZERO).await.expect("a job is available");
    assert_eq!(queue.renew(&[held.receipt], LEASE).await.expect("works"), [held.receipt]);
    assert_eq!(claim(&*queue).await, None);
    release(&*queue, &held, Outcome::Done).await;
}

/// Even if nothing was claimed since.
pub async fn a_job_whose_lease_ran_out_is_no_workers_and_can_be_removed(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let lost = claim_for(&*queue, Duration::ZERO).await.expect("a job is available");
    assert!(queue.remove(&run).await.expect("works"));
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (None, None));
    assert!(!queue.release(lost.receipt, Outcome::Done, &[], true).await.expect("works"));
}

/// Whatever happens in between: failures, dead letters and retries. Unknown after the death of a
/// worker.
pub async fn whoever_claims_a_job_is_told_whether_a_worker_left_its_run_in_the_journal(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let later = || Outcome::Later { after: Duration::ZERO, error: None };
    assert!(!claim_for(&*queue, Duration::ZERO).await.expect("a job is available").stands);
    for (before, outcome, stands) in [
        (false, later(), false),
        (false, later(), true),
        (true, later(), false),
        (true, Outcome::Dead { error: "no credit".into() }, false),
    ] {
        let claimed = next(&*queue).await;
        assert_eq!(claimed.stands, before, "before {outcome:?}");
        assert!(queue.release(claimed.receipt, outcome, &[], stands).await.expect("works"));
    }
    assert!(queue.retry(&run).await.expect("works"));
    assert!(claim_for(&*queue, Duration::ZERO).await.expect("a job is available").stands);
    assert!(next(&*queue).await.stands, "a worker died with the job");
}

/// The answers of a worker that dies are handed to the next one.
pub async fn answers_are_kept_until_a_run_rests_that_had_them(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    release(&*queue, &next(&*queue).await, at_rest()).await;
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (Some(JobStatus::AtRest), None));
    queue.answer(&run, answers("yes")).await.expect("taken");
    let dies = claim_for(&*queue, Duration::ZERO).await.expect("it goes on");
    assert_eq!(dies.answers, Some(answers("yes")));
    let more = BTreeMap::from([("p".to_owned(), json!(1).into())]);
    let mut both = answers("yes");
    both.extend(more.clone());
    queue.answer(&run, more).await.expect("taken");
    let heir = next(&*queue).await;
    assert_eq!(heir.answers, Some(both));
    release(&*queue, &heir, at_rest()).await;
    assert_eq!(standing(&*queue, &run).await, Some(JobStatus::AtRest), "the answers are consumed");
    queue.answer(&run, BTreeMap::new()).await.expect("goes on");
    assert_eq!(next(&*queue).await.answers, Some(BTreeMap::new()));
}

/// A reader of the journal sees the question before the queue is updated.
pub async fn an_answer_that_comes_before_its_run_rests_is_not_lost(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let claimed = next(&*queue).await;
    queue.answer(&run, answers("early")).await.expect("taken");
    release(&*queue, &claimed, at_rest()).await;
    assert_eq!(next(&*queue).await.answers, Some(answers("early")));
}

/// A question with a deadline needs no process until then.
pub async fn a_run_at_rest_goes_on_by_itself_when_what_it_waits_for_has_ended(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    release(&*queue, &next(&*queue).await, Outcome::AtRest { after: Some(LEASE), note: None }).await;
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (Some(JobStatus::AtRest), None));
    queue.answer(&run, answers("yes")).await.expect("taken");
    release(&*queue, &next(&*queue).await, Outcome::AtRest { after: Some(Duration::ZERO), note: Some("ends".into()) })
        .await;
    let claimed = next(&*queue).await;
    assert_eq!((claimed.answers, claimed.failures), (None, 0));
}

/// The error kind is `Stale`.
pub async fn what_waits_for_nothing_takes_no_answer(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let stale = async |run: &RunAddress| {
        let e = queue.answer(run, answers("yes")).await.expect_err("it waits for nothing");
        assert_eq!(e.kind(), ErrorKind::Stale, "{e}");
    };
    stale(&RunAddress::new("a", "s", "never sent")).await;
    let run = send(&*queue, job("r")).await;
    stale(&run).await;
    release(&*queue, &next(&*queue).await, Outcome::Done).await;
    stale(&run).await;
}

/// Acknowledged signals are not delivered again; others are delivered to the next worker.
pub async fn signals_survive_a_worker_and_go_when_they_were_heard(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let dies = claim_for(&*queue, Duration::ZERO).await.expect("a job is available");
    let said = [Signal::Steer(Message::user("and be brief")), Signal::Pause, Signal::Cancel];
    for signal in said.clone() {
        assert!(queue.signal(&run, signal).await.expect("works"));
    }
    let told = queue.signals(&[dies.receipt]).await.expect("reads");
    assert_eq!(told.iter().map(|told| told.signal.clone()).collect::<Vec<_>>(), said);
    queue.forget(&[told[0].id]).await.expect("works");
    let heir = next(&*queue).await;
    assert_eq!(queue.signals(&[dies.receipt]).await.expect("reads"), Vec::<Told>::new());
    let told = queue.signals(&[heir.receipt]).await.expect("reads");
    assert_eq!(told.iter().map(|told| told.signal.clone()).collect::<Vec<_>>(), said[1..]);
    let heard: Vec<_> = told.iter().map(|told| told.id).collect();
    assert!(queue.release(heir.receipt, at_rest(), &heard, true).await.expect("works"));
    assert_eq!(standing(&*queue, &run).await, Some(JobStatus::AtRest));
    for signal in [Signal::Pause, Signal::Steer(Message::user("anybody?"))] {
        assert!(!queue.signal(&run, signal).await.expect("works"), "the run is suspended");
    }
}

/// Returns the signals that the worker of this job receives.
async fn told(queue: &dyn QueueAdmin, claimed: &Claimed) -> Vec<Signal> {
    queue.signals(&[claimed.receipt]).await.expect("reads").into_iter().map(|told| told.signal).collect()
}

/// Another worker delivers the cancellation.
pub async fn a_run_that_was_cancelled_as_it_came_to_rest_does_not_rest(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let claimed = next(&*queue).await;
    assert!(queue.signal(&run, Signal::Cancel).await.expect("works"));
    release(&*queue, &claimed, at_rest()).await;
    let again = next(&*queue).await;
    assert_eq!(told(&*queue, &again).await, [Signal::Cancel]);
    release(&*queue, &again, Outcome::Done).await;
    assert_eq!(standing(&*queue, &run).await, Some(JobStatus::Done));
}

/// The run does not resume as if it had not been cancelled.
pub async fn a_run_at_rest_that_is_cancelled_goes_to_a_worker_which_is_told(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    release(&*queue, &next(&*queue).await, Outcome::AtRest { after: Some(LEASE), note: None }).await;
    assert!(queue.signal(&run, Signal::Cancel).await.expect("works"));
    let failed = next(&*queue).await;
    assert_eq!(told(&*queue, &failed).await, [Signal::Cancel]);
    release(&*queue, &failed, Outcome::Later { after: Duration::ZERO, error: None }).await;
    let again = next(&*queue).await;
    assert_eq!(told(&*queue, &again).await, [Signal::Cancel], "the signal was not acknowledged");
    release(&*queue, &again, Outcome::Done).await;
    assert_eq!(standing(&*queue, &run).await, Some(JobStatus::Done));
    let paused = send(&*queue, job("p")).await;
    for signal in [Signal::Pause, Signal::Cancel] {
        assert!(queue.signal(&paused, signal).await.expect("works"));
    }
    assert_eq!(standing(&*queue, &paused).await, Some(JobStatus::Done), "the run never began");
}

/// The message does not occupy a worker, and survives a dead letter.
pub async fn a_message_waits_while_its_run_rests_and_is_told_when_it_goes_on(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let (run, brief) = (send(&*queue, job("r")).await, Signal::Steer(Message::user("and be brief")));
    let claimed = next(&*queue).await;
    for signal in [&brief, &Signal::Pause] {
        assert!(queue.signal(&run, signal.clone()).await.expect("works"));
    }
    release(&*queue, &claimed, at_rest()).await;
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (Some(JobStatus::AtRest), None));
    queue.answer(&run, answers("yes")).await.expect("taken");
    let again = next(&*queue).await;
    assert_eq!(told(&*queue, &again).await, std::slice::from_ref(&brief), "the pause is over");
    release(&*queue, &again, Outcome::Dead { error: "no credit".into() }).await;
    assert!(queue.retry(&run).await.expect("works"));
    assert_eq!(told(&*queue, &next(&*queue).await).await, [brief]);
}

/// The sender of the cancellation was promised the end of the run.
pub async fn a_pause_does_not_take_back_that_a_run_was_cancelled(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    release(&*queue, &next(&*queue).await, Outcome::Later { after: Duration::ZERO, error: None }).await;
    for signal in [Signal::Cancel, Signal::Pause] {
        assert!(queue.signal(&run, signal).await.expect("works"));
    }
    let claimed = next(&*queue).await;
    assert_eq!(told(&*queue, &claimed).await.first(), Some(&Signal::Cancel));
}

/// No worker is needed.
pub async fn a_job_that_never_began_is_cancelled_and_paused_by_itself(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let [cancelled, paused] = [send(&*queue, job("c")).await, send(&*queue, job("p")).await];
    assert!(queue.signal(&cancelled, Signal::Cancel).await.expect("works"));
    assert!(queue.signal(&paused, Signal::Pause).await.expect("works"));
    assert!(!queue.signal(&RunAddress::new("a", "s", "unknown"), Signal::Cancel).await.expect("works"));
    assert_eq!(standing(&*queue, &cancelled).await, Some(JobStatus::Done));
    assert_eq!((standing(&*queue, &paused).await, claim(&*queue).await), (Some(JobStatus::AtRest), None));
    queue.answer(&paused, BTreeMap::new()).await.expect("goes on");
    assert_eq!(next(&*queue).await.job.at, paused);
}

/// The cancellation is kept: a retry does not resume a cancelled run. Cancelling a dead letter
/// applies to its retry.
pub async fn a_run_that_was_cancelled_is_told_when_it_is_retried_after_it_was_given_up(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let [before, after] = [send(&*queue, job("before")).await, send(&*queue, job("after")).await];
    let (first, second) = (next(&*queue).await, next(&*queue).await);
    assert!(queue.signal(&before, Signal::Cancel).await.expect("works"));
    for claimed in [&first, &second] {
        release(&*queue, claimed, Outcome::Dead { error: "no credit".into() }).await;
    }
    assert!(queue.signal(&after, Signal::Cancel).await.expect("works"));
    assert!(!queue.signal(&after, Signal::Pause).await.expect("works"), "the run is stopped");
    for run in [&before, &after] {
        assert_eq!(standing(&*queue, run).await, Some(JobStatus::Dead { error: "no credit".into() }));
        assert!(queue.retry(run).await.expect("works"));
        assert_eq!(told(&*queue, &next(&*queue).await).await, [Signal::Cancel]);
    }
}

/// By a retry or by an answer.
pub async fn a_job_that_was_paused_before_its_time_still_waits_for_it(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let [retried, answered] = ["r", "a"].map(|run| job(run).not_before(u64::MAX >> 1));
    let [retried, answered] = [send(&*queue, retried).await, send(&*queue, answered).await];
    for run in [&retried, &answered] {
        assert!(queue.signal(run, Signal::Pause).await.expect("works"));
        assert_eq!(standing(&*queue, run).await, Some(JobStatus::AtRest));
    }
    assert!(queue.retry(&retried).await.expect("works"));
    queue.answer(&answered, BTreeMap::new()).await.expect("goes on");
    for run in [&retried, &answered] {
        assert_eq!(standing(&*queue, run).await, Some(JobStatus::Queued));
    }
    assert_eq!(claim(&*queue).await, None);
}

/// Releases without a failure do not count.
pub async fn failures_are_counted_until_a_run_rests(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let run = send(&*queue, job("r")).await;
    let failed = |error: Option<&str>| Outcome::Later { after: Duration::ZERO, error: error.map(str::to_owned) };
    for (outcome, failures, error) in
        [(failed(Some("one")), 1, Some("one")), (failed(None), 1, Some("one")), (failed(Some("two")), 2, Some("two"))]
    {
        release(&*queue, &next(&*queue).await, outcome).await;
        let listed = queue.jobs(&Wanted::default()).await.expect("lists");
        assert_eq!((listed[0].failures, listed[0].error.as_deref()), (failures, error));
    }
    release(&*queue, &next(&*queue).await, at_rest()).await;
    queue.answer(&run, BTreeMap::new()).await.expect("goes on");
    assert_eq!(next(&*queue).await.failures, 0);
}

/// A dead letter is kept until an operator retries or removes it.
pub async fn what_was_given_up_is_listed_and_tried_again_or_removed(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let (run, other) = (send(&*queue, job("r")).await, send(&*queue, job("s")).await);
    let claimed = next(&*queue).await;
    assert!(
        !queue.retry(&run).await.expect("works") && !queue.remove(&run).await.expect("works"),
        "the job is running"
    );
    release(&*queue, &claimed, Outcome::Dead { error: "no credit".into() }).await;
    let dead = queue.jobs(&Wanted::default().standing(JobStatusKind::Dead)).await.expect("lists");
    assert_eq!(dead.iter().map(|job| &job.job.at).collect::<Vec<_>>(), [&run]);
    assert_eq!(dead[0].standing, JobStatus::Dead { error: "no credit".into() });
    assert!(queue.retry(&run).await.expect("works"));
    let again = next(&*queue).await;
    assert_eq!((&again.job.at, again.failures), (&run, 0));
    release(&*queue, &again, Outcome::Dead { error: "no credit".into() }).await;
    assert!(queue.remove(&run).await.expect("works") && queue.remove(&other).await.expect("works"));
    assert!(!queue.remove(&run).await.expect("works") && !queue.retry(&run).await.expect("works"));
    assert_eq!((standing(&*queue, &run).await, claim(&*queue).await), (None, None));
}

/// However many other jobs were added later.
pub async fn what_is_listed_was_asked_for_and_is_the_newest_of_that(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    for (agent, session, run) in [("a", "s", "1"), ("a", "s", "2"), ("b", "r", "3"), ("a", "r", "4")] {
        let request = RunRequest::user("hello").session(session).run_id(run);
        send(&*queue, Job::new(agent, &request).expect("is serializable")).await;
    }
    for (agents, session, runs) in [("a", None, "42"), ("bc", None, "3"), ("", None, ""), ("ab", Some("s"), "21")] {
        let mut wanted = Wanted::default().agents(agents.chars()).most(2);
        wanted.session = session.map(str::to_owned);
        let listed = queue.jobs(&wanted).await.expect("lists");
        assert_eq!(listed.iter().map(|job| &*job.job.at.run).collect::<String>(), runs, "{wanted:?}");
    }
    let found = queue.jobs(&Wanted::default().run("2")).await.expect("lists");
    assert_eq!(found.iter().map(|job| &*job.job.at.run).collect::<Vec<_>>(), ["2"]);
}

/// A purged run can be dispatched again.
pub async fn jobs_that_are_done_are_purged_and_others_are_not(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let done = send(&*queue, job("done")).await;
    release(&*queue, &next(&*queue).await, Outcome::Done).await;
    send(&*queue, job("dead").tenant("t")).await;
    release(&*queue, &next(&*queue).await, Outcome::Dead { error: "x".into() }).await;
    send(&*queue, job("queued")).await;
    assert_eq!(queue.purge(LEASE).await.expect("works"), 0, "the job is too recent");
    assert_eq!(queue.purge(Duration::ZERO).await.expect("works"), 1);
    assert_eq!((standing(&*queue, &done).await, queue.jobs(&Wanted::default()).await.expect("lists").len()), (None, 2));
    send(&*queue, job("done").tenant("new")).await;
    assert_eq!(rest(&*queue).await.len(), 2);
}

/// Limits in all and per tenant; a known run is always accepted.
pub async fn no_more_is_taken_than_the_limits_allow(open: Open<'_>) {
    let queue = open(QueueLimits::default().queued(3).queued_per_tenant(2));
    let refused = async |job: Job| queue.dispatch(job).await.expect_err("full");
    send(&*queue, job("1").tenant("x")).await;
    send(&*queue, job("2").tenant("x")).await;
    let e = refused(job("3").tenant("x")).await;
    assert!(e.kind() == ErrorKind::RateLimited && e.is_retryable() && e.message().contains("of the tenant"), "{e}");
    send(&*queue, job("3").tenant("y")).await;
    assert_eq!(refused(job("4").tenant("z")).await.kind(), ErrorKind::RateLimited);
    assert_eq!(queue.dispatch(job("1").tenant("x")).await.expect("known"), Dispatched::Known);
    next(&*queue).await;
    send(&*queue, job("4").tenant("z")).await;
}

/// Limits per tenant and per agent; a released job frees its place.
pub async fn no_more_runs_at_once_than_the_limits_allow(open: Open<'_>) {
    let limits = QueueLimits::default().running_per_tenant(2).running_of_tenant("large", 3).running_of_agent("a", 4);
    let queue = open(limits);
    for n in 0..5 {
        send(&*queue, job(&format!("s{n}")).tenant("small")).await;
        send(&*queue, job(&format!("l{n}")).tenant("large")).await;
    }
    let first = next(&*queue).await;
    assert_eq!(rest(&*queue).await.len(), 3, "the limit of the agent");
    release(&*queue, &first, Outcome::Done).await;
    let tenant = next(&*queue).await.job.tenant;
    assert_eq!((&*tenant, claim(&*queue).await), ("large", None), "its last claim is the oldest");
    let queue = open(QueueLimits::default().running_per_tenant(2).running_of_tenant("large", 3));
    for n in 0..5 {
        send(&*queue, job(&format!("s{n}")).tenant("small")).await;
        send(&*queue, job(&format!("l{n}")).tenant("large")).await;
    }
    assert_eq!(rest(&*queue).await, ["l0", "s0", "l1", "s1", "l2"]);
    let queue = open(QueueLimits::default().running_per_tenant(0).running_of_tenant("large", 1));
    for tenant in ["small", "large"] {
        send(&*queue, job(tenant).tenant(tenant)).await;
    }
    assert_eq!(rest(&*queue).await, ["large"]);
    let queue = open(QueueLimits::default().running_of_tenant("small", 0));
    for tenant in ["small", "large"] {
        send(&*queue, job(tenant).tenant(tenant)).await;
    }
    assert_eq!(rest(&*queue).await, ["large"]);
}

/// The run's id consists of the schedule's name and the time; missed times are made up for once.
/// Workers without capacity also fire schedules.
pub async fn a_schedule_makes_one_job_of_each_time(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let hello = Job::new("a", &RunRequest::user("hello")).expect("data");
    let wrong = queue.set_schedule(&Schedule::new("x", "now and then", hello.clone())).await.expect_err("no cron");
    assert_eq!(wrong.kind(), ErrorKind::Config);
    let each_second = Schedule::new("tick", "* * * * * *", hello.clone());
    queue.set_schedule(&Schedule::new("yearly", "0 0 1 1 *", hello)).await.expect("set");
    queue.set_schedule(&each_second).await.expect("set");
    let schedules = queue.schedules().await.expect("lists");
    assert_eq!(schedules.iter().map(|(schedule, _)| &*schedule.name).collect::<Vec<_>>(), ["tick", "yearly"]);
    assert_eq!(schedules[0].0, each_second);
    let due = schedules[0].1;
    let waiting = Wanted::default().standing(JobStatusKind::Queued);
    // The queue's clock cannot be paused: each due time comes within a second.
    while queue.jobs(&waiting).await.expect("lists").len() < 2 {
        queue.fire().await.expect("works");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let first = next(&*queue).await;
    assert!(first.job.at.run.starts_with("tick@20") && first.job.at.session == first.job.at.run, "{first:?}");
    assert!(queue.schedules().await.expect("lists")[0].1 > due);
    let again = each_second.job_at(first.job.at.run.trim_start_matches("tick@"));
    assert_eq!(queue.dispatch(again).await.expect("accepts the job"), Dispatched::Known, "one job per due time");
    assert!(queue.remove_schedule("tick").await.expect("works"));
    assert!(!queue.remove_schedule("tick").await.expect("works"));
    assert_eq!(queue.schedules().await.expect("lists").len(), 1);
}

/// Programs set their schedules on every start, perhaps with another job. A changed cron expression
/// counts from now.
pub async fn a_time_that_is_due_is_not_lost_when_its_schedule_is_set_again(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let says = |text: &str| Job::new("a", &RunRequest::user(text)).expect("data");
    let each_second = |text: &str| Schedule::new("tick", "* * * * * *", says(text));
    queue.set_schedule(&each_second("old")).await.expect("set");
    let due = queue.schedules().await.expect("lists")[0].1;
    // The queue's clock cannot be paused.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    queue.set_schedule(&each_second("new")).await.expect("set");
    assert_eq!(queue.schedules().await.expect("lists")[0].1, due, "the schedule is due");
    queue.fire().await.expect("works");
    assert_eq!(next(&*queue).await.job.messages, says("new").messages);
    queue.set_schedule(&Schedule::new("tick", "0 0 1 1 *", says("yearly"))).await.expect("set");
    assert!(queue.schedules().await.expect("lists")[0].1 > due + 1_000);
}

/// An unreadable job would block others.
pub async fn what_is_nested_too_deeply_is_refused_when_it_is_sent(open: Open<'_>) {
    let queue = open(QueueLimits::default());
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let too_deep = job("deep").extra(deep.clone());
    let run = send(&*queue, job("r")).await;
    let claimed = next(&*queue).await;
    let refused = [
        queue.dispatch(too_deep.clone()).await.map(drop),
        queue.set_schedule(&Schedule::new("s", "* * * * *", too_deep)).await,
        queue.answer(&run, BTreeMap::from([("q".to_owned(), deep.into())])).await,
    ];
    for refused in refused {
        let e = refused.expect_err("it is too deep");
        assert!(e.kind() == ErrorKind::Store && e.message().contains("too deeply"), "{e}");
    }
    release(&*queue, &claimed, at_rest()).await;
    assert_eq!((queue.jobs(&Wanted::default()).await.expect("lists").len(), claim(&*queue).await), (1, None));
}
