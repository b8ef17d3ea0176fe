//! Closes a turn whose calls are all answered.

use agent_core::{
    Exit, ExitReason, History, Result, ToolOutput, ToolResults, Verdict,
    engine::Hook,
    run::checkpoint::{CallState, PendingTurn, Phase},
    tool::CallResult,
};

use super::{Active, Deadline, Stop, guard::guarded};
use crate::engine::Opened;

impl Active<'_> {
    /// Adds the turn to the history once all calls are answered. This may end the run.
    pub(super) async fn end_turn(&mut self) -> Result<Option<Stop>> {
        let Phase::Tools(turn) = self.cx().engine().log().phase() else { return Ok(None) };
        match guarded(self.cx(), "after_tools", self.close_turn(&turn)).await? {
            Some(exit) => self.exit(exit).await,
            None => Ok(None),
        }
    }

    /// Adds a turn to the history whose deadline passed: answers the open calls with the deadline's
    /// message.
    pub(super) fn cut_off(&self, turn: &PendingTurn, deadline: Deadline) {
        for index in 0..turn.calls.len() {
            if !matches!(turn.calls[index].state, CallState::Done(_)) {
                self.answer(turn, index, ToolOutput::error(deadline.message()));
            }
        }
        self.cx().engine().log().record_turn_ended(self.cx().step(), Default::default(), None);
    }

    /// Calls the `after_tools` hooks and adds the turn to the history; returns the exit if the run
    /// is to end.
    async fn close_turn(&self, turn: &PendingTurn) -> Result<Option<Exit>> {
        let (cx, step) = (self.cx(), self.cx().step());
        let mut results = ToolResults::new(results(turn));
        let before = if self.list.is_empty() { Vec::new() } else { results.results.clone() };
        let mut verdict = Verdict::Proceed;
        for (i, m) in self.list.iter().enumerate().rev() {
            let at = cx.engine().in_hook(Hook::AfterTools, i);
            match cx.engine().run_hook(&**m, m.after_tools(&at, &mut results)).await? {
                Verdict::Proceed => {}
                wanted => verdict = wanted,
            }
        }
        History::check_turn(&turn.message, results.results.iter().map(|result| &*result.call_id))?;
        let changed = results.results.iter().zip(&before).filter(|(now, then)| !now.output.ptr_eq(&then.output));
        let changed = changed.map(|(now, _)| (now.call_id.clone(), now.output.clone())).collect();
        let exit = match (verdict, self.exit_tools.after_tools(&results)) {
            (Verdict::Finish, _) => {
                let said = turn.message.has_text().then(|| turn.message.text());
                Some(Exit::new(ExitReason::Verdict, said.unwrap_or_else(|| self.last_text())))
            }
            (Verdict::Proceed, Some((tool, text))) => Some(Exit::new(ExitReason::Tool(tool), text)),
            _ => None,
        };
        cx.engine().log().record_turn_ended(step, changed, exit.clone());
        turn.calls.iter().for_each(|call| self.driver.forget_answers_of(&call.call_id));
        self.driver.forget_answers_of(format_args!("step-{step}"));
        Ok(exit)
    }
}

/// Returns the results of the completed calls.
fn results(turn: &PendingTurn) -> Vec<CallResult> {
    let done = turn.message.calls().zip(&turn.calls).filter_map(|(call, pending)| match &pending.state {
        CallState::Done(output) => Some(CallResult::new(call.id.clone(), call.name.clone(), output.clone())),
        _ => None,
    });
    done.collect()
}
