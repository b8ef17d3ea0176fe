//! The sub-agents that a session's journal knows.

use std::{collections::HashMap, sync::Arc};

use super::{Entry, EntryBody, Journal, RunStatus, fold::each_entry};
use crate::Result;

/// A sub-agent that an agent called, as a session's journal knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubAgentRecord {
    /// The id to recall it by.
    pub id: Arc<str>,
    /// The key that it was called under.
    pub key: String,
    /// Its newest run.
    pub run: Arc<str>,
    /// How that ended; `None` while it is under way, or after a crash.
    pub status: Option<RunStatus>,
    /// What it answered, if it finished.
    pub answer: Option<String>,
}

/// The sub-agents that the agent known as `caller` called in a session, in the order of their first calls. Those of runs that
/// were undone are not among them.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn sub_agents_of(journal: &dyn Journal, session: &str, caller: &str) -> Result<Vec<SubAgentRecord>> {
    let mut walk = Walk { caller, ..Walk::default() };
    each_entry(journal, session, |entry| walk.apply(entry)).await?;
    Ok(walk.known.into_iter().map(|known| known.record).collect())
}

#[derive(Default)]
struct Walk<'a> {
    caller: &'a str,
    /// The runs at the top of a tree: where each began, and whose it is.
    tops: HashMap<Arc<str>, (u64, Arc<str>)>,
    /// The caller's runs, with the agent at the top of each.
    callers: HashMap<Arc<str>, Arc<str>>,
    /// The runs that the caller started: their keys, and the agent at the top.
    links: HashMap<Arc<str>, (String, Arc<str>)>,
    known: Vec<Known>,
}

struct Known {
    record: SubAgentRecord,
    /// Where its first run began.
    since: u64,
    /// The agent at the top.
    top: Arc<str>,
}

impl Walk<'_> {
    fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::RunStarted { ids, .. } => {
                if ids.parent_run_id.is_none() {
                    self.tops.insert(ids.run_id.clone(), (entry.seq, ids.agent_id.clone()));
                }
                if *ids.agent_id == *self.caller {
                    let top = self.tops.get(&ids.root_run_id).map(|(_, agent)| agent);
                    self.callers.insert(ids.run_id.clone(), top.unwrap_or(&ids.agent_id).clone());
                }
                if let Some((key, top)) = self.links.remove(&ids.run_id) {
                    let (id, run) = (ids.agent_id.clone(), ids.run_id.clone());
                    let record = SubAgentRecord { id, key, run, status: None, answer: None };
                    match self.known.iter_mut().find(|known| known.record.id == record.id) {
                        Some(known) => known.record = record,
                        None => self.known.push(Known { record, since: entry.seq, top }),
                    }
                }
            }
            EntryBody::SubAgentLinked { key, run, .. } => {
                if let Some(top) = self.callers.get(&entry.run) {
                    self.links.insert(run.clone(), (key.clone(), top.clone()));
                }
            }
            EntryBody::RunResumed { .. } => {
                self.of(&entry.run, |record| (record.status, record.answer) = (None, None));
            }
            EntryBody::RunEnded { status, answer, .. } => {
                self.of(&entry.run, |record| {
                    (record.status, record.answer) = (Some(status.clone()), answer.as_deref().map(Into::into));
                });
            }
            EntryBody::Undone { before_run } => {
                if let Some((start, agent)) = self.tops.get(before_run) {
                    self.known.retain(|known| known.top != *agent || known.since < *start);
                }
            }
            _ => {}
        }
    }

    fn of(&mut self, run: &Arc<str>, change: impl FnOnce(&mut SubAgentRecord)) {
        if let Some(known) = self.known.iter_mut().rfind(|known| known.record.run == *run) {
            change(&mut known.record);
        }
    }
}
