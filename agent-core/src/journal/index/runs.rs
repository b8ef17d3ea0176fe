//! Session records of runs.

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

/// Reason with which the run of an edit is [stopped](ExitReason::Stopped): it distinguishes an edit
/// from a run of the agent.
pub const EDITED: &str = "edited";

/// Record of one run of an agent in a session, or of one edit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// Id of the run.
    pub run_id: Arc<str>,
    /// Start time, in milliseconds since 1970, UTC.
    pub started: u64,
    /// Time at which the run ended or was suspended; `None` while it is running, or after a crash.
    pub ended: Option<u64>,
    /// Status with which the run ended or was suspended; `None` while it is running, or after a
    /// crash.
    pub status: Option<RunStatus>,
    /// Text of the error, if the run failed.
    pub error: Option<String>,
    /// Usage of the run itself, without its sub-agents; counted when it ends.
    pub usage: Usage,
    /// Number of steps so far.
    pub steps: u32,
    /// User on whose behalf the run began, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
    /// Text of the first input message.
    pub first_message: Option<String>,
    /// True if the run was undone.
    pub undone: bool,
    /// True if this is an edit of the session instead of a run of an agent.
    pub is_edit: bool,
    /// Sequence number of the run's first entry.
    pub seq: u64,
    /// True if this is a root run.
    pub is_root: bool,
    /// Root run of the tree: the run itself, if it is a root run.
    #[serde(default)]
    pub root: Arc<str>,
    /// The agent's conversation before the run.
    #[serde(skip)]
    pub(super) before: History,
    /// Liveness of the run according to its own entries.
    #[serde(skip)]
    pub(super) liveness: Liveness,
    /// Sequence number of the entry that determined `liveness`.
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
            user: ids.user.clone(),
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
