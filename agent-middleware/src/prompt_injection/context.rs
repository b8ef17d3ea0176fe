//! Labels of the content in a run's context.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{GlobalStorage, History, Key, Message, PerRun, Result, RunCx, ToolMessage};

use super::{Label, Labels, PromptInjectionConfig};
use crate::permissions::fits;

const LABELS: Key<Labels> = Key::new("labels");

/// Tracks the labels of the contexts of runs.
///
/// Labels are stored in the storage that the hierarchy shares, so they are journalled with the
/// result that introduced them: per run, so that sub-agents inherit their caller's labels and pass
/// on their own, and per agent, whose next run has the same conversation. Labels of an existing
/// history are derived from its messages.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    /// Labels derived from the history so far.
    read: PerRun<Mutex<(History, Labels)>>,
    /// Labels that the calls of the current message introduce.
    pub(super) brought: PerRun<Mutex<Brought>>,
}

/// Labels of call outputs, by call id.
pub(super) type Brought = Vec<(Arc<str>, Labels)>;

impl PromptInjectionConfig {
    /// Returns the labels of a tool's outputs, without `Trusted`, which has no effect.
    pub(super) fn of_tool(&self, tool: &str) -> Labels {
        let mut patterns = self.tools.iter().filter(|(pattern, _)| fits(pattern, tool, None)).peekable();
        let mut labels: Labels = match patterns.peek() {
            Some(_) => patterns.flat_map(|(_, labels)| labels).copied().collect(),
            None => self.other_tools.into_iter().collect(),
        };
        labels.remove(&Label::Trusted);
        labels
    }

    pub(super) fn is_quarantined(&self, tool: &str) -> bool {
        self.quarantine.iter().any(|pattern| fits(pattern, tool, None))
    }

    fn of_message(&self, message: &Message) -> Labels {
        match message {
            Message::Tool(result) => self.of_result(result),
            Message::User(_) if self.user != Label::Trusted => [self.user].into(),
            _ => Labels::new(),
        }
    }

    fn of_result(&self, result: &ToolMessage) -> Labels {
        // The quarantined output was never in the context.
        if self.is_quarantined(result.name()) { Labels::new() } else { self.of_tool(result.name()) }
    }
}

impl Contexts {
    /// Returns all labels of the content in the run's context.
    pub(super) fn labels(&self, config: &PromptInjectionConfig, cx: &RunCx) -> Result<Labels> {
        let read = self.read.of(cx, Mutex::default);
        let mut read = lock(&read);
        let history = cx.history();
        let (of, known) = &mut *read;
        match history.since(of) {
            Some(new) => known.extend(new.flat_map(|message| config.of_message(message))),
            // Removed messages may live on in a summary, so their labels stay.
            None => known.extend(history.iter().flat_map(|message| config.of_message(message))),
        }
        *of = history;
        let mut labels = read.1.clone();
        labels.extend(of_run(cx, &cx.ids().run_id).get(&LABELS)?.unwrap_or_default());
        Ok(labels)
    }

    pub(super) fn end(&self, cx: &RunCx) {
        self.read.end(cx);
        self.brought.end(cx);
    }
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called at the start of a run: its context inherits the labels of its agent's last run and of its
/// caller.
pub(super) fn begin(cx: &RunCx) -> Result<()> {
    let mut labels = of_this_agent(cx).get(&LABELS)?.unwrap_or_default();
    if let Some(caller) = &cx.ids().parent_run_id {
        labels.extend(of_run(cx, caller).get(&LABELS)?.unwrap_or_default());
    }
    add(cx, &labels)
}

/// Records that content with these labels entered the context.
pub(crate) fn add(cx: &RunCx, labels: &Labels) -> Result<()> {
    join(&of_run(cx, &cx.ids().run_id), labels)?;
    join(&of_this_agent(cx), labels)
}

/// Called at the end of a run: its answer passes its labels to the caller.
pub(super) fn end(cx: &RunCx, labels: &Labels, finished: bool) -> Result<()> {
    join(&of_this_agent(cx), labels)?;
    if let Some(caller) = &cx.ids().parent_run_id {
        join(&of_run(cx, caller), labels)?;
    }
    // A root caller may have ended meanwhile, so its agent's next run inherits the labels.
    if cx.ids().depth == 1
        && let Some(root) = cx.ids().path.split('/').next()
    {
        join(&of_agent(cx, root), labels)?;
    }
    if finished {
        of_run(cx, &cx.ids().run_id).remove(&LABELS);
    }
    Ok(())
}

/// Labels that entered the context of the run or of an earlier run of its agent in the session; of
/// content that is stored beyond the session.
pub(crate) fn introduced(cx: &RunCx) -> Result<Labels> {
    let mut labels = of_this_agent(cx).get(&LABELS)?.unwrap_or_default();
    labels.extend(of_run(cx, &cx.ids().run_id).get(&LABELS)?.unwrap_or_default());
    Ok(labels)
}

fn join(storage: &GlobalStorage, labels: &Labels) -> Result<()> {
    storage.transaction(|tx| {
        let mut all = tx.get(&LABELS)?.unwrap_or_default();
        let before = all.len();
        all.extend(labels);
        if all.len() > before { tx.set(&LABELS, &all) } else { Ok(()) }
    })
}

fn of_run(cx: &RunCx, run_id: &str) -> GlobalStorage {
    cx.globals().scope("prompt_injection").scope("runs").scope(run_id)
}

fn of_this_agent(cx: &RunCx) -> GlobalStorage {
    of_agent(cx, &cx.ids().agent_id)
}

fn of_agent(cx: &RunCx, agent_id: &str) -> GlobalStorage {
    cx.globals().scope("prompt_injection").scope("agents").scope(agent_id)
}
