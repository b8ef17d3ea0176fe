//! Which labels the content of a run's context has.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{GlobalStorage, History, Key, Message, PerRun, Result, RunCx, ToolMessage};

use super::{Label, Labels, PromptInjectionConfig};
use crate::permissions::fits;

const LABELS: Key<Labels> = Key::new("labels");

/// The labels of the contexts of runs.
///
/// They lie in the storage that the hierarchy shares, so they are journalled with the result that brought them: for the run,
/// where sub-agents find their caller's and leave it theirs, and for the agent, whose next run has the same conversation. What
/// a history brings along is read off it.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    /// What was read off the history so far.
    read: PerRun<Mutex<(History, Labels)>>,
    /// What the calls of the message under way bring.
    pub(super) brought: PerRun<Mutex<Brought>>,
}

/// The labels of what calls give, by their ids.
pub(super) type Brought = Vec<(Arc<str>, Labels)>;

impl PromptInjectionConfig {
    /// The labels of what a tool gives, without `Trusted`, which says nothing.
    pub(super) fn of_tool(&self, tool: &str) -> Labels {
        let mut patterns = self.tools.iter().filter(|(pattern, _)| fits(pattern, tool, None)).peekable();
        let mut labels: Labels = match patterns.peek() {
            Some(_) => patterns.flat_map(|(_, labels)| labels).copied().collect(),
            None => [self.other_tools].into(),
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
        // What it stands for was never in the context.
        if self.is_quarantined(result.name()) { Labels::new() } else { self.of_tool(result.name()) }
    }
}

impl Contexts {
    /// All labels of what is in the run's context.
    pub(super) fn labels(&self, config: &PromptInjectionConfig, cx: &RunCx) -> Result<Labels> {
        let read = self.read.of(cx, Mutex::default);
        let mut read = lock(&read);
        let history = cx.history();
        let (of, known) = &mut *read;
        match history.since(of) {
            Some(new) => known.extend(new.flat_map(|message| config.of_message(message))),
            // What was removed may live on in a summary: what is known stays.
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

/// A run begins: its context has what its agent's last one had, and what its caller's has.
pub(super) fn begin(cx: &RunCx) -> Result<()> {
    let mut labels = of_this_agent(cx).get(&LABELS)?.unwrap_or_default();
    if let Some(caller) = &cx.ids().parent_run_id {
        labels.extend(of_run(cx, caller).get(&LABELS)?.unwrap_or_default());
    }
    add(cx, &labels)
}

/// Content with these labels came into the context.
pub(super) fn add(cx: &RunCx, labels: &Labels) -> Result<()> {
    join(&of_run(cx, &cx.ids().run_id), labels)?;
    join(&of_this_agent(cx), labels)
}

/// A run ends: what it says to its caller has its labels.
pub(super) fn end(cx: &RunCx, labels: &Labels, finished: bool) -> Result<()> {
    join(&of_this_agent(cx), labels)?;
    if let Some(caller) = &cx.ids().parent_run_id {
        join(&of_run(cx, caller), labels)?;
    }
    // A caller at the top may have ended meanwhile: its next run is told then.
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
