//! Spans of a run: the runs, their model calls and their tool calls.

use std::{collections::HashMap, sync::Arc};

use agent::{
    Usage,
    journal::{Entry, EntryBody},
};
use serde_json::{Value, json};

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Model,
    Tool,
}

/// Something that took time.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Depth below the top-level run.
    pub(super) depth: usize,
    /// Milliseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Usage of a model call.
    pub(super) usage: Option<Usage>,
    /// True without an end in the journal: it is in progress, or its process died.
    pub(super) is_open: bool,
    /// The worker that did it last, by its name, if a worker did.
    pub(super) worker: Option<Arc<str>>,
}

impl Span {
    pub(super) fn to_json(&self) -> Value {
        let kind = match self.kind {
            Kind::Run => "run",
            Kind::Model => "model",
            Kind::Tool => "tool",
        };
        json!({
            "kind": kind, "name": self.name, "depth": self.depth, "start": self.start, "end": self.end,
            "usage": self.usage, "open": self.is_open, "worker": self.worker.as_deref(),
        })
    }
}

/// State of a run while entries are read.
struct Run {
    depth: usize,
    /// Its span.
    own: usize,
    /// When something of it was written last.
    before: u64,
    /// Worker that drives the run.
    worker: Option<Arc<str>>,
}

/// The spans of a tree of runs, in the order in which they began.
///
/// The journal has no entry for the beginning of a model call: the call began when the entry before it was written.
pub(super) fn spans(entries: &[Entry]) -> Vec<Span> {
    let last = entries.last().map_or(0, |entry| entry.time);
    let mut spans: Vec<Span> = Vec::new();
    let mut runs: HashMap<Arc<str>, Run> = HashMap::new();
    let mut open: HashMap<(Arc<str>, Arc<str>), usize> = HashMap::new();
    for entry in entries {
        let time = entry.time;
        if let EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } = &entry.body {
            if !runs.contains_key(&entry.run) {
                let above = ids.parent_run_id.as_ref().and_then(|above| runs.get(above));
                let depth = above.map_or(0, |above| above.depth + 2);
                runs.insert(entry.run.clone(), Run { depth, own: spans.len(), before: time, worker: None });
                spans.push(span(Kind::Run, ids.agent.to_string(), depth, time, last));
            }
            if let Some(run) = runs.get_mut(&entry.run) {
                run.worker.clone_from(&ids.worker);
                spans[run.own].worker.clone_from(&ids.worker);
            }
        }
        let Some(Run { depth, own, before, worker }) = runs.get_mut(&entry.run) else { continue };
        match &entry.body {
            EntryBody::ModelFinished { step, response } => {
                let model = response.model.as_deref().unwrap_or("model");
                let mut call = span(Kind::Model, format!("{step} {model}"), *depth + 1, *before, time);
                (call.usage, call.is_open, call.worker) = (Some(response.usage), false, worker.clone());
                spans.push(call);
            }
            EntryBody::ToolStarted { call_id, name, .. } => {
                open.insert((entry.run.clone(), call_id.clone()), spans.len());
                let call = span(Kind::Tool, name.to_string(), *depth + 1, time, last);
                spans.push(Span { worker: worker.clone(), ..call });
            }
            EntryBody::ToolFinished { call_id, .. }
            | EntryBody::ToolAnswered { call_id, .. }
            | EntryBody::ToolSuspended { call_id } => {
                if let Some(at) = open.remove(&(entry.run.clone(), call_id.clone())) {
                    (spans[at].end, spans[at].is_open) = (time, false);
                }
            }
            EntryBody::RunEnded { .. } => (spans[*own].end, spans[*own].is_open) = (time, false),
            EntryBody::RunResumed { .. } => (spans[*own].end, spans[*own].is_open) = (last, true),
            _ => {}
        }
        // Written together with the entry that follows it, at the end of the model call.
        if !matches!(entry.body, EntryBody::BudgetSettled { .. }) {
            *before = time;
        }
    }
    spans
}

fn span(kind: Kind, name: String, depth: usize, start: u64, end: u64) -> Span {
    Span { kind, name, depth, start, end, usage: None, is_open: true, worker: None }
}
