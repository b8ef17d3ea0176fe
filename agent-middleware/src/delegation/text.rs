//! Messages to the model about its sub-agents.

use agent_core::{Error, ExitReason, Finished, Part, ToolOutput};
use serde_json::json;

use super::ask_parent::ASK_PARENT;

/// Returns the answer of a sub-agent, with notes for its caller.
pub(super) fn answered(key: &str, finished: &Finished, recall: bool) -> ToolOutput {
    let Finished { answer, reason, ids, .. } = finished;
    let note = match reason {
        ExitReason::Tool(tool) if tool == ASK_PARENT => {
            // Without its id, the next call starts a new sub-agent, which does not know the
            // question.
            let again =
                if recall { "with its id and your answer" } else { "with the whole task and your answer in it" };
            Some(format!("asks this before it goes on: call it again, {again}"))
        }
        ExitReason::StepLimit => Some("reached its step limit before it was done".to_owned()),
        ExitReason::Budget => Some("used up its budget before it was done".to_owned()),
        ExitReason::Deadline => Some("ran out of time before it was done".to_owned()),
        ExitReason::Length => Some("was cut off at the length limit of its model".to_owned()),
        ExitReason::ContentFilter => Some("had its answer withheld by the provider".to_owned()),
        ExitReason::Stopped(why) => Some(format!("was stopped: {why}")),
        _ => answer.is_empty().then(|| "gave no answer".to_owned()),
    };
    let note = note.map(|note| format!("[Sub-agent '{key}' {note}.]"));
    let id = recall.then(|| format!("[The id of this sub-agent: {}]", ids.agent_id));
    let shown: Vec<_> = [Some(answer.clone()).filter(|a| !a.is_empty()), note, id].into_iter().flatten().collect();
    let value = json!({
        "agent": key, "id": ids.agent_id, "run_id": ids.run_id, "answer": answer, "reason": reason.to_string(),
    });
    ToolOutput::value(value).shown_as(vec![Part::text(shown.join("\n\n"))])
}

/// Reports that a sub-agent failed. Its caller may resume it with its work so far.
pub(super) fn failed(key: &str, id: &str, e: Error) -> Error {
    Error::tool(format!("Sub-agent '{key}' failed (id {id}): {}", e.message())).with_source(e)
}

/// Reports that a sub-agent now runs in the background.
pub(super) fn started(key: &str, id: &str, run_id: &str, tool: &str) -> ToolOutput {
    let text = format!(
        "Sub-agent '{key}' runs in the background (id {id}). You will be told when it is done; to wait for it call \
         {tool}_wait."
    );
    let value = json!({"agent": key, "id": id, "run_id": run_id, "state": "running"});
    ToolOutput::value(value).shown_as(vec![Part::text(text)])
}

/// Reports how a background sub-agent ended, as a message.
pub(super) fn report(key: &str, id: &str, output: &ToolOutput) -> String {
    let how = if output.is_error() { "failed" } else { "is done" };
    format!("[Sub-agent '{key}' (id {id}), which ran in the background, {how}:]\n\n{}", output.to_text())
}

/// Reports that a sub-agent was lost with its process before it began.
pub(super) fn lost(key: &str) -> String {
    format!(
        "[A sub-agent '{key}' that was to run in the background was lost before it began. Call it again if you need it.]"
    )
}
