//! Session metadata.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::journal::{Entry, EntryBody, Journal, each_entry};

/// Metadata of a session: the facts known without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Newest title of the session.
    pub title: Option<String>,
    /// Creation time, in milliseconds since 1970, UTC.
    pub created: u64,
    /// Time of the newest entry, in milliseconds since 1970, UTC.
    pub updated: u64,
    /// Number of entries in the journal.
    pub entries: u64,
    /// Number of root runs, including edits; child runs do not count.
    pub runs: u64,
    /// Ids of the root agents, in the order of their first runs.
    pub agents: Vec<Arc<str>>,
}

impl SessionInfo {
    /// Applies the next entry of the session; entries must be applied in order.
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

    /// Merges the metadata of later entries.
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

/// Computes the metadata by reading the whole session.
pub(crate) async fn read_info(journal: &(impl Journal + ?Sized), session: &str) -> Result<Option<SessionInfo>> {
    let mut info = SessionInfo::default();
    each_entry(journal, session, 0, |entry| info.apply(entry)).await?;
    Ok((info.entries > 0).then_some(info))
}
