//! Viewers of runs that are cancelled when nobody watches them.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use super::FoundRun;

/// Grace period of a run without viewers: a page that reloads reconnects soon.
const GRACE: Duration = Duration::from_millis(500);

/// Connections that stream a run.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    count: AtomicUsize,
    /// True if a client wants the run to continue without viewers.
    is_detached: AtomicBool,
}

/// Connection that streams a run. Dropping the last one cancels the run.
#[derive(Debug)]
pub(crate) struct Viewer(FoundRun);

impl FoundRun {
    /// Lets the run continue without viewers.
    pub(crate) fn detach(&self) {
        if let Some(viewers) = self.viewers() {
            viewers.is_detached.store(true, Ordering::Relaxed);
        }
    }

    /// Adds a viewer, whose absence cancels the run.
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
        if !run.is_live() || !run.is_unwatched() {
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
