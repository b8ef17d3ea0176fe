//! Converts the outcome of the loop into the run's end.

use agent_core::{
    AssistantMessage, Checkpoint, Error, ErrorKind, ExitReason, Finished, Message, Result, RunEnd, journal::EntryBody,
    run::checkpoint::Phase,
};

use super::{Active, Deadline, Stop};
use crate::engine::Opened;

impl Active<'_> {
    /// Returns the end of the run with this reason and the last text of the model.
    pub(super) fn finished(&self, reason: ExitReason) -> Stop {
        // Messages to which no model has replied hide nothing that was said before them.
        Stop::Finished(reason, self.unanswered.clone().unwrap_or_else(|| self.last_text()))
    }

    /// Returns the last text of the model since the last user message. Earlier text answered
    /// another message.
    pub(super) fn last_text(&self) -> String {
        let history = self.cx().history();
        let since = history.iter().rev().take_while(|m| !matches!(m, Message::User(_)));
        let last = since.filter_map(Message::as_assistant).find(|m| m.has_text());
        last.map(AssistantMessage::text).unwrap_or_default()
    }

    /// Finishes a run whose deadline passed: that is not a failure, and every open call is
    /// answered.
    fn out_of_time(&self, e: Error) -> Result<Stop> {
        let is_late = e.kind() == ErrorKind::Timeout && e.context("deadline") == Some("run");
        let reason = self.cx().deadline().filter(|run| is_late && run.left().is_zero()).map(|run| run.reason.clone());
        let (Some(reason), Some(deadline)) = (reason, Deadline::of_run(self.cx())) else { return Err(e) };
        if let Phase::Tools(turn) = self.driver.engine().log().phase() {
            self.cut_off(&turn, deadline);
        }
        Ok(self.finished(reason))
    }

    /// True if the run has to wait and nobody is asked anything: it is paused, or a sub-agent is.
    pub(super) fn is_paused(&self) -> bool {
        let paused = self.cx().engine().pause_requested() || self.driver.has_waiting();
        paused && !self.driver.has_questions()
    }

    /// Converts the outcome of the loop into the run's end.
    pub(super) fn end(mut self, stop: Result<Stop>) -> Result<RunEnd> {
        match stop.or_else(|e| self.out_of_time(e)) {
            Ok(Stop::Finished(reason, answer)) => {
                // The run ended before it could take these messages; they stay in the history for
                // the next run.
                self.driver.engine().inbox().close().into_iter().try_for_each(|message| self.driver.push(message))?;
                Ok(RunEnd::Finished(Box::new(self.finish(reason, answer))))
            }
            Ok(Stop::Interrupted) => Ok(RunEnd::Interrupted(self.checkpoint())),
            Ok(Stop::Paused) => Ok(RunEnd::Paused(self.checkpoint())),
            Ok(Stop::Cancelled) => Ok(RunEnd::Cancelled(self.checkpoint())),
            // The operation that the run waited for was paused together with it.
            Err(e) if e.kind() == ErrorKind::Interrupted && self.is_paused() => Ok(RunEnd::Paused(self.checkpoint())),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(RunEnd::Interrupted(self.checkpoint())),
            Err(e) if e.kind() == ErrorKind::Cancelled && self.cx().cancellation().is_cancelled() => {
                Ok(RunEnd::Cancelled(self.checkpoint()))
            }
            Err(e) => {
                let checkpoint = self.checkpoint();
                Err(e.with_checkpoint(*checkpoint))
            }
        }
    }

    fn finish(&self, reason: ExitReason, answer: String) -> Finished {
        let cx = self.cx();
        let mut finished = Finished::new((**cx.ids()).clone(), answer, reason, cx.history());
        finished.steps = cx.step();
        finished.usage = cx.usage();
        finished.tree_usage = cx.tree_usage();
        finished.tool_calls = cx.tool_calls();
        finished.state = cx.state().snapshot();
        finished
    }

    /// Returns the run's checkpoint. Records the pending steering messages and questions first,
    /// since the run takes them no more.
    fn checkpoint(&mut self) -> Box<Checkpoint> {
        let (engine, log) = (self.driver.engine(), self.driver.engine().log());
        engine.keep_steering();
        engine.inbox().close();
        for question in self.driver.take_questions() {
            log.record(EntryBody::Asked { question: question.into() });
        }
        Box::new(log.at_rest())
    }
}
