//! Outcomes of jobs.

use std::time::Duration;

use agent_core::{Error, ErrorKind, Journal, Retry, ToolOutput, journal::EntryBody, testing::Turn};
use agent_dispatch::{Claim, Dispatch, JobStatus, JobStatusKind, Queue, QueueAdmin, Signal};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Shared, job};
use crate::common::tool;

fn fails(retry: Retry) -> Turn {
    Turn::error(move || Error::new(ErrorKind::Overloaded, "no capacity").with_retry(retry))
}

#[tokio::test(start_paused = true)]
async fn a_temporary_failure_is_tried_again_later_and_the_run_goes_on_where_it_failed() {
    let shared = Shared::default();
    let asked = Duration::from_secs(7);
    let turns = [fails(Retry::Temporary(None)), fails(Retry::Temporary(Some(asked))), Turn::text("hello")];
    let _process = shared.process(shared.agent(turns));
    let (run, began) = (shared.send(job("r")).await, Instant::now());
    shared.comes_to(&run, JobStatusKind::Done).await;
    assert!(began.elapsed() >= Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_fails_too_often_is_a_dead_letter_that_goes_on_when_it_is_retried() {
    let shared = Shared::default();
    let turns = (0..3).map(|_| fails(Retry::Temporary(None))).chain([Turn::text("hello")]);
    let _process = shared.process(shared.agent(turns));
    let run = shared.send(job("r")).await;
    let standing = shared.comes_to(&run, JobStatusKind::Dead).await;
    assert!(matches!(&standing, JobStatus::Dead { error } if error.contains("no capacity")), "{standing:?}");
    assert!(shared.queue.retry(&run).await.expect("works"));
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_lasting_failure_is_a_dead_letter_at_once() {
    let shared = Shared::default();
    let _process = shared.process(shared.agent([fails(Retry::Permanent)]));
    let (run, began) = (shared.send(job("r")).await, Instant::now());
    shared.comes_to(&run, JobStatusKind::Dead).await;
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_kills_its_workers_is_given_up_in_the_end() {
    let shared = Shared::default();
    let run = shared.send(job("r")).await;
    let claim = Claim::new("dies", ["a".into()], Duration::ZERO);
    for _ in 0..3 {
        shared.queue.claim(&claim).await.expect("works").expect("there is one");
    }
    let _process = shared.process(shared.agent([Turn::text("hello")]));
    let standing = shared.comes_to(&run, JobStatusKind::Dead).await;
    assert!(
        matches!(&standing, JobStatus::Dead { error } if error.contains("tried 3 times") && error.contains("worker 'dies'")),
        "{standing:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_journal_has_already_is_not_run_again() {
    let shared = Shared::default();
    let agent = shared.agent([Turn::text("hello")]);
    let outside = agent.build().expect("builds");
    outside.start(job("r").request()).await.expect("finishes");
    let _process = shared.process(shared.agent([]));
    let run = shared.send(job("r")).await;
    shared.comes_to(&run, JobStatusKind::Done).await;
}

/// However the job was released.
#[tokio::test(start_paused = true)]
async fn a_run_whose_session_was_deleted_after_it_had_begun_is_given_up_and_does_not_begin_anew() {
    for (run, kind) in
        [("failed", JobStatusKind::Dead), ("rests", JobStatusKind::AtRest), ("put back", JobStatusKind::Queued)]
    {
        let shared = Shared::default();
        let run = shared.send(job(run)).await;
        let turn = match kind {
            JobStatusKind::Dead => fails(Retry::Permanent),
            _ => Turn::call("1", "look", json!({})).delay(Duration::from_secs(5)),
        };
        let looks = tool("look", |_| async { Ok(ToolOutput::text("nothing")) });
        let worker = shared.worker(shared.agent([turn]).tool(looks)).build().expect("builds");
        let (queue, rests) = (shared.queue.clone(), run.clone());
        let ends = async move {
            sleep(Duration::from_secs(1)).await;
            if kind == JobStatusKind::AtRest {
                assert!(queue.signal(&rests, Signal::Pause).await.expect("works"));
                sleep(Duration::from_secs(10)).await;
            }
        };
        worker.run_until(ends).await;
        shared.comes_to(&run, kind).await;
        assert!(shared.journal.delete("s").await.expect("works"));
        shared.queue.retry(&run).await.expect("works");
        let _heir = shared.process(shared.agent([Turn::text("begun anew")]));
        let standing = shared.comes_to(&run, JobStatusKind::Dead).await;
        assert!(matches!(&standing, JobStatus::Dead { error } if error.contains("was deleted")), "{standing:?}");
        assert!(shared.journal.read("s", 0, 9).await.expect("reads").is_empty(), "nothing of it is back");
    }
}

/// The worker that claimed it first died before its first entry.
#[tokio::test(start_paused = true)]
async fn a_run_that_no_worker_began_begins_whatever_was_tried() {
    let shared = Shared::default();
    let run = shared.send(job("r")).await;
    shared.queue.claim(&Claim::new("dies", ["a".into()], Duration::ZERO)).await.expect("works").expect("there is one");
    let worker = shared.worker(shared.agent([])).shape(|_, _| Err(Error::config("not today"))).build().expect("builds");
    worker.run_until(sleep(Duration::from_secs(1))).await;
    shared.comes_to(&run, JobStatusKind::Dead).await;
    assert!(shared.queue.retry(&run).await.expect("works"));
    let _process = shared.process(shared.agent([Turn::text("hello")]));
    shared.comes_to(&run, JobStatusKind::Done).await;
}

#[tokio::test(start_paused = true)]
async fn the_request_of_a_job_is_shaped_by_what_its_sender_tells() {
    let shared = Shared::default();
    let worker =
        shared.worker(shared.agent([Turn::text("hello")])).shape(|job, request| match job.extra["fits"] == true {
            true => Ok(request.on_behalf_of("ada")),
            false => Err(Error::config("the job's extra is none of ours")),
        });
    let _process = shared.start(worker);
    let (good, bad) = (shared.send(job("r1").extra(json!({"fits": true}))).await, shared.send(job("r2")).await);
    shared.comes_to(&good, JobStatusKind::Done).await;
    let standing = shared.comes_to(&bad, JobStatusKind::Dead).await;
    assert!(matches!(&standing, JobStatus::Dead { error } if error.contains("none of ours")), "{standing:?}");
    let for_ada =
        |body: &EntryBody| matches!(body, EntryBody::RunStarted { ids, .. } if ids.user.as_deref() == Some("ada"));
    assert_eq!(shared.count("s", for_ada).await, 1);
}
