//! Writes to a session outside of runs.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use agent_core::{
    AssistantMessage, ExitReason, History, Message, Result, RunIds, ToolMessage,
    journal::{EDITED, Entry, EntryBody, JournalWriter, RunStatus},
};
use serde_json::Value;

/// Writes `bodies` atomically as a separate run that ends at once, so that the edit can be listed
/// and undone like a run, and supersedes a waiting run. Returns the run's id.
pub(super) async fn write(writer: &dyn JournalWriter, ids: RunIds, bodies: Vec<EntryBody>) -> Result<Arc<str>> {
    let run = ids.run_id.clone();
    let started = EntryBody::RunStarted { ids: Arc::new(ids), fingerprint: String::new() };
    let status = RunStatus::Finished(ExitReason::Stopped(EDITED.to_owned()));
    let ended = EntryBody::RunEnded { status, usage: Box::default(), error: None, answer: None };
    let bodies = std::iter::once(started).chain(bodies).chain([ended]);
    append(writer, &run, bodies).await?;
    Ok(run)
}

/// Appends entries of `run`, and waits until they are durable.
pub(super) async fn append(
    writer: &dyn JournalWriter,
    run: &Arc<str>,
    bodies: impl IntoIterator<Item = EntryBody>,
) -> Result<()> {
    let time = now();
    let entries = bodies.into_iter().map(|body| Entry::new(run.clone(), time, body)).collect();
    writer.append(entries).await?;
    Ok(())
}

/// Returns the ids of an edit of `agent_id`'s side of `session`.
pub(super) fn ids(session: &Arc<str>, agent_id: &Arc<str>) -> RunIds {
    RunIds::root(agent_id.clone(), session.clone())
}

/// Returns the entries that add `history` to a session.
pub(super) fn messages(history: &History) -> Vec<EntryBody> {
    let mut bodies = Vec::new();
    let mut messages = history.iter().cloned().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::Assistant(m) => bodies.extend(said(m, &mut messages)),
            message => bodies.push(EntryBody::MessageAppended { message }),
        }
    }
    bodies
}

fn said(message: AssistantMessage, after: &mut std::iter::Peekable<impl Iterator<Item = Message>>) -> Vec<EntryBody> {
    if !message.has_calls() {
        return vec![EntryBody::MessageAppended { message: Message::Assistant(message) }];
    }
    let results = std::iter::from_fn(|| after.next_if(|m| m.as_tool().is_some()));
    let results: Vec<ToolMessage> = results.filter_map(|m| m.as_tool().cloned()).collect();
    EntryBody::of_turn(message, &results)
}

/// Returns the entry that sets the storage shared by the agents of a session.
pub(super) fn globals(values: BTreeMap<String, Value>) -> Option<EntryBody> {
    let globals: BTreeMap<_, _> = values.into_iter().map(|(key, value)| (key, Some(value))).collect();
    (!globals.is_empty()).then(|| EntryBody::StateChanged { state: BTreeMap::new(), globals })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
