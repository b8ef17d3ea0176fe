//! A session that begins where another one stood.

use std::sync::Arc;

use agent_core::{
    Entry, EntryBody, Fold, Journal, JournalWriter, ReplaceReason, Result, RunStatus, SessionView, each_entry, new_id,
};

use super::edit;

/// Makes a session that begins with what `session` held for the agent when its newest run that is not finished began. Gives
/// its name and its writer.
pub(super) async fn branch(
    journal: &dyn Journal,
    session: &str,
    agent_id: &Arc<str>,
) -> Result<(Arc<str>, Arc<dyn JournalWriter>)> {
    let held = last_finished(journal, session, agent_id).await?;
    let name: Arc<str> = format!("{session}~{}", new_id()).into();
    let writer = journal.open(&name, agent_id).await?;
    let reason = ReplaceReason::from("fork");
    let mut bodies = vec![EntryBody::HistoryReplaced { reason, before: 0, history: held.history }];
    bodies.extend(edit::globals(held.globals));
    edit::write(&*writer, edit::ids(&name, agent_id), bodies).await?;
    Ok((name, writer))
}

async fn last_finished(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<SessionView> {
    let mut open = None;
    each_entry(journal, session, |entry| note_open(&mut open, entry, agent_id)).await?;
    let until = open.map_or(u64::MAX, |(_, seq)| seq);
    let mut fold = Fold::new(agent_id);
    each_entry(journal, session, |entry| {
        if entry.seq < until {
            fold.apply(entry);
        }
    })
    .await?;
    Ok(fold.finish())
}

/// Keeps the agent's newest run at the top, and where it began, in `open` until it is finished.
fn note_open(open: &mut Option<(Arc<str>, u64)>, entry: &Entry, agent_id: &str) {
    match &entry.body {
        EntryBody::RunStarted { ids, .. } if *ids.agent_id == *agent_id && ids.parent_run_id.is_none() => {
            *open = Some((ids.run_id.clone(), entry.seq));
        }
        EntryBody::RunEnded { status: RunStatus::Finished(_), .. }
            if open.as_ref().is_some_and(|(run, _)| *run == entry.run) =>
        {
            *open = None;
        }
        _ => {}
    }
}
