//! A run without an executor.

use std::sync::Arc;

use crate::{
    event::{Emitter, EventHub},
    history::History,
    journal::MemoryJournal,
    log::RunLog,
    run::driver::{RunDriver, RunParts},
    state::RunIds,
    storage::{GlobalStorage, State},
};

/// Creates a run without an executor, over an in-memory journal: for tests of one hook, tool or
/// model.
///
/// ```
/// use agent_core::{History, Message, testing::detached_run};
///
/// let mut history = History::default();
/// history.push(Message::user("hello"))?;
/// let run = detached_run(history);
/// assert_eq!(run.cx().history().len(), 1);
/// # Ok::<(), agent_core::Error>(())
/// ```
///
/// # Panics
/// Never: a new journal has no writer.
pub fn detached_run(history: History) -> RunDriver {
    detached_run_as(RunIds::root("test", "test"), history)
}

/// Like [`detached_run`], for a run with these ids, for example those of a sub-agent.
///
/// # Panics
/// Never: a new journal has no writer.
pub fn detached_run_as(ids: RunIds, history: History) -> RunDriver {
    let ids = Arc::new(ids);
    let journal = Arc::new(MemoryJournal::default());
    let writer = journal.open_now(&ids.session, &ids.agent_id).expect("a fresh journal is free");
    let hub = EventHub::new(journal.clone(), ids.session.clone());
    let emitter = Emitter::new(ids.clone(), hub, None);
    let (state, globals) = (State::default(), GlobalStorage::default());
    let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
    log.seed(history);
    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals) = (state, globals);
    RunDriver::new(parts)
}
