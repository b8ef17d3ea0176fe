//! The runs of a session.

use std::{collections::HashMap, sync::Arc};

use agent_core::{Entry, EntryBody, ExitReason, Journal, Message, Result, RunStatus, Usage, each_entry};

use super::edit::EDITED;

/// One run of an agent in a session, or one edit.
#[derive(Clone, Debug, PartialEq)]
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
}

/// The runs of `agent_id`, oldest first.
pub(super) async fn read(journal: &dyn Journal, session: &str, agent_id: &str) -> Result<Vec<RunRecord>> {
    let mut runs = Runs { agent_id, runs: Vec::new(), places: HashMap::new() };
    each_entry(journal, session, |entry| runs.apply(entry)).await?;
    Ok(runs.runs)
}

struct Runs<'a> {
    agent_id: &'a str,
    runs: Vec<RunRecord>,
    places: HashMap<Arc<str>, usize>,
}

impl Runs<'_> {
    fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            EntryBody::RunStarted { ids, .. } if *ids.agent_id == *self.agent_id => {
                self.places.insert(ids.run_id.clone(), self.runs.len());
                self.runs.push(RunRecord::new(ids.run_id.clone(), entry.time));
            }
            EntryBody::Undone { before_run } => {
                if let Some(&at) = self.places.get(before_run) {
                    self.runs[at..].iter_mut().for_each(|run| run.undone = true);
                }
            }
            body => {
                if let Some(&at) = self.places.get(&entry.run) {
                    self.runs[at].apply(entry.time, body);
                }
            }
        }
    }
}

impl RunRecord {
    fn new(run_id: Arc<str>, started: u64) -> Self {
        Self {
            run_id,
            started,
            ended: None,
            status: None,
            error: None,
            usage: Usage::default(),
            steps: 0,
            first_message: None,
            undone: false,
            is_edit: false,
        }
    }

    fn apply(&mut self, time: u64, body: &EntryBody) {
        match body {
            EntryBody::RunResumed { .. } => (self.ended, self.status, self.error) = (None, None, None),
            EntryBody::MessageAppended { message } => self.heard(message),
            EntryBody::ModelAccepted { step: 0, message: Some(message), .. } => {
                self.heard(&Message::Assistant(message.clone()));
            }
            EntryBody::ModelAccepted { step, .. } => self.steps = *step,
            EntryBody::RunEnded { status, usage, error, .. } => {
                (self.ended, self.usage, self.error) = (Some(time), **usage, error.as_deref().map(Into::into));
                self.is_edit =
                    matches!(status, RunStatus::Finished(ExitReason::Stopped(why)) if why == EDITED) && self.steps == 0;
                self.status = Some(status.clone());
            }
            _ => {}
        }
    }

    fn heard(&mut self, message: &Message) {
        self.first_message.get_or_insert_with(|| message.text());
    }
}
