//! A run of this process.

use std::{
    mem,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agent::{
    Result, RunEnd, RunHandle,
    core::Resources,
    dispatch::{Job, Signal},
    event::EventStream,
};
use tokio::sync::watch;

use super::{brought::PersistedRequest, local::Asked, viewers::Viewers};
use crate::clock::now;

/// Run of this process: queued, active, or ended recently.
#[derive(Debug)]
pub(super) struct LiveRun {
    /// The job, with the requested session.
    pub(super) job: Job,
    pub(super) tenant: Arc<str>,
    pub(super) subject: Arc<str>,
    /// Time of the request: milliseconds since 1970, UTC.
    pub(super) asked: u64,
    /// Digest of the request, to detect a different request with the same key.
    pub(super) digest: Option<Arc<str>>,
    /// Handles that the request has in this process.
    pub(super) resources: Resources,
    /// Sequence number of the first entry of a run that is resumed.
    pub(super) began: Option<u64>,
    /// Options of the request to persist.
    kept: Option<PersistedRequest>,
    is_kept: AtomicBool,
    pub(super) viewers: Viewers,
    handle: OnceLock<RunHandle>,
    /// Signals that arrived before the run started; none afterwards.
    early: Mutex<Option<Vec<Signal>>>,
    /// True once a user stopped the run.
    is_stopped: AtomicBool,
    /// True if the run is marked for resumption by the next process.
    is_marked: AtomicBool,
    /// A reader from the beginning that consumes nothing: it keeps transient events for later and
    /// reconnecting readers.
    reader: Mutex<Option<EventStream>>,
    begun: OnceLock<Begun>,
    end: OnceLock<Arc<Result<RunEnd>>>,
    phase: watch::Sender<Phase>,
}

/// Start position of a run.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// Name of the session in the store.
    pub(super) session: Arc<str>,
    /// Sequence number of the run's first entry.
    pub(super) seq: u64,
}

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Queued,
    Started,
    Begun,
    Ended,
}

impl LiveRun {
    pub(super) fn new(asked: Asked<'_>) -> Self {
        let (kept, is_kept) = asked.kept();
        Self {
            tenant: asked.caller.tenant().into(),
            subject: asked.caller.subject().into(),
            asked: now(),
            digest: asked.digest,
            resources: asked.resources,
            began: asked.began,
            kept,
            is_kept: AtomicBool::new(is_kept),
            viewers: Viewers::default(),
            handle: OnceLock::new(),
            early: Mutex::new(Some(Vec::new())),
            is_stopped: AtomicBool::new(false),
            is_marked: AtomicBool::new(false),
            reader: Mutex::default(),
            begun: OnceLock::new(),
            end: OnceLock::new(),
            phase: watch::Sender::new(Phase::Queued),
            job: asked.job,
        }
    }

    /// Attaches the started run, and delivers the signals that arrived before.
    pub(super) fn start(&self, handle: &RunHandle) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.events());
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if self.handle.set(handle.clone()).is_err() {
            return;
        }
        for signal in mem::take(&mut *early).into_iter().flatten() {
            if let Err(error) = deliver(handle, signal) {
                tracing::warn!(run = self.id(), %error, "a run did not take a signal that arrived before it started");
            }
        }
        drop(early);
        self.enter(Phase::Started);
    }

    /// Delivers a signal, now or when the run starts. Returns `false` if the run is over.
    ///
    /// # Errors
    /// [`ErrorKind::Stopped`](agent::ErrorKind::Stopped) if the run takes no more messages.
    pub(super) fn signal(&self, signal: Signal) -> Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        if matches!(signal, Signal::Cancel | Signal::Pause) {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        match &mut *self.early.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(early) => early.push(signal),
            None => {
                let Some(handle) = self.handle.get() else { return Ok(false) };
                deliver(handle, signal)?;
            }
        }
        Ok(true)
    }

    /// Records the position at which the run began.
    pub(super) fn begin(&self, begun: Begun) {
        if self.begun.set(begun).is_ok() {
            self.enter(Phase::Begun);
        }
    }

    /// Records the end of the run, which is published by [`leave`](Self::leave).
    pub(super) fn end_with(&self, end: Arc<Result<RunEnd>>) {
        let _ = self.end.set(end); // a run ends once
    }

    /// Publishes the end of the run.
    pub(super) fn leave(&self) {
        self.enter(Phase::Ended);
    }

    fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let is_later = *now < phase;
            *now = phase.max(*now);
            is_later
        });
    }

    /// Returns the run's id.
    pub(super) fn id(&self) -> &str {
        &self.job.at.run
    }

    /// Returns the name of the agent.
    pub(super) fn agent(&self) -> &Arc<str> {
        &self.job.at.agent
    }

    /// Returns the handle of the run, once it has started.
    pub(super) fn handle(&self) -> Option<&RunHandle> {
        self.handle.get()
    }

    /// True if a user stopped the run.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// True if the run is marked for resumption by the next process.
    pub(super) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    pub(super) fn set_marked(&self) {
        self.is_marked.store(true, Ordering::Relaxed);
    }

    /// Returns the options to persist.
    pub(super) fn kept(&self) -> Option<&PersistedRequest> {
        self.kept.as_ref()
    }

    /// True if the run was acknowledged, or is to be, before it begins.
    pub(super) fn is_queued(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.queued.is_some())
    }

    /// True if the options are persisted.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::Relaxed)
    }

    pub(super) fn set_kept(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// True if the run began, or its client was promised that it will.
    pub(super) fn is_known(&self) -> bool {
        self.begun().is_some() || self.is_queued()
    }

    /// Returns the session's name in the store: the actual one, or else the requested one.
    pub(super) fn session(&self) -> &Arc<str> {
        self.begun.get().map_or(&self.job.at.session, |begun| &begun.session)
    }

    /// Returns the start position; none while the run is queued.
    pub(super) fn begun(&self) -> Option<&Begun> {
        self.begun.get()
    }

    /// True if the run is no longer active.
    pub(super) fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Ended
    }

    /// Returns the end of a run that is over; none if nothing was left to run.
    pub(super) fn end(&self) -> Option<&Arc<Result<RunEnd>>> {
        self.end.get().filter(|_| self.is_over())
    }

    /// Waits until the run has reached this phase, or ended.
    pub(super) async fn reaches(&self, phase: Phase) {
        // The sender belongs to this run and lives as long as it.
        let _ = self.phase.subscribe().wait_for(|now| *now >= phase).await;
    }
}

fn deliver(handle: &RunHandle, signal: Signal) -> Result<()> {
    match signal {
        Signal::Cancel => handle.cancel(),
        Signal::Pause => handle.pause(),
        Signal::Steer(message) => return handle.steer(message),
        _ => return Err(agent::Error::config("unsupported signal")),
    }
    Ok(())
}
