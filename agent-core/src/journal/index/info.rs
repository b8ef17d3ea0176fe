//! Session metadata.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::journal::{Entry, EntryBody, Journal, METADATA, each_entry, summary::metadata_of};

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
    /// Time of the newest beginning or end of a run, question or change of the title or metadata, in
    /// milliseconds since 1970, UTC. 0 where an earlier release counted the entries.
    #[serde(default)]
    pub active: u64,
    /// Number of entries in the journal.
    pub entries: u64,
    /// Number of root runs, including edits; child runs do not count.
    pub runs: u64,
    /// Ids of the root agents, in the order of their first runs.
    pub agents: Vec<Arc<str>>,
    /// Metadata that clients set: see [`METADATA`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl SessionInfo {
    /// Applies the next entry of the session; entries must be applied in order.
    pub fn apply(&mut self, entry: &Entry) {
        if self.entries == 0 {
            self.created = entry.time;
        }
        self.entries += 1;
        self.updated = self.updated.max(entry.time);
        if is_activity(&entry.body) {
            self.active = self.active.max(entry.time);
        }
        match &entry.body {
            EntryBody::Titled { title } => self.title = Some(title.clone()),
            EntryBody::StateChanged { globals, .. } => {
                if let Some(metadata) = globals.get(METADATA) {
                    self.metadata = metadata_of(metadata.as_ref());
                }
            }
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
        self.active = self.active.max(later.active);
        self.runs += later.runs;
        if later.title.is_some() {
            self.title.clone_from(&later.title);
        }
        if !later.metadata.is_empty() {
            self.metadata.clone_from(&later.metadata);
        }
        for agent in &later.agents {
            if !self.agents.contains(agent) {
                self.agents.push(agent.clone());
            }
        }
    }
}

/// True for the entries that make a session [active](SessionInfo::active).
fn is_activity(body: &EntryBody) -> bool {
    match body {
        EntryBody::RunStarted { .. }
        | EntryBody::RunResumed { .. }
        | EntryBody::RunEnded { .. }
        | EntryBody::Asked { .. }
        | EntryBody::Titled { .. } => true,
        EntryBody::Imported { state } => !state.questions.is_empty(),
        EntryBody::StateChanged { globals, .. } => globals.contains_key(METADATA),
        _ => false,
    }
}

/// Computes the metadata by reading the whole session.
pub(crate) async fn read_info(journal: &(impl Journal + ?Sized), session: &str) -> Result<Option<SessionInfo>> {
    let mut info = SessionInfo::default();
    each_entry(journal, session, 0, |entry| info.apply(entry)).await?;
    Ok((info.entries > 0).then_some(info))
}
