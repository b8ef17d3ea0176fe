//! Persistence of a run's state when it stops, before its end is published.

use agent::{ErrorKind, Result, RunEnd};

use super::{
    brought::{Over, PersistedRequest},
    drained::mark,
    live::{Live, LiveRun},
};

/// Persists the options of the run's request once it has begun in this session.
pub(super) async fn keep(live: &Live, run: &LiveRun, session: &str) {
    let Some(kept) = run.kept().filter(|_| !run.is_kept()) else { return };
    match kept.keep(live.journal(), session, &run.id).await {
        Ok(()) => run.set_kept(),
        Err(error) => tracing::error!(run = &*run.id, %error, "the options of a request could not be persisted"),
    }
}

/// Persists the state that the next process needs: whether the run resumes automatically, or the
/// reason why it never began.
pub(super) async fn settle(live: &Live, run: &LiveRun, end: &Result<RunEnd>) {
    let settled = match run.begun().is_some() {
        true => stopped(live, run, end).await,
        false => never_began(live, run, end).await,
    };
    if let Err(error) = settled {
        tracing::error!(run = &*run.id, %error, "the state of a stopped run could not be persisted");
    }
}

async fn stopped(live: &Live, run: &LiveRun, end: &Result<RunEnd>) -> Result<()> {
    let is_at_a_safe_point = matches!(end, Ok(RunEnd::Paused(_) | RunEnd::Cancelled(_)));
    let goes_on = is_at_a_safe_point && live.is_draining() && !run.is_stopped();
    if goes_on != run.is_marked() {
        mark(live.journal(), run.session(), &run.id, goes_on).await?;
    }
    if !matches!(end, Ok(RunEnd::Finished(_))) {
        keep(live, run, run.session()).await;
    }
    for past in live.journal().index(run.session()).await?.look(PersistedRequest::past) {
        PersistedRequest::forget(live.journal(), run.session(), &past).await?;
    }
    Ok(())
}

/// A run that was acknowledged before it began is not lost: it waits for the next process, or the
/// reason why it never began is recorded.
async fn never_began(live: &Live, run: &LiveRun, end: &Result<RunEnd>) -> Result<()> {
    let (Some(kept), Err(error)) = (run.kept().filter(|kept| kept.queued.is_some()), end) else { return Ok(()) };
    let over = match error.kind() {
        // The run began in another process.
        ErrorKind::Stale => return Ok(()),
        _ if run.is_stopped() => Over::Cancelled,
        _ if live.is_draining() => return Ok(()),
        _ => Over::Refused(error.message().to_owned()),
    };
    kept.clone().end(live.journal(), run.session(), &run.id, over).await
}
