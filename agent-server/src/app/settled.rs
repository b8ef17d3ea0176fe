//! Persistence of a run's state when it stops, before its end is published.

use agent::{ErrorKind, Result, RunEnd};

use super::{
    brought::{Over, PersistedRequest},
    drained::mark,
    live::LiveRun,
    local::Local,
};

/// Persists the options of the run's request in this session, unless they are persisted already.
///
/// # Errors
/// The errors of the store.
pub(super) async fn keep(local: &Local, run: &LiveRun, session: &str) -> Result<()> {
    if let Some(kept) = run.kept().filter(|_| !run.is_kept()) {
        kept.keep(local.journal(), session, run.id()).await?;
        run.set_kept();
    }
    Ok(())
}

/// Persists the state that the next process needs: whether the run resumes automatically, or the
/// reason why it never began.
pub(super) async fn settle(local: &Local, run: &LiveRun, end: &Result<RunEnd>) {
    let settled = match run.begun().is_some() {
        true => stopped(local, run, end).await,
        false => never_began(local, run, end).await,
    };
    if let Err(error) = settled {
        tracing::error!(run = run.id(), %error, "the state of a stopped run could not be persisted");
    }
}

async fn stopped(local: &Local, run: &LiveRun, end: &Result<RunEnd>) -> Result<()> {
    let is_at_a_safe_point = matches!(end, Ok(RunEnd::Paused(_) | RunEnd::Cancelled(_)));
    let goes_on = is_at_a_safe_point && local.is_draining() && !run.is_stopped();
    if goes_on != run.is_marked() {
        mark(local.journal(), run.session(), run.id(), goes_on).await?;
    }
    if !matches!(end, Ok(RunEnd::Finished(_))) {
        keep(local, run, run.session()).await?;
    }
    for past in local.journal().index(run.session()).await?.look(PersistedRequest::past) {
        PersistedRequest::forget(local.journal(), run.session(), &past).await?;
    }
    Ok(())
}

/// A run that was acknowledged before it began is not lost: it waits for the next process, or the
/// reason why it never began is recorded.
async fn never_began(local: &Local, run: &LiveRun, end: &Result<RunEnd>) -> Result<()> {
    let (Some(kept), Err(error)) = (run.kept().filter(|kept| kept.queued.is_some()), end) else { return Ok(()) };
    let over = match error.kind() {
        // The run began in another process.
        ErrorKind::Stale => return Ok(()),
        _ if run.is_stopped() => Over::Cancelled,
        _ if local.is_draining() => return Ok(()),
        _ => Over::Refused(error.message().to_owned()),
    };
    kept.clone().end(local.journal(), run.session(), run.id(), over).await
}
