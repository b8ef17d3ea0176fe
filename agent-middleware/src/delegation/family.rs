//! The sub-agents of one run.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_core::{
    Error, ErrorKind, Result, RunCx, RunEnd, ToolOutput, Verdict,
    engine::{SubRun, SubRuns},
};
use futures::FutureExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{
    DelegationConfig,
    child::{Child, Stage},
    text,
};

/// Time that cancelled sub-agents have to return their checkpoints.
pub(super) const CANCEL_GRACE: Duration = Duration::from_millis(50);

/// The sub-agents of one run: the limit on concurrent ones, and those in the background.
#[derive(Debug)]
pub(super) struct Family {
    places: Option<Arc<Semaphore>>,
    children: Mutex<Vec<Arc<Child>>>,
    /// Notified when one of them makes progress.
    changed: Notify,
}

impl Family {
    pub(super) fn new(config: &DelegationConfig) -> Self {
        let places = config.max_concurrent.map(|most| Arc::new(Semaphore::new(most.max(1))));
        Self { places, children: Mutex::default(), changed: Notify::new() }
    }

    /// Waits for a slot for one more sub-agent.
    pub(super) async fn place(&self, cx: &RunCx) -> Result<Option<OwnedSemaphorePermit>> {
        let Some(places) = self.places.clone() else { return Ok(None) };
        tokio::select! {
            place = places.acquire_owned() => Ok(place.ok()),
            () = cx.cancellation().cancelled() => {
                Err(Error::new(ErrorKind::Cancelled, "cancelled before the sub-agent began"))
            }
        }
    }

    /// As [`place`](Self::place), for a sub-agent that must not wait.
    pub(super) fn place_now(&self, key: &str) -> Result<Option<OwnedSemaphorePermit>> {
        let Some(places) = self.places.clone() else { return Ok(None) };
        places.try_acquire_owned().map(Some).map_err(|_| {
            let message = format!(
                "Sub-agent '{key}' was not started: as many run already as may run at once. Wait for one of them first."
            );
            Error::tool(message)
        })
    }

    /// Starts a sub-agent in the background.
    pub(super) fn start(
        self: Arc<Self>,
        cx: &RunCx,
        run: SubRun,
        place: Option<OwnedSemaphorePermit>,
        recall: bool,
    ) -> Result<Arc<Child>> {
        let child = Arc::new(Child::new(&run));
        self.lock().push(child.clone());
        let (family, followed, caller) = (self, child.clone(), cx.clone());
        cx.spawn(async move {
            let place = match place {
                Some(place) => Some(place),
                None => family.place(&caller).await.ok().flatten(),
            };
            let end = AssertUnwindSafe(run.run()).catch_unwind().await;
            drop(place);
            let panicked = |_| Err(Error::new(ErrorKind::Unexpected, "it stopped unexpectedly"));
            let stage = stage_of(&followed, end.unwrap_or_else(panicked), recall);
            followed.arrives_at(&caller, stage);
            family.changed.notify_waiters();
        })?;
        Ok(child)
    }

    /// Returns the background sub-agents; with an `id`, only that one.
    pub(super) fn children(&self, id: Option<&str>) -> Vec<Arc<Child>> {
        let wanted = |child: &&Arc<Child>| id.is_none_or(|id| *child.id == *id);
        // The newest run of each id: the others are earlier runs of it that have ended.
        let mut children: Vec<Arc<Child>> = Vec::new();
        for child in self.lock().iter().filter(wanted) {
            children.retain(|earlier| earlier.id != child.id);
            children.push(child.clone());
        }
        children
    }

    /// Returns what `look` finds; calls it whenever a sub-agent makes progress.
    pub(super) async fn watch<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // later notifications are not missed
            if let Some(found) = look() {
                return found;
            }
            changed.await;
        }
    }

    /// Called when the run is about to finish: waits for its sub-agents, or for the answers that
    /// they wait for.
    pub(super) async fn before_exit(&self, cx: &RunCx) -> Result<Verdict> {
        let settled = self.watch(|| {
            let live: Vec<_> = self.children(None).into_iter().filter(|child| child.is_live()).collect();
            match live.iter().any(|child| child.is_running()) {
                _ if SubRuns::of(cx).has_steering() => Some(Ok(Verdict::Proceed)),
                true => None,
                false if live.is_empty() => Some(Ok(Verdict::Proceed)),
                false => Some(Err(Error::new(ErrorKind::Interrupted, "sub-agents in the background wait"))),
            }
        });
        tokio::select! {
            biased;
            verdict = settled => verdict,
            // a steering message arrived meanwhile
            () = SubRuns::of(cx).steered() => Ok(Verdict::Proceed),
        }
    }

    /// Called when the run stops: stops its sub-agents, and adds their questions to the run's.
    pub(super) async fn stop(&self, cx: &RunCx, end: &Result<RunEnd>) {
        let all_stopped = || self.watch(|| self.lock().iter().all(|child| !child.is_running()).then_some(()));
        let waits = matches!(end, Ok(RunEnd::Interrupted(_) | RunEnd::Paused(_)));
        if waits {
            self.lock().iter().for_each(|child| child.handle.pause());
            tokio::select! {
                () = all_stopped() => {}
                () = cx.cancellation().cancelled() => {}
            }
        }
        self.lock().iter().for_each(|child| child.handle.cancel());
        let _ = tokio::time::timeout(CANCEL_GRACE, all_stopped()).await;
        if matches!(end, Ok(RunEnd::Interrupted(_))) {
            for child in self.lock().iter().filter(|child| child.is_live()) {
                if let Stage::Stopped(stands) = child.stage() {
                    SubRuns::of(cx).ask_for(&stands);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Child>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stage_of(child: &Child, end: Result<RunEnd>, recall: bool) -> Stage {
    match end.map(RunEnd::finished) {
        Ok(Ok(finished)) => Stage::Done(text::answered(&child.key, &finished, recall)),
        Ok(Err(checkpoint)) => Stage::Stopped(checkpoint),
        Err(e) => Stage::Done(ToolOutput::error(text::failed(&child.key, &child.id, e).message().to_owned())),
    }
}
