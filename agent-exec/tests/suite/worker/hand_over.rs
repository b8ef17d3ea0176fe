//! Runs that move from process to process.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{Effect, ErrorKind, RunRequest, ToolOutput, journal::EntryBody, testing::Turn, tool::Doubt};
use agent_dispatch::{Dispatch, Job, JobStatusKind, QueueAdmin, Schedule, Wanted};
use agent_exec::{Agent, Worker};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Shared, job, troubled::Troubled};
use crate::common::{FnTool, tool};

/// Performs its effect, and then takes long; in the process of the first call, forever.
fn slow(deeds: &Arc<AtomicU32>, effect: Effect) -> FnTool {
    let deeds = deeds.clone();
    let body = move |_| {
        let first = deeds.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                pending::<()>().await;
            }
            Ok(ToolOutput::text("done"))
        }
    };
    tool("slow", body).with(move |options| options.effect(effect))
}

fn calls_slow() -> [Turn; 2] {
    [Turn::call("1", "slow", json!({})), Turn::text("all done")]
}

#[tokio::test(start_paused = true)]
async fn runs_are_run_once_and_are_done_whatever_agents_others_have() {
    let shared = Shared::default();
    let _process = shared.process(shared.agent([Turn::text("hello")]));
    let other = Job::new("b", &RunRequest::user("go")).expect("data");
    let (run, other) = (shared.send(job("r")).await, shared.send(other).await);
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::RunStarted { .. })).await, 1);
    shared.comes_to(&other, JobStatusKind::Queued).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_worker_died_goes_on_elsewhere_when_its_lease_has_run_out_and_repeats_no_step() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(0)));
    let dies = shared.process(shared.agent(calls_slow()).tool(slow(&deeds, Effect::Idempotent)));
    let run = shared.send(job("r")).await;
    while deeds.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    dies.abort();
    let died = Instant::now();
    // Its model has only the last turn: the first step is not repeated.
    let _heir = shared.process(shared.agent([Turn::text("all done")]).tool(slow(&deeds, Effect::Idempotent)));
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert!(
        died.elapsed() >= Duration::from_secs(19) && died.elapsed() < Duration::from_secs(33),
        "{:?}",
        died.elapsed()
    );
    assert_eq!(deeds.load(Ordering::SeqCst), 2, "the call is made again under its key");
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::RunStarted { .. })).await, 1);
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::RunResumed { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_doubt_is_asked_about_once_and_its_run_holds_no_worker_meanwhile() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(0)));
    let agent = |turns: &[Turn]| shared.agent(turns.to_vec()).tool(slow(&deeds, Effect::AtMostOnce));
    let dies = shared.process(agent(&calls_slow()));
    let run = shared.send(job("r")).await;
    while deeds.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    dies.abort();
    let heir = shared.process(agent(&[]));
    shared.comes_to(&run, JobStatusKind::AtRest).await;
    heir.abort();
    let front_door = agent(&[]).build().expect("builds");
    let stands = front_door.unfinished("s").await.expect("reads").expect("it waits");
    assert_eq!(stands.questions.iter().map(|question| &*question.kind).collect::<Vec<_>>(), [Doubt::KIND]);
    let happened = json!({"happened": {"content": "done"}});
    let answers = [(stands.questions[0].id.clone(), happened.into())].into();
    shared.queue.answer(&run, answers).await.expect("it waits");
    let _third = shared.process(agent(&[Turn::text("all done")]));
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(deeds.load(Ordering::SeqCst), 1);
    assert_eq!(shared.count("s", |body| matches!(body, EntryBody::Asked { .. })).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_shuts_down_puts_its_runs_back_at_a_safe_point() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(1)));
    let agent = shared
        .agent(calls_slow().map(|turn| turn.delay(Duration::from_secs(5))))
        .tool(slow(&deeds, Effect::AtMostOnce));
    let worker = shared.worker(agent).build().expect("builds");
    let run = shared.send(job("r")).await;
    let drained = worker.run_until(sleep(Duration::from_secs(1))).await;
    assert_eq!((drained.ended, drained.cancelled, drained.left), (1, 0, 0));
    shared.comes_to(&run, JobStatusKind::Queued).await;
    assert_eq!((shared.shown(&run).await.failures, deeds.load(Ordering::SeqCst)), (0, 1), "no call was begun");
    let rest = shared.agent([Turn::text("all done")]).tool(slow(&deeds, Effect::AtMostOnce));
    let _heir = shared.process(rest);
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert_eq!(deeds.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_reach_a_safe_point_in_time_is_cancelled_and_goes_on_elsewhere() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(0)));
    let agent = |turns: &[Turn]| shared.agent(turns.to_vec()).tool(slow(&deeds, Effect::Idempotent));
    let worker = shared.worker(agent(&calls_slow())).drain_within(Duration::from_secs(3)).build().expect("builds");
    let run = shared.send(job("r")).await;
    let drained = worker.run_until(sleep(Duration::from_secs(1))).await;
    assert_eq!((drained.ended, drained.cancelled, drained.left), (0, 1, 0));
    shared.comes_to(&run, JobStatusKind::Queued).await;
    let _heir = shared.process(agent(&[Turn::text("all done")]));
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_in_use_is_waited_for_without_counting_a_failure() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(0)));
    let elsewhere = shared.agent(calls_slow()).tool(slow(&deeds, Effect::Pure)).build().expect("builds");
    let outside = tokio::spawn(elsewhere.start(RunRequest::user("go").session("s")));
    while deeds.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let _process = shared.process(shared.agent([Turn::text("hello")]).tool(slow(&deeds, Effect::Pure)));
    let run = shared.send(job("r")).await;
    sleep(Duration::from_secs(60)).await;
    let shown = shared.shown(&run).await;
    assert!(
        matches!(shown.standing.kind(), JobStatusKind::Queued | JobStatusKind::Running) && shown.failures == 0,
        "{shown:?}"
    );
    outside.abort();
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_under_way_at_once_than_a_worker_has_room_for() {
    let shared = Shared::default();
    let turns = (0..6).map(|_| Turn::text("hello").delay(Duration::from_secs(10)));
    let _process = shared.start(shared.worker(shared.agent(turns)).at_once(2));
    let mut runs = Vec::new();
    for n in 0..6 {
        let one = Job::new("a", &RunRequest::user("go").run_id(format!("r{n}"))).expect("data");
        runs.push(shared.send(one).await);
    }
    sleep(Duration::from_secs(5)).await;
    let running = Wanted::default().standing(JobStatusKind::Running);
    assert_eq!(shared.queue.jobs(&running).await.expect("lists").len(), 2);
    for run in &runs {
        shared.comes_to(run, JobStatusKind::Done).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_shuts_down_claims_no_more_however_many_there_are() {
    let shared = Shared::default();
    let queue = Troubled { claims_take: Duration::from_secs(1), ..Troubled::new(&shared.queue) };
    for n in 0..50 {
        shared.send(Job::new("a", &RunRequest::user("go").run_id(format!("r{n}"))).expect("data")).await;
    }
    let agent = shared.agent((0..50).map(|_| Turn::text("hello").delay(Duration::from_secs(100))));
    let worker = shared.worker_of(Arc::new(queue.clone()), agent).at_once(50).build().expect("builds");
    worker.run_until(sleep(Duration::from_secs(5))).await;
    let claims = queue.claims.load(Ordering::SeqCst);
    assert!((3..7).contains(&claims), "{claims}");
    let queued = shared.queue.jobs(&Wanted::default().standing(JobStatusKind::Queued)).await.expect("lists");
    assert_eq!(queued.len(), 50, "all are put back");
}

/// A queue that does not answer does not keep runs from being returned in time.
#[tokio::test(start_paused = true)]
async fn a_worker_that_shuts_down_while_a_claim_waits_puts_its_runs_back_meanwhile() {
    let (shared, deeds) = (Shared::default(), Arc::new(AtomicU32::new(1)));
    let queue = Troubled { claims_take: Duration::from_secs(25), ..Troubled::new(&shared.queue) };
    let calls = (0..9).map(|n| Turn::call(&n.to_string(), "slow", json!({})).delay(Duration::from_secs(2)));
    let agent = shared.agent(calls).tool(slow(&deeds, Effect::Idempotent));
    let worker = shared.worker_of(Arc::new(queue), agent).at_once(2).build().expect("builds");
    let (began, run) = (Instant::now(), shared.send(job("r")).await);
    let process = tokio::spawn(async move { worker.run_until(sleep(Duration::from_secs(28))).await });
    shared.comes_to(&run, JobStatusKind::Running).await;
    shared.comes_to(&run, JobStatusKind::Queued).await;
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let drained = process.await.expect("no panic");
    assert_eq!((drained.ended, drained.cancelled, drained.left), (1, 0, 0));
    assert_eq!(shared.shown(&run).await.failures, 0);
}

#[tokio::test(start_paused = true)]
async fn schedules_fire_while_no_worker_has_room() {
    let shared = Shared::default();
    let long = Turn::text("hello").delay(Duration::from_secs(600));
    let _process = shared.start(shared.worker(shared.agent([long])).at_once(1));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Running).await;
    let tick = Job::new("a", &RunRequest::user("tick")).expect("data");
    shared.queue.set_schedule(&Schedule::new("tick", "* * * * *", tick)).await.expect("set");
    sleep(Duration::from_secs(550)).await;
    let queued = shared.queue.jobs(&Wanted::default().standing(JobStatusKind::Queued)).await.expect("lists");
    assert!((9..=10).contains(&queued.len()), "{queued:?}");
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let shared = Shared::default();
    let queue = Arc::new(shared.queue.clone());
    let agent = shared.agent([]).build().expect("builds");
    let forgetful = Agent::builder("b", agent_core::testing::ScriptedModel::new([])).build().expect("builds");
    for (builder, said) in [
        (Worker::builder(queue.clone()), "needs an agent"),
        (Worker::builder(queue.clone()).agent(forgetful), "agent 'b' keeps no runs"),
        (Worker::builder(queue.clone()).agent(agent.clone()).agent(agent.clone()), "two agents are called 'a'"),
        (Worker::builder(queue).agent(agent).lease(Duration::from_millis(9)), "lease of 9ms"),
    ] {
        let e = builder.build().expect_err("it cannot work");
        assert!(e.kind() == ErrorKind::Config && e.message().contains(said), "{e}");
    }
}
