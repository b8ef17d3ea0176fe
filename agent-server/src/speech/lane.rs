//! Lane of one agent.

use std::sync::Arc;

use agent::{Event, Question, journal::RunStatus};

use super::{Answer, Said, What, ids::Ids};

/// Lane of one agent: from the beginning or resumption of its run until the run ends or is
/// suspended.
#[derive(Debug, Default)]
pub(super) struct AgentPath {
    /// None for the root run.
    pub(super) id: Option<Arc<str>>,
    /// Parent run.
    pub(super) above: Option<Arc<str>>,
    pub(super) step: u32,
    pub(super) answer: Option<Answer>,
    pub(super) asked: Vec<Question>,
}

impl AgentPath {
    /// Returns the current answer.
    pub(super) fn answer(&mut self, event: &Event, ids: &mut Ids) -> &mut Answer {
        let (run, step) = (&event.ids.run_id, self.step);
        let lane = self.id.clone();
        self.answer.get_or_insert_with(|| Answer::new(format!("{run}-{step}"), lane, ids))
    }

    /// Retracts an incomplete answer, which is not part of the history.
    pub(super) fn drop_answer(&mut self, ids: &mut Ids, say: &mut impl FnMut(What)) {
        if let Some(mut answer) = self.answer.take() {
            answer.retract(ids, say);
        }
    }

    /// Ends the lane and its open items. Streamed content stays: the run may have been cancelled in
    /// the middle of it.
    pub(super) fn end(mut self, status: RunStatus, error: Option<String>, said: &mut Vec<Said>) {
        let lane = self.id.clone();
        let mut say = |what| said.push(Said { lane: lane.clone(), what });
        if let Some(mut answer) = self.answer.take() {
            answer.close(&mut say);
        }
        if lane.is_some() {
            say(What::LaneEnded { status, error, asked: std::mem::take(&mut self.asked) });
        }
    }
}
