//! Lifecycle of one job, from its claim to its release.

use std::{sync::Arc, time::Duration};

use agent_core::{Result, RunEnd};
use agent_dispatch::{Claimed, Outcome};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    begin::{self, JobStart},
    ends::End,
    relay::relay_events,
    shift::{JobGuard, WorkerState},
};
use crate::Run;

/// Delay before a failed release is retried.
const PAUSE: Duration = Duration::from_millis(500);
/// Time that the last events of a run have to reach the relay.
const FLUSH: Duration = Duration::from_secs(1);

/// Runs a job and releases it with its outcome. If the lease is lost, the run is dropped: another
/// worker may own it.
pub(super) async fn live(shift: Arc<WorkerState>, claimed: Claimed, stay: JobGuard) {
    let lost = stay.lost.clone();
    let live = async {
        let (outcome, heard) = run(&shift, &claimed).await;
        let stands = stands(&shift, &claimed, &outcome).await;
        release(&shift, claimed.receipt, &outcome, &heard, stands).await;
    };
    tokio::select! {
        biased;
        () = lost.cancelled() => {
            let (run, session) = (&claimed.job.at.run, &claimed.job.at.session);
            tracing::warn!(%run, %session, "the lease of a run was lost: another worker may have it");
        }
        () = live => {}
    }
}

/// Runs the job; returns its outcome and the ids of the signals that the run consumed. The signals
/// of a failed run are delivered again.
async fn run(shift: &WorkerState, claimed: &Claimed) -> (Outcome, Vec<u64>) {
    let (backoff, receipt) = (&shift.worker.backoff, claimed.receipt);
    if claimed.failures > 0 && backoff.delay(claimed.failures, None).is_none() {
        let error = claimed.error.clone().unwrap_or_default();
        let error = format!("it was tried {} times; the last time: {error}", claimed.failures);
        return (Outcome::Dead { error }, Vec::new());
    }
    let mut note = None;
    let attempt: Result<_> = async {
        let agent = shift.worker.agent(&claimed.job.at.agent)?;
        shift.listen().await; // the start depends on pending signals
        let request = match JobStart::of(agent, claimed, shift.is_cancelled(receipt)).await? {
            JobStart::Run(request, refused) => {
                note = refused;
                (shift.worker.shape)(&claimed.job, *request)?.driven_by(shift.worker.claim.worker.as_str())
            }
            JobStart::Ends(outcome) => return Ok(Err(outcome)),
        };
        let run = agent.start(request);
        let _present = shift.drain.enter(run.handle())?;
        let mut publishing = publish(shift, claimed, &run);
        shift.has_begun(receipt, run.handle());
        let end: Result<RunEnd> = run.await;
        let _ = timeout(FLUSH, publishing.join_next()).await;
        Ok(Ok(end?))
    }
    .await;
    let drains = shift.drain.is_draining() && !shift.was_told(receipt);
    let end = End { backoff, failures: claimed.failures, drains, note };
    match attempt {
        Ok(Ok(ended)) => (end.outcome(Ok(ended)), shift.heard(receipt)),
        Ok(Err(outcome)) => (outcome, Vec::new()),
        Err(e) => {
            let (run, session) = (&claimed.job.at.run, &claimed.job.at.session);
            tracing::warn!(%run, %session, error = %e, "a run failed");
            (end.outcome(Err(e)), Vec::new())
        }
    }
}

/// Publishes the events of a run to viewers in other processes, until the run ends or the task set
/// is dropped.
fn publish(shift: &WorkerState, claimed: &Claimed, run: &Run) -> JoinSet<()> {
    let mut publishing = JoinSet::new();
    if let Some(relay) = shift.worker.relay.clone() {
        let (at, events) = (claimed.job.at.clone(), run.handle().events());
        drop(publishing.spawn(async move { relay_events(&*relay, &at, events).await }));
    }
    publishing
}

/// True if the journal knows the run, so that the next worker does not start it anew if its session
/// is deleted.
async fn stands(shift: &WorkerState, claimed: &Claimed, outcome: &Outcome) -> bool {
    if claimed.stands || *outcome == Outcome::Done {
        return claimed.stands; // unchanged, or no worker will take it
    }
    let Ok(agent) = shift.worker.agent(&claimed.job.at.agent) else { return false };
    begin::stands(agent, &claimed.job).await.unwrap_or_else(|e| {
        tracing::warn!(error = %e, "whether a run stands in the journal was not read");
        false
    })
}

/// Retries the release until the queue acknowledges it or the lease is lost.
async fn release(shift: &WorkerState, receipt: u64, outcome: &Outcome, heard: &[u64], stands: bool) {
    let queue = &shift.worker.queue;
    loop {
        match timeout(shift.worker.claim.lease, queue.release(receipt, outcome.clone(), heard, stands)).await {
            Ok(Ok(_)) => return,
            Ok(Err(e)) => tracing::warn!(error = %e, "the queue could not be told what became of a run; trying again"),
            Err(_) => tracing::warn!("the queue does not answer; trying again"),
        }
        sleep(PAUSE).await;
    }
}
