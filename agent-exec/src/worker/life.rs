//! Lifecycle of one job, from its claim to its release.

use std::{pin::pin, sync::Arc, time::Duration};

use agent_core::{Event, EventStream, Result, RunEnd};
use agent_dispatch::{Claimed, Job, Outcome};
use futures::StreamExt;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    begin::{self, JobStart},
    ends::End,
    hooks::{Started, WorkerHooks},
    relay::relay_events,
    shift::{JobGuard, WorkerState},
};
use crate::{Run, stack::caught};

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
    let (job, hooks, mut note) = (&claimed.job, &shift.worker.hooks, None);
    let attempt: Result<_> = async {
        let agent = hooks.agent(job, shift.worker.agent(&job.at.agent)?).await?;
        shift.listen().await; // the start depends on pending signals
        let request = match JobStart::of(&agent, claimed, shift.is_cancelled(receipt)).await? {
            JobStart::Run(request, refused) => {
                note = refused;
                let request = hooks.request(job, &agent, (shift.worker.shape)(job, *request)?)?;
                request.driven_by(shift.worker.claim.worker.as_str())
            }
            JobStart::Ends(outcome) => return Ok(Err(outcome)),
        };
        let run = agent.start(request);
        let _present = shift.drain.enter(run.handle())?;
        let mut publishing = publish(shift, claimed, &run);
        let started = Started::new(&**hooks, job, &run.handle());
        shift.has_begun(receipt, run.handle());
        let end = caught("the run", attempt(&**hooks, job, run)).await;
        started.ended();
        let _ = timeout(FLUSH, publishing.join_next()).await;
        Ok(Ok(end?))
    }
    .await;
    let end = Arc::new(match attempt {
        Ok(Err(outcome)) => return (outcome, Vec::new()),
        Ok(Ok(end)) => Ok(end),
        Err(e) => Err(e),
    });
    hooks.run_ended(job, end.clone()).await;
    let drains = shift.drain.is_draining() && !shift.was_told(receipt);
    let outcome = End { backoff, failures: claimed.failures, drains, note }.outcome(&end);
    match &*end {
        Ok(_) => (outcome, shift.heard(receipt)),
        Err(e) => {
            let (run, session) = (&job.at.run, &job.at.session);
            tracing::warn!(%run, %session, error = %e, "a run failed");
            (outcome, Vec::new())
        }
    }
}

/// Drives a run to its end.
async fn attempt(hooks: &dyn WorkerHooks, job: &Job, run: Run) -> Result<RunEnd> {
    let (mut first, mut run) = (run.handle().events(), pin!(run));
    tokio::select! {
        biased;
        Some(event) = durable(&mut first) => {
            hooks.run_begun(job, &event).await;
            drop(first);
            run.await
        }
        end = &mut run => {
            if let Some(event) = durable(&mut first).await {
                hooks.run_begun(job, &event).await;
            }
            end
        }
    }
}

/// Returns the first durable event: transient events before it have no position in the session yet.
async fn durable(events: &mut EventStream) -> Option<Event> {
    while let Some(event) = events.next().await {
        if event.position.after == 0 {
            return Some(event);
        }
    }
    None
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
