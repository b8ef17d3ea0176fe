//! Timeline of a run.

use std::{collections::HashMap, sync::Arc};

use agent::{
    Message,
    core::RunIds,
    journal::{Entry, EntryBody},
};
use serde_json::{Value, json};

use crate::output::{line, table};

/// Something that happened.
pub(super) struct Row {
    /// Milliseconds since the run began.
    after: u64,
    depth: u32,
    what: &'static str,
    about: String,
    /// The worker that did it, by its name, if a worker did.
    worker: Option<Arc<str>>,
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        let worker = self.worker.as_deref();
        json!({"after_ms": self.after, "depth": self.depth, "what": self.what, "about": self.about, "worker": worker})
    }
}

pub(super) fn text(entries: &[Entry]) -> String {
    let rows = rows(entries).into_iter().map(|row| {
        let after = format!("{:>9.3}", row.after as f64 / 1e3);
        vec![after, format!("{}{}", "  ".repeat(row.depth as usize), row.what), line(&row.about, 100)]
    });
    let mut text = table(&rows.collect::<Vec<_>>());
    text.push('\n');
    text
}

pub(super) fn rows(entries: &[Entry]) -> Vec<Row> {
    let began = entries.first().map_or(0, |entry| entry.time);
    let mut runs = HashMap::new();
    let mut rows = Vec::new();
    for entry in entries {
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body {
            runs.insert(entry.run.clone(), ids.clone());
        }
        if let Some((what, about)) = told(&entry.body) {
            let ids = runs.get(&entry.run);
            let (depth, worker) = (ids.map_or(0, |ids| ids.depth), ids.and_then(|ids| ids.worker.clone()));
            rows.push(Row { after: entry.time.saturating_sub(began), depth, what, about, worker });
        }
    }
    rows
}

/// An agent, and the worker that drives it.
fn who(ids: &RunIds) -> String {
    match &ids.worker {
        Some(worker) => format!("{} on {worker}", ids.agent),
        None => ids.agent.to_string(),
    }
}

/// Returns the text of an entry for a person; `None` if it has none.
fn told(body: &EntryBody) -> Option<(&'static str, String)> {
    Some(match body {
        EntryBody::RunStarted { ids, .. } => ("begins", who(ids)),
        EntryBody::RunResumed { ids, .. } => ("goes on", who(ids)),
        EntryBody::Imported { .. } => ("imported", String::new()),
        EntryBody::MessageAppended { message } => (message.role(), message.text()),
        EntryBody::Steered { message } => ("steered", message.text()),
        EntryBody::ModelFinished { response, .. } => {
            let calls: Vec<_> =
                response.message.calls().map(|call| format!("{} {}", call.name, call.arguments)).collect();
            ("model", if calls.is_empty() { response.message.text() } else { calls.join("; ") })
        }
        EntryBody::ExitDeclined {} => ("goes on", "a hook wants another answer".into()),
        EntryBody::StopRequested { reason } => ("stop", reason.to_string()),
        EntryBody::ToolStarted { name, .. } => ("tool", name.to_string()),
        EntryBody::ToolFinished { output, .. } => ("result", output.to_text()),
        EntryBody::ToolAnswered { name, output: Some(output), .. } => {
            ("answer", format!("{name}: {}", output.to_text()))
        }
        EntryBody::ToolSuspended { .. } => ("waits", String::new()),
        EntryBody::Asked { question } => ("asks", format!("{} {}", question.id, question.payload)),
        EntryBody::Answered { id, answer, by, .. } => {
            let by = by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
            ("answered", format!("{id}{by}: {answer}"))
        }
        EntryBody::HistoryReplaced { reason, before, history } => {
            ("replaced", format!("{reason}: {before} messages, now {}", history.len()))
        }
        EntryBody::Undone { before_run } => ("undone", format!("back to before {before_run}")),
        EntryBody::Decided { name, .. } => ("decided", name.clone()),
        EntryBody::StateChanged { state, globals } => {
            ("state", state.keys().chain(globals.keys()).cloned().collect::<Vec<_>>().join(", "))
        }
        EntryBody::SideModelFinished { .. } => ("side model", String::new()),
        EntryBody::SubAgentLinked { key, .. } => ("sub-agent", key.clone()),
        EntryBody::SubAgentReported { message, .. } => {
            ("reported", message.as_ref().map_or_else(String::new, Message::text))
        }
        EntryBody::RunEnded { status, error, .. } => {
            let status = serde_json::to_value(status).unwrap_or_default();
            let status = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
            ("ends", error.as_ref().map_or_else(|| status.clone(), |error| format!("{status}: {error}")))
        }
        _ => return None,
    })
}
