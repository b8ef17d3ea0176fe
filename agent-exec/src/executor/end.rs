//! From how the loop was left to the run's end.

use agent_core::{
    AssistantMessage, Checkpoint, Error, ErrorKind, ExitReason, Finished, Message, Result, RunEnd, journal::EntryBody,
    run::checkpoint::Phase,
};

use super::{Active, Deadline, Stop};
use crate::engine::Opened;

impl Active<'_> {
    /// The end of the run with this reason, and the last text there was.
    pub(super) fn finished(&self, reason: ExitReason) -> Stop {
        Stop::Finished(reason, self.last_text())
    }

    /// The last text since the user spoke: what was said before answered something else.
    pub(super) fn last_text(&self) -> String {
        let history = self.cx().history();
        let since = history.iter().rev().take_while(|m| !matches!(m, Message::User(_)));
        let last = since.filter_map(Message::as_assistant).find(|m| m.has_text());
        last.map(AssistantMessage::text).unwrap_or_default()
    }

    /// A run whose time is up has not failed: it is finished, and every call is answered.
    fn out_of_time(&self, e: Error) -> Result<Stop> {
        let is_late = e.kind() == ErrorKind::Timeout && e.context("deadline") == Some("run");
        let reason = self.cx().deadline().filter(|run| is_late && run.left().is_zero()).map(|run| run.reason.clone());
        let (Some(reason), Some(deadline)) = (reason, Deadline::of_run(self.cx())) else { return Err(e) };
        if let Phase::Tools(turn) = self.driver.engine().log().phase() {
            self.cut_off(&turn, deadline);
        }
        Ok(self.finished(reason))
    }

    /// How the loop was left, as the run's end.
    pub(super) fn end(mut self, stop: Result<Stop>) -> Result<RunEnd> {
        match stop.or_else(|e| self.out_of_time(e)) {
            Ok(Stop::Finished(reason, answer)) => {
                // Whatever ended the run left no time for them: they are there for the next one.
                self.driver.engine().inbox().close().into_iter().try_for_each(|message| self.driver.push(message))?;
                Ok(RunEnd::Finished(Box::new(self.finish(reason, answer))))
            }
            Ok(Stop::Interrupted) => Ok(RunEnd::Interrupted(self.checkpoint())),
            Ok(Stop::Paused) => Ok(RunEnd::Paused(self.checkpoint())),
            Ok(Stop::Cancelled) => Ok(RunEnd::Cancelled(self.checkpoint())),
            // What the run waited for paused with it.
            Err(e)
                if e.kind() == ErrorKind::Interrupted
                    && self.cx().engine().pause_requested()
                    && !self.driver.has_questions() =>
            {
                Ok(RunEnd::Paused(self.checkpoint()))
            }
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

    /// Where the run stands. What waits and what is asked is written down first, since nobody takes it any more.
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
