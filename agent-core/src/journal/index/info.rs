//! What is known of a session without its content.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::journal::{Entry, EntryBody, Journal, each_entry};

/// What is known of a session without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The newest title that it was given.
    pub title: Option<String>,
    /// When it was created: milliseconds since 1970, UTC.
    pub created: u64,
    /// When something was last written to it: milliseconds since 1970, UTC.
    pub updated: u64,
    /// Entries in its journal.
    pub entries: u64,
    /// Runs of agents at the top, edits among them; child runs do not count.
    pub runs: u64,
    /// The agents at the top, by id, in the order in which they came.
    pub agents: Vec<Arc<str>>,
}

impl SessionInfo {
    /// Takes the next entry of the session, in order.
    pub fn apply(&mut self, entry: &Entry) {
        if self.entries == 0 {
            self.created = entry.time;
        }
        self.entries += 1;
        self.updated = self.updated.max(entry.time);
        match &entry.body {
            EntryBody::Titled { title } => self.title = Some(title.clone()),
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() => {
                self.runs += 1;
                if !self.agents.contains(&ids.agent_id) {
                    self.agents.push(ids.agent_id.clone());
                }
            }
            _ => {}
        }
    }

    /// Takes what is known of the entries that come after those that it knows.
    pub fn extend(&mut self, later: &Self) {
        if self.entries == 0 {
            self.created = later.created;
        }
        self.entries += later.entries;
        self.updated = self.updated.max(later.updated);
        self.runs += later.runs;
        if later.title.is_some() {
            self.title.clone_from(&later.title);
        }
        for agent in &later.agents {
            if !self.agents.contains(agent) {
                self.agents.push(agent.clone());
            }
        }
    }
}

/// Reads a whole session for what is known of it.
pub(crate) async fn read_info(journal: &(impl Journal + ?Sized), session: &str) -> Result<Option<SessionInfo>> {
    let mut info = SessionInfo::default();
    each_entry(journal, session, 0, |entry| info.apply(entry)).await?;
    Ok((info.entries > 0).then_some(info))
}
