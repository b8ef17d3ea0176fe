//! One part of a pattern: a run that happens once.

use agent_core::{
    AssistantMessage, History, Message, Result, RunEnd, RunRequest, WhenBusy, WhenWaiting, journal::RunStatus,
};
use agent_exec::Agent;

use super::{PartEnd, Scope};

/// Runs an agent on `text` as the part `name` of a pattern. If the agent has a store that has the run
/// already, its end is read, or it is resumed.
///
/// # Errors
/// Those of the run; [`ErrorKind::Interrupted`](agent_core::ErrorKind::Interrupted) with the questions
/// if it waits for answers; [`Finished::complete`](agent_core::Finished::complete) if it ended early.
pub(super) async fn run(agent: &Agent, scope: &Scope, name: String, text: String) -> Result<PartEnd> {
    let part = scope.below(&name);
    let request = match agent.store() {
        None => new(&part, text),
        Some(store) => {
            let index = store.index(&part.session).await?;
            let found = index.look(|index| {
                let (_, record) = index.run(&part.run)?;
                let ended = matches!(record.status, Some(RunStatus::Finished(_)));
                Some((ended, record.usage, index.history_after(&part.run).unwrap_or_default()))
            });
            match found {
                None => new(&part, text),
                Some((true, usage, history)) => return Ok(PartEnd { name, text: last_text(&history), usage }),
                Some((false, ..)) => RunRequest::recover(part.session.clone(), []),
            }
        }
    };
    let request = request.when_busy(WhenBusy::Queue { limit: 1 }).when_waiting(WhenWaiting::Supersede);
    let end: RunEnd = agent.start(request).await?;
    let finished = end.into_result()?.complete()?;
    Ok(PartEnd { name, text: finished.answer, usage: finished.tree_usage })
}

fn new(part: &Scope, text: String) -> RunRequest {
    RunRequest::user(text).session(part.session.clone()).run_id(part.run.clone())
}

/// The last text of the model.
fn last_text(history: &History) -> String {
    let last = history.iter().rev().filter_map(Message::as_assistant).find(|message| message.has_text());
    last.map(AssistantMessage::text).unwrap_or_default()
}
