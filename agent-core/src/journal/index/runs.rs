//! What a session knows of one of its runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Liveness;
use crate::{
    history::History,
    journal::{Entry, EntryBody},
    message::Message,
    state::{ExitReason, RunIds, RunStatus},
    usage::Usage,
};

/// The reason for which the run of an edit is [stopped](ExitReason::Stopped): it tells an edit from a run of the agent.
pub const EDITED: &str = "edited";

/// One run of an agent in a session, or one edit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// The run.
    pub run_id: Arc<str>,
    /// When it began: milliseconds since 1970, UTC.
    pub started: u64,
    /// When it ended, or stopped for now; `None` while it is under way, or after a crash.
    pub ended: Option<u64>,
    /// How it ended, or stopped for now; `None` while it is under way, or after a crash.
    pub status: Option<RunStatus>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// What it used itself, without its sub-agents; counted when it ends.
    pub usage: Usage,
    /// Its steps so far.
    pub steps: u32,
    /// The text of the first message that it brought.
    pub first_message: Option<String>,
    /// True if it was undone.
    pub undone: bool,
    /// True if no agent ran: somebody edited the session.
    pub is_edit: bool,
    /// The sequence number of the entry with which it began.
    pub seq: u64,
    /// True if no other run called it.
    pub is_root: bool,
    /// The run at the top of its tree: itself, if no other run called it.
    #[serde(default)]
    pub root: Arc<str>,
    /// The agent's conversation when it began.
    #[serde(skip)]
    pub(super) before: History,
    /// Whether it can go on, as far as its own entries tell.
    #[serde(skip)]
    pub(super) liveness: Liveness,
    /// The sequence number of the entry that its liveness is from.
    pub(super) liveness_seq: u64,
}

impl RunRecord {
    pub(super) fn new(ids: &RunIds, seq: u64, started: u64, before: History) -> Self {
        Self {
            run_id: ids.run_id.clone(),
            started,
            ended: None,
            status: None,
            error: None,
            usage: Usage::default(),
            steps: 0,
            first_message: None,
            undone: false,
            is_edit: false,
            seq,
            is_root: ids.parent_run_id.is_none(),
            root: ids.root_run_id.clone(),
            before,
            liveness: Liveness::Open { attempt: None },
            liveness_seq: seq,
        }
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::RunResumed { attempt, .. } => {
                (self.ended, self.status, self.error) = (None, None, None);
                self.tell(entry.seq, Liveness::Open { attempt: Some(attempt.as_str().into()) });
            }
            EntryBody::MessageAppended { message } => self.heard(message),
            EntryBody::ModelAccepted { step: 0, message: Some(message), .. } => {
                self.heard(&Message::Assistant(message.clone()));
            }
            EntryBody::ModelAccepted { step, .. } => self.steps = *step,
            EntryBody::RunEnded { status, usage, error, .. } => {
                (self.ended, self.usage) = (Some(entry.time), **usage);
                self.error = error.as_deref().map(Into::into);
                self.is_edit =
                    matches!(status, RunStatus::Finished(ExitReason::Stopped(why)) if why == EDITED) && self.steps == 0;
                if let RunStatus::Finished(_) = status {
                    self.tell(entry.seq, Liveness::Over("the run is finished"));
                }
                self.status = Some(status.clone());
            }
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, seq: u64, liveness: Liveness) {
        (self.liveness, self.liveness_seq) = (liveness, seq);
    }

    fn heard(&mut self, message: &Message) {
        self.first_message.get_or_insert_with(|| message.text());
    }
}
