//! Branches a session off another one.

use std::sync::Arc;

use agent_core::{
    Journal, Result,
    history::ReplaceReason,
    journal::{EntryBody, JournalWriter, SessionIndex, SessionView},
    run::new_id,
};

use super::edit;

/// Creates a session with the state that `session` had for the agent when its newest incomplete run
/// started. Returns its name and its writer.
pub(crate) async fn branch(
    journal: &dyn Journal,
    session: &str,
    agent_id: &Arc<str>,
) -> Result<(Arc<str>, Arc<dyn JournalWriter>)> {
    let held = settled(journal, session, agent_id).await?;
    let name: Arc<str> = format!("{session}~{}", new_id()).into();
    let writer = journal.open(&name, agent_id).await?;
    let reason = ReplaceReason::from("fork");
    let mut bodies = vec![EntryBody::HistoryReplaced { reason, before: 0, history: held.history }];
    bodies.extend(edit::globals(held.globals));
    edit::write(&*writer, edit::ids(&name, agent_id), bodies).await?;
    Ok((name, writer))
}

async fn settled(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<SessionView> {
    let now = journal.index(session).await?;
    let Some(open) = now.look(|index| index.open_since(agent_id)) else {
        return Ok(now.look(|index| index.view(agent_id)));
    };
    Ok(SessionIndex::before(journal, session, open).await?.view(agent_id))
}
