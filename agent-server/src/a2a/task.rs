//! Conversion of runs into tasks.

use agent::Question;
use serde_json::{Value, json};

use crate::{ApiError, FoundRun, RunStatus, RunView, clock::timestamp, conversation::interrupt_id, speech::Ending};

/// Id of the artifact with the answer.
pub(super) const ANSWER: &str = "answer";

/// Returns the current task object of a run.
///
/// # Errors
/// The errors of the store.
pub(super) async fn task(run: &FoundRun) -> Result<Value, ApiError> {
    Ok(of_view(&run.view().await?))
}

/// Converts the view of a run into a task object.
pub(super) fn of_view(view: &RunView) -> Value {
    let names = Names { task: view.run.clone(), context: view.session.clone() };
    let mut task = json!({"kind": "task", "id": view.run, "contextId": view.session, "status": status(view, &names)});
    task["status"]["timestamp"] = timestamp(view.ended.unwrap_or(view.started)).into();
    if let Some(answer) = view.answer.as_ref().filter(|answer| !answer.is_empty()) {
        task["artifacts"] = json!([artifact(answer)]);
    }
    task
}

/// Task and context ids of a run.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) task: String,
    pub(super) context: String,
}

/// Returns the artifact with the answer or a part of it.
pub(super) fn artifact(text: &str) -> Value {
    json!({"artifactId": ANSWER, "parts": [{"kind": "text", "text": text}]})
}

/// Returns the state of a run as a task, in version 0.3.
pub(super) fn state(view: &RunView) -> &'static str {
    match view.status {
        RunStatus::Waiting => "input-required",
        RunStatus::Finished => "completed",
        RunStatus::Cancelled => "canceled",
        RunStatus::Failed => "failed",
        RunStatus::Queued => "submitted",
        _ => "working",
    }
}

fn status(view: &RunView, names: &Names) -> Value {
    match view.status {
        RunStatus::Waiting => asked(&view.questions, names),
        RunStatus::Failed => failed(view.error.as_deref().unwrap_or("the run stopped"), names),
        _ => json!({"state": state(view)}),
    }
}

/// Returns the task status of a run that ended this way.
pub(super) fn status_of(ending: &Ending, names: &Names) -> Value {
    match ending {
        Ending::Finished { .. } => json!({"state": "completed"}),
        Ending::Interrupted(questions) => asked(questions, names),
        Ending::Paused => json!({"state": "working"}),
        Ending::Cancelled => json!({"state": "canceled"}),
        Ending::Failed { message, .. } => failed(message, names),
    }
}

fn failed(why: &str, names: &Names) -> Value {
    json!({"state": "failed", "message": message(&format!("{}-failed", names.task), &json!([{"kind": "text", "text": why}]), names)})
}

/// Describes questions as text and as data.
fn asked(questions: &[Question], names: &Names) -> Value {
    let id = questions.first().map_or("", interrupt_id);
    let describe = |question: &Question| {
        let Question { id, kind, payload, schema, .. } = question;
        json!({"id": id, "kind": kind, "payload": payload, "schema": schema})
    };
    let words = |question: &Question| format!("{}: {}", question.kind, question.payload);
    let text = questions.iter().map(words).collect::<Vec<_>>().join("\n");
    let data: Vec<_> = questions.iter().map(describe).collect();
    let parts = json!([{"kind": "text", "text": text}, {"kind": "data", "data": {"questions": data}}]);
    json!({"state": "input-required", "message": message(id, &parts, names)})
}

fn message(id: &str, parts: &Value, names: &Names) -> Value {
    let Names { task, context } = names;
    json!({"kind": "message", "messageId": id, "role": "agent", "parts": parts, "taskId": task, "contextId": context})
}
