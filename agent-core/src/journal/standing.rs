//! Whether a checkpoint of a run is the newest that there is.

use std::{collections::HashMap, sync::Arc};

use super::{Entry, EntryBody, Journal, RunStatus, fold::each_entry};
use crate::{Result, RunIds};

/// What a session's journal knows of a run at its top.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// Nothing: the run was kept elsewhere, or nowhere.
    Unknown,
    /// It can go on. Its newest attempt has this nonce; none if it did not stop yet.
    Open {
        /// The nonce.
        attempt: Option<Arc<str>>,
    },
    /// It cannot, for this reason.
    Over(&'static str),
}

/// What the journal knows of the run `ids`. Read it while you hold the session's writer if you mean to go on.
///
/// # Errors
/// Those of [`Journal::read`].
pub async fn standing(journal: &dyn Journal, session: &str, ids: &RunIds) -> Result<Standing> {
    let mut walk = Walk { ids, standing: Standing::Unknown, begun: HashMap::new() };
    each_entry(journal, session, |entry| walk.apply(entry)).await?;
    Ok(walk.standing)
}

struct Walk<'a> {
    ids: &'a RunIds,
    standing: Standing,
    /// Where the agent's runs began.
    begun: HashMap<Arc<str>, u64>,
}

impl Walk<'_> {
    fn apply(&mut self, entry: &Entry) {
        let (own, known) = (entry.run == self.ids.run_id, self.standing != Standing::Unknown);
        match &entry.body {
            EntryBody::RunStarted { ids, .. } if ids.parent_run_id.is_none() && ids.agent_id == self.ids.agent_id => {
                self.begun.insert(ids.run_id.clone(), entry.seq);
                if own {
                    self.standing = Standing::Open { attempt: None };
                } else if known {
                    self.standing = Standing::Over("the agent began another run in its session since");
                }
            }
            EntryBody::RunResumed { attempt, .. } if own => {
                self.standing = Standing::Open { attempt: Some(attempt.as_str().into()) };
            }
            EntryBody::RunEnded { status: RunStatus::Finished(_), .. } if own => {
                self.standing = Standing::Over("the run is finished");
            }
            EntryBody::Undone { before_run } => {
                let (from, since) = (self.begun.get(before_run), self.begun.get(&self.ids.run_id));
                if from.zip(since).is_some_and(|(from, since)| from <= since) {
                    self.standing = Standing::Over("the run was undone");
                }
            }
            _ => {}
        }
    }
}
