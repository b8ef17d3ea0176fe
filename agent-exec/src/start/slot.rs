//! Identity and handles of a run, created before anything is read or written.

use std::{sync::Arc, time::Duration};

use agent_core::{
    Budget, Error, ErrorKind, Journal, MemoryJournal, Result, RunIds, RunRequest,
    engine::{Emitter, EventHub, Inbox, Parent, Pause},
    run::{DeadlineKind, RunInput, new_id},
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::AgentParts;
use crate::engine::KEY;

/// Handles that all runs of a tree share, and those that belong to this run from the start.
#[derive(Clone)]
pub(super) struct RunSlot {
    pub(super) ids: Arc<RunIds>,
    pub(super) hub: EventHub,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) above: Option<Emitter>,
    pub(super) pause: Pause,
    pub(super) inbox: Inbox,
    pub(super) cancel: CancellationToken,
    /// When the run may begin, and how long it may take from then on.
    pub(super) time: Time,
}

/// Time limit of a run before its own deadline exists.
#[derive(Clone, Copy)]
pub(super) struct Time {
    began: Instant,
    most: Option<Duration>,
}

impl Time {
    /// Time since the run may begin.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl RunSlot {
    pub(super) fn of(agent: &AgentParts, request: &RunRequest) -> Self {
        let parent = request.parent.as_ref();
        // A parent that belongs to another executor is rejected at admission.
        let above = parent.and_then(|parent| KEY.open(&parent.cx));
        let ids = Arc::new(ids(agent, request));
        let journal: Arc<dyn Journal> = match (above, &agent.journal) {
            // A replay writes only to a temporary journal.
            _ if matches!(request.input, RunInput::Replay) => Arc::new(MemoryJournal::default()),
            (Some(above), _) => above.log().journal().clone(),
            (None, Some(journal)) => journal.clone(),
            (None, None) => match &request.steps {
                // The end of a child run is persisted together with its notes.
                Some(steps) => steps.engine().journal().unwrap_or_else(|| Arc::new(MemoryJournal::default())),
                None => Arc::new(MemoryJournal::bounded(agent.entries_kept)),
            },
        };
        let handle = request.parent.as_ref().and_then(|parent| parent.handle.as_ref());
        Self {
            hub: above.map_or_else(
                || EventHub::new(journal.clone(), ids.session.clone()),
                |above| above.emitter().hub().clone(),
            ),
            journal,
            above: above.map(|above| above.emitter().clone()),
            pause: match (handle, above) {
                (Some(handle), _) => handle.pause_flag().clone(),
                (None, above) => above.map(|above| above.pause_flag().clone()).unwrap_or_default(),
            },
            // A layer that runs the agent again finds the first run's inbox closed.
            inbox: handle.map(|handle| handle.inbox().clone()).filter(|inbox| !inbox.is_closed()).unwrap_or_default(),
            cancel: match (handle, parent) {
                (Some(handle), _) => handle.cancellation().clone(),
                (None, above) => above.map(|above| above.cx.cancellation().child_token()).unwrap_or_default(),
            },
            time: Time { began: Instant::now(), most: longest(agent, request) },
            ids,
        }
    }

    /// The run has its turn in the session: its time counts from now on.
    pub(super) fn begins_now(&mut self) {
        self.time.began = Instant::now();
    }

    /// Returns the result of `work`, unless the run is cancelled or its time is up first.
    ///
    /// # Errors
    /// Those of `work`; [`ErrorKind::Cancelled`]; [`ErrorKind::Timeout`].
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let late = async {
            match self.time.most {
                Some(most) => {
                    sleep_until(self.time.began + most).await;
                    DeadlineKind::Run.passed(format!("the run took longer than {most:?} to begin"), most)
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = self.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the run was cancelled before it began")),
            late = late => Err(late),
        }
    }

    /// Moves the run to another session. Only valid before anything was written.
    pub(super) fn moved_to(mut self, session: Arc<str>) -> Self {
        Arc::make_mut(&mut self.ids).session = session.clone();
        self.hub.move_to(session);
        self
    }
}

/// Longest time that the run may take, according to the agent's deadlines and the budgets.
fn longest(agent: &AgentParts, request: &RunRequest) -> Option<Duration> {
    let own = request.caps.and_then(|caps| caps.wall_time);
    let budgets = [Some(&agent.budget), request.budget.as_ref()].into_iter().flatten();
    let limits = budgets.filter_map(Budget::wall_time).chain(agent.executor.deadlines.run).chain(own);
    let elapsed = match &request.input {
        RunInput::Resume { checkpoint, .. } => Duration::from_millis(checkpoint.elapsed_ms),
        _ => Duration::ZERO,
    };
    limits.min().map(|most| most.saturating_sub(elapsed))
}

fn ids(agent: &AgentParts, request: &RunRequest) -> RunIds {
    let mut ids = match (&request.input, &request.parent) {
        (RunInput::Resume { checkpoint, .. }, _) => checkpoint.ids.clone(),
        (_, Some(Parent { cx, .. })) => {
            cx.ids().child(agent.name.clone(), request.agent_id.clone(), request.run_id.clone())
        }
        (_, None) => root_ids(agent, request),
    };
    let above = request.parent.as_ref().map(|parent| parent.cx.ids());
    ids.worker = above.map_or_else(|| request.worker.clone(), |above| above.worker.clone());
    ids
}

fn root_ids(agent: &AgentParts, request: &RunRequest) -> RunIds {
    // Stable id: the same whenever an engine drives the run.
    let of_run = || request.steps.as_ref().and(request.run_id.clone());
    let session = request.session.clone().or_else(of_run).unwrap_or_else(|| new_id().into());
    let mut ids = RunIds::root(agent.name.clone(), session);
    (ids.user, ids.traceparent) = (request.user.clone(), request.traceparent.clone());
    if let Some(agent_id) = &request.agent_id {
        ids.agent_id = agent_id.clone();
    }
    if let Some(run_id) = &request.run_id {
        (ids.run_id, ids.root_run_id) = (run_id.clone(), run_id.clone());
    }
    ids
}
