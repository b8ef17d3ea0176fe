//! Drives a request to the end of its run. Each stage consumes the value of the previous one:
//!
//! ```text
//! RunRequest -> Prepared -> Admitted -> StartState -> Job -> RunEnd
//!               prompts     session,    history,     log,   the executor's loop
//!               rendered    writer      answers      budget
//! ```

mod admission;
mod anchor;
mod answers;
mod assemble;
mod engine;
mod journal_sync;
mod locks;
mod parts;
mod prepared;
mod replay;
pub(crate) mod resume;
mod slot;
mod start_state;

use std::sync::Arc;

use agent_core::{
    Result, RunEnd, RunRequest, boxed,
    engine::{EventHub, Inbox, RunLog},
    journal::JournalWriter,
};

pub use self::answers::check_answer;
pub(crate) use self::parts::{AgentParts, Migration};
use self::{
    admission::{Admission, Admitted, admit},
    assemble::assemble,
    journal_sync::JournalSync,
    locks::SessionLocks,
    prepared::{Prepared, RunOptions},
    slot::RunSlot,
    start_state::StartState,
};
use crate::run::{Run, RunHandle};

/// Prepares a run. Nothing happens until it is polled.
pub(crate) fn start(agent: Arc<AgentParts>, request: RunRequest) -> Run {
    let slot = RunSlot::of(&agent, &request);
    let handle = RunHandle {
        cancel: slot.cancel.clone(),
        pause: slot.pause.clone(),
        inbox: slot.inbox.clone(),
        hub: slot.hub.clone(),
    };
    let close = Close { hub: (slot.ids.depth == 0).then(|| slot.hub.clone()), inbox: slot.inbox.clone() };
    let drain = agent.drain.clone().filter(|_| slot.ids.depth == 0).map(|drain| (drain, handle.clone()));
    // Boxed: each future that takes the request by value would hold it twice.
    let request = Box::new(request);
    let future = boxed(|| async move {
        let _close = close;
        let _present = drain.map(|(drain, handle)| drain.enter(handle)).transpose()?;
        run(&agent, request, slot).await
    });
    Run::new(handle, future)
}

/// Closes the event readers of a tree when its root run ends, however it ends, and rejects late
/// steering messages.
struct Close {
    hub: Option<EventHub>,
    inbox: Inbox,
}

impl Drop for Close {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(hub) = &self.hub {
            hub.close();
        }
    }
}

async fn run(agent: &AgentParts, request: Box<RunRequest>, mut slot: RunSlot) -> Result<RunEnd> {
    slot.begins_now(); // nothing happens before the first poll
    let prepared = Prepared::of(agent, *request)?;
    match admit(agent, &prepared, slot).await? {
        Admission::Runs(Admitted { slot, writer, guard }) => {
            if let Some(drain) = agent.drain.as_ref().filter(|_| slot.ids.depth == 0) {
                drain.admits()?;
            }
            let end = match prepared.options.steps.clone() {
                Some(steps) => engine::drive_on(&steps, agent, prepared, slot, writer).await,
                None => drive(agent, prepared, slot, writer).await,
            };
            if let Some(guard) = guard {
                guard.end(&end);
            }
            end
        }
        Admission::Ended(end) => end,
    }
}

/// Drives a run that holds its session's writer.
async fn drive(
    agent: &AgentParts,
    prepared: Prepared,
    slot: RunSlot,
    writer: Arc<dyn JournalWriter>,
) -> Result<RunEnd> {
    let Prepared { input, state, system, options } = prepared;
    // Before anything is written: a run that is refused leaves nothing behind.
    let table = agent.executor.table(&options.tools, &agent.schema)?;
    let begin = StartState::of(agent, input, state, &options, &slot, &*writer);
    let begun = slot.in_time(begin).await?;
    if let Some(end) = resume::ended(&begun, &options) {
        return Ok(end);
    }
    let (recording, journal) = (begun.recording().cloned(), slot.journal.clone());
    let job = assemble(agent, &options, slot, begun, writer, system, table)?;
    let _over = Over(job.driver.engine().log().clone());
    let end = agent.executor.execute(job).await;
    match recording {
        Some(recording) => replay::compare(&recording, &*journal, end).await,
        None => end,
    }
}

/// Closes the run's log even if the run is dropped, whatever tasks are still running.
struct Over(RunLog);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.flush(); // the parent run may continue, and knows the child up to this point
        self.0.close();
    }
}
