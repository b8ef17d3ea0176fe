//! The journal of a session, read back and printed line by line.

use std::{collections::HashMap, sync::Arc};

use agent::{
    Result,
    core::{
        Journal, RunIds,
        journal::{Entry, EntryBody},
    },
};

use crate::show::preview;

/// Entries that are read at once.
const PAGE: usize = 200;

pub(crate) async fn print(journal: &dyn Journal, session: &str) -> Result<()> {
    println!("\nTimeline (from the journal):");
    let (mut runs, mut start, mut after) = (HashMap::new(), None, 0);
    loop {
        let page = journal.read(session, after, PAGE).await?;
        for entry in &page {
            let start = *start.get_or_insert(entry.time);
            line(&mut runs, entry, entry.time.saturating_sub(start));
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.seq,
            _ => return Ok(()),
        }
    }
}

fn line(runs: &mut HashMap<Arc<str>, Arc<RunIds>>, entry: &Entry, at: u64) {
    if let EntryBody::RunStarted { ids, .. } = &entry.body {
        runs.insert(entry.run.clone(), ids.clone());
    }
    let path = runs.get(&entry.run).map_or("?", |ids| &*ids.path);
    println!("{:>5}  +{at:>6} ms  {path:<17} {}", entry.seq, describe(&entry.body));
}

fn describe(body: &EntryBody) -> String {
    match body {
        EntryBody::RunStarted { .. } => "run started".into(),
        EntryBody::RunEnded { status, usage, error, .. } => {
            let why = error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
            format!("run ended: {status:?}{why} ({} tokens)", usage.total())
        }
        EntryBody::MessageAppended { message } => format!("{}: {}", message.role(), preview(&message.text())),
        EntryBody::ModelFinished { step, response } => {
            let calls = response.message.calls().count();
            format!("model answered step {step}: {calls} call(s), {} tokens", response.usage.total())
        }
        EntryBody::ModelAccepted { step, .. } => format!("answer of step {step} accepted"),
        EntryBody::ToolStarted { name, effect, .. } => format!("tool {name} started ({effect:?})"),
        EntryBody::ToolFinished { output, .. } => format!("tool finished: {}", preview(&output.to_text())),
        EntryBody::ToolAnswered { name, .. } => format!("call of {name} answered"),
        EntryBody::TurnEnded { step, .. } => format!("turn of step {step} is in the history"),
        EntryBody::SubAgentLinked { key, .. } => format!("sub-agent {key} called"),
        EntryBody::StateChanged { state, globals } => {
            let keys: Vec<_> = state.keys().chain(globals.keys()).map(String::as_str).collect();
            format!("changed: {}", keys.join(", "))
        }
        other => preview(&format!("{other:?}")),
    }
}
