//! One agent's part of the story.

use std::sync::Arc;

use agent::{Event, Question, journal::RunStatus};

use super::{Answer, Said, What, ids::Ids};

/// One agent's part of the story, from when its run begins or goes on until it is over or waits.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// None is the run itself.
    pub(super) id: Option<Arc<str>>,
    /// The run above.
    pub(super) above: Option<Arc<str>>,
    pub(super) step: u32,
    pub(super) answer: Option<Answer>,
    pub(super) asked: Vec<Question>,
}

impl Lane {
    /// The answer under way.
    pub(super) fn answer(&mut self, event: &Event, ids: &mut Ids) -> &mut Answer {
        let (run, step) = (&event.ids.run_id, self.step);
        let lane = self.id.clone();
        self.answer.get_or_insert_with(|| Answer::new(format!("{run}-{step}"), lane, ids))
    }

    /// An answer that is not completed is one that nobody had.
    pub(super) fn drop_answer(&mut self, ids: &mut Ids, say: &mut impl FnMut(What)) {
        if let Some(mut answer) = self.answer.take() {
            answer.retract(ids, say);
        }
    }

    /// Ends the lane, and what is open in it. What was said so far stands: the run may have been cancelled in the middle of it.
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
