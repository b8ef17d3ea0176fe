//! A sub-agent in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{
    Checkpoint, Message, RunCx, ToolOutput,
    engine::{SubRun, SubRunHandle, SubRuns},
};

use super::text;

/// A sub-agent in the background.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) key: String,
    /// Id with which the sub-agent can be resumed.
    pub(super) id: Arc<str>,
    pub(super) run: Arc<str>,
    pub(super) handle: SubRunHandle,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Number of calls that wait for its end, and will report it.
    waiting: usize,
    /// True if its end was reported to the caller.
    told: bool,
    /// True if the caller cancelled it.
    unwanted: bool,
}

/// Progress of the sub-agent.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Running,
    /// It waits for an answer, is paused or was cut off, and can be resumed from this checkpoint.
    Stopped(Box<Checkpoint>),
    /// It answered or failed.
    Done(ToolOutput),
}

impl Child {
    pub(super) fn new(run: &SubRun) -> Self {
        Self {
            key: run.key().to_owned(),
            id: run.id().clone(),
            run: run.run_id().clone(),
            handle: run.handle().clone(),
            state: Mutex::new(State { stage: Stage::Running, waiting: 0, told: false, unwanted: false }),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        self.lock().stage.clone()
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.lock().stage, Stage::Running)
    }

    /// True if it can still reach an end that its caller does not know.
    pub(super) fn is_live(&self) -> bool {
        let state = self.lock();
        !state.unwanted && !matches!(state.stage, Stage::Done(_))
    }

    /// Records its progress, and reports its end to the caller unless a call waits for it.
    pub(super) fn arrives_at(&self, cx: &RunCx, stage: Stage) {
        self.lock().stage = stage;
        self.tell(cx);
    }

    /// Cancels it: its end is not reported.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        (state.unwanted, state.told) = (true, true);
        drop(state);
        self.handle.cancel();
    }

    /// Takes its end for a call that reports it.
    pub(super) fn take_end(&self, cx: &RunCx) -> Option<ToolOutput> {
        let mut state = self.lock();
        let Stage::Done(output) = &state.stage else { return None };
        let output = output.clone();
        if !std::mem::replace(&mut state.told, true) {
            SubRuns::of(cx).report(&self.run, None).ok()?;
        }
        Some(output)
    }

    /// Describes its status.
    pub(super) fn status(&self) -> String {
        let how = match &*self.lock() {
            State { unwanted: true, .. } => "cancelled".to_owned(),
            State { stage: Stage::Running, .. } => "at work".to_owned(),
            State { stage: Stage::Stopped(checkpoint), .. } if checkpoint.questions.is_empty() => "paused".to_owned(),
            State { stage: Stage::Stopped(_), .. } => "waits for a person's answer".to_owned(),
            State { stage: Stage::Done(output), .. } if output.is_error() => format!("failed: {}", output.to_text()),
            State { stage: Stage::Done(_), .. } => "done".to_owned(),
        };
        format!("{} (id {}): {how}", self.key, self.id)
    }

    fn tell(&self, cx: &RunCx) {
        let mut state = self.lock();
        let Stage::Done(output) = &state.stage else { return };
        if state.waiting > 0 || state.told {
            return;
        }
        let message = Message::user(text::report(&self.key, &self.id, output));
        state.told = true;
        drop(state);
        // a run that has ended receives no reports
        let _ = SubRuns::of(cx).report(&self.run, Some(message));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for sub-agents: meanwhile it alone reports their ends.
pub(super) struct Waiting<'a> {
    cx: &'a RunCx,
    children: Vec<Arc<Child>>,
}

impl<'a> Waiting<'a> {
    pub(super) fn on(cx: &'a RunCx, children: Vec<Arc<Child>>) -> Self {
        children.iter().for_each(|child| child.lock().waiting += 1);
        Self { cx, children }
    }

    /// Takes the end of the first sub-agent that has one.
    pub(super) fn take_end(&self) -> Option<ToolOutput> {
        self.children.iter().find_map(|child| child.take_end(self.cx))
    }

    pub(super) fn is_any_running(&self) -> bool {
        self.children.iter().any(|child| child.is_running())
    }

    pub(super) fn status(&self) -> String {
        self.children.iter().map(|child| format!("- {}\n", child.status())).collect()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for child in &self.children {
            child.lock().waiting -= 1;
            child.tell(self.cx);
        }
    }
}
