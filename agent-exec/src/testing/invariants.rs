//! Invariants of every run that has ended.

use std::sync::Arc;

use agent_core::{
    Checkpoint, Finished, History, Journal, Usage,
    journal::{Entry, EntryBody},
};

use super::{World, simulation::SESSION};

/// Checks all invariants.
pub(super) async fn check(world: &World, finished: Option<&Finished>, entries: &[Arc<Entry>]) -> Result<(), String> {
    if let Some(finished) = finished {
        check_end(world, finished, entries).await?;
    }
    let doubled = world.outside.doubled();
    if !doubled.is_empty() {
        return Err(format!("done twice in silence: {}", doubled.join(", ")));
    }
    Ok(())
}

/// Checks that a checkpoint equals the state that the journal holds of the run.
pub(super) async fn check_checkpoint(world: &World, checkpoint: &Checkpoint) -> Result<(), String> {
    let index = world.kept.index(SESSION).await.map_err(|e| format!("the journal is not read: {e}"))?;
    let kept = index.look(|index| index.unfinished(&checkpoint.ids.agent_id));
    let mut kept = kept.ok_or("a run has a checkpoint, and its journal says that it is over")?;
    kept.elapsed_ms = checkpoint.elapsed_ms; // one counts until the last entry, the other until now
    match kept == *checkpoint {
        true => Ok(()),
        false => {
            Err(format!("the checkpoint is not what the journal tells:\njournal {kept:#?}\ncheckpoint {checkpoint:#?}"))
        }
    }
}

/// Checks that the run's end agrees with the journal.
async fn check_end(world: &World, finished: &Finished, entries: &[Arc<Entry>]) -> Result<(), String> {
    let paired = History::from_messages(finished.history.iter().cloned());
    if paired.as_ref().ok() != Some(&finished.history) {
        return Err(format!("the conversation is not paired: {paired:?}"));
    }
    let index = world.kept.index(SESSION).await.map_err(|e| format!("the journal is not read: {e}"))?;
    let kept = index.look(|index| index.history(&finished.ids.agent_id));
    if kept != finished.history {
        let (journal, end) = (&kept, &finished.history);
        return Err(format!("the journal and the run's end differ:\njournal {journal:#?}\nend {end:#?}"));
    }
    let (mut own, mut tree) = (Usage::default(), Usage::default());
    for entry in entries {
        let used = match &entry.body {
            EntryBody::ModelFinished { response, .. } => response.usage,
            EntryBody::SideModelFinished { usage } => **usage,
            _ => continue,
        };
        tree += used;
        if entry.run == finished.ids.run_id {
            own += used;
        }
    }
    if (own, tree) != (finished.usage, finished.tree_usage) {
        let told = (finished.usage, finished.tree_usage);
        return Err(format!("usage does not add up: the journal has {:?}, the end tells {told:?}", (own, tree)));
    }
    Ok(())
}

/// Returns the session's journal entries.
pub(super) async fn entries(world: &World) -> Result<Vec<Arc<Entry>>, String> {
    world.kept.read(SESSION, 0, usize::MAX).await.map_err(|e| format!("the journal is not read: {e}"))
}

/// Returns the entries without their times, with run ids, attempt ids and the digests made from
/// them replaced by their indices.
pub(super) fn trace(entries: &[Arc<Entry>]) -> Vec<String> {
    let (mut ids, mut digests) = (Vec::<String>::new(), Vec::<String>::new());
    for entry in entries {
        match &entry.body {
            EntryBody::RunStarted { ids: of, .. } => ids.push(of.run_id.to_string()),
            EntryBody::SubAgentLinked { run, .. } => ids.push(run.to_string()),
            EntryBody::RunResumed { attempt, .. } => ids.push(attempt.clone()),
            EntryBody::ToolStarted { attempt, .. } => ids.push(attempt.to_string()),
            EntryBody::Asked { question } => digests.push(question.digest.clone()),
            _ => {}
        }
    }
    let line = |entry: &Arc<Entry>| {
        let line = format!("{} {:?}", entry.run, entry.body);
        let replaced = |line: String, (place, id): (usize, &String)| line.replace(id.as_str(), &format!("id-{place}"));
        // The digests begin with ids.
        let line = digests.iter().filter(|digest| !digest.is_empty()).enumerate().fold(line, replaced);
        ids.iter().enumerate().fold(line, replaced)
    };
    entries.iter().map(line).collect()
}
