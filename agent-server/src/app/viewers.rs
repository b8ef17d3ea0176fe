//! Who watches a run that is of no use when nobody does.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use super::FoundRun;

/// How long a run without a viewer goes on: a page that is drawn twice, or loaded anew, is soon back.
const GRACE: Duration = Duration::from_millis(500);

/// The connections on which a run is told.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    count: AtomicUsize,
    /// Somebody wants it to go on without.
    is_detached: AtomicBool,
}

/// A connection on which a run is told. When the last one is dropped, the run is cancelled.
#[derive(Debug)]
pub(crate) struct Viewer(FoundRun);

impl FoundRun {
    /// Lets the run go on when nobody watches it any more.
    pub(crate) fn detach(&self) {
        if let Some(viewers) = self.viewers() {
            viewers.is_detached.store(true, Ordering::Relaxed);
        }
    }

    /// One more viewer, without whom the run is of no use.
    pub(crate) fn viewer(&self) -> Viewer {
        if let Some(viewers) = self.viewers() {
            viewers.count.fetch_add(1, Ordering::AcqRel);
        }
        Viewer(self.clone())
    }

    fn is_unwatched(&self) -> bool {
        self.viewers().is_some_and(|viewers| {
            viewers.count.load(Ordering::Acquire) == 0 && !viewers.is_detached.load(Ordering::Relaxed)
        })
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let run = self.0.clone();
        let Some(viewers) = run.viewers() else { return };
        viewers.count.fetch_sub(1, Ordering::AcqRel);
        if run.handle().is_none() || !run.is_unwatched() {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                tokio::time::sleep(GRACE).await;
                if run.is_unwatched() {
                    run.cancel();
                }
            })),
            Err(_) => drop(run.cancel()),
        }
    }
}
