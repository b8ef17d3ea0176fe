//! The loop: model call, tool calls, repeat, with its stop conditions.

use agent_core::{
    Error, ErrorKind, EventKind, Exit, ExitReason, ModelResponse, Result, ToolSpecs,
    run::checkpoint::{PendingTurn, Phase},
};
use futures::future::try_join;

use super::{Active, Deadline, Stop, batch::BatchEnd, cooperative::yield_now, guard::guarded, model};
use crate::engine::Opened;

impl Active<'_> {
    pub(super) async fn turn_loop(&mut self) -> Result<Stop> {
        loop {
            if self.cx().cancellation().is_cancelled() {
                return Ok(Stop::Cancelled);
            }
            let phase = self.driver.engine().log().phase();
            // A run that is to end at this boundary has nothing to resume.
            let is_stopped = || matches!(phase, Phase::BeforeModel) && self.cx().stop_requested().is_some();
            if self.cx().engine().pause_requested() && !is_stopped() {
                return Ok(Stop::Paused);
            }
            let stop = match phase {
                Phase::BeforeModel => self.model_phase().await?,
                Phase::Tools(turn) => self.tools_phase(&turn).await?,
                Phase::Exit(exit) => self.exit(exit).await?,
                Phase::Ended(exit) => Some(Stop::Finished(exit.reason, exit.answer)),
                _ => return Err(Error::config("this release does not know the checkpoint's phase")),
            };
            self.resumed = false;
            if let Some(stop) = stop {
                return Ok(stop);
            }
        }
    }

    /// Runs one step: the model call and the handling of its response.
    async fn model_phase(&mut self) -> Result<Option<Stop>> {
        self.steer_as_recorded()?;
        self.take_steering().await?;
        if self.cx().step() >= self.executor.limits.steps {
            return self.step_limit().await.map(Some);
        }
        if let Some(reason) = self.cx().stop_requested() {
            return Ok(Some(self.finished(ExitReason::Stopped(reason))));
        }
        if let Some(deadline) = self.cx().deadline().filter(|deadline| deadline.left().is_zero()) {
            return Ok(Some(self.finished(deadline.reason.clone())));
        }
        let cx = self.driver.cx();
        guarded(cx, "a tool set", self.table.refresh(&self.executor.tools, cx)).await?;
        self.cx().engine().log().try_flush()?;
        yield_now().await;
        let step = self.driver.next_step();
        self.step_deadline = Deadline::of_step(&self.executor.deadlines);
        self.cx().emit(EventKind::StepStarted { step });
        // The model call overlaps with the journal's commit of the earlier entries.
        match try_join(self.commit(), self.ask_model()).await {
            Ok(((), response)) => self.accept(step, response).await,
            Err(stop) => self.not_answered(stop),
        }
    }

    /// Calls the model, and once more if the response is empty.
    async fn ask_model(&self) -> Result<ModelResponse> {
        let specs = self.table.specs().clone();
        let answered = self.call_model(specs.clone()).await?;
        if !self.is_silent(&answered) {
            return Ok(answered);
        }
        self.take_back(&answered);
        self.call_model(specs).await
    }

    /// Moves the queued steering messages into the history; returns true if there were any.
    pub(super) async fn take_steering(&mut self) -> Result<bool> {
        let engine = self.driver.engine();
        let (taken, left) = engine.log().steering_step(self.cx().step(), engine.inbox().take()).await?;
        engine.inbox().put_back(left);
        let is_steered = !taken.is_empty();
        if is_steered && self.unanswered.is_none() {
            self.unanswered = Some(self.last_text());
        }
        taken.into_iter().try_for_each(|message| self.driver.push(message))?;
        Ok(is_steered)
    }

    /// In a replay, steers with the messages that steered the recorded run after this step, unless
    /// a hook already did.
    pub(super) fn steer_as_recorded(&self) -> Result<()> {
        let messages = self.cx().engine().log().replayed_messages(self.cx().step());
        if messages.is_empty() || !self.driver.engine().inbox().is_empty() {
            return Ok(());
        }
        messages.into_iter().try_for_each(|message| self.cx().steer(message))
    }

    /// Handles a model call that failed: undoes the step.
    fn not_answered(&self, error: Error) -> Result<Option<Stop>> {
        self.driver.undo_step();
        match error.kind() {
            ErrorKind::Interrupted if self.is_paused() => Ok(Some(Stop::Paused)),
            ErrorKind::Interrupted => Ok(Some(Stop::Interrupted)),
            ErrorKind::Cancelled if self.cx().cancellation().is_cancelled() => Ok(Some(Stop::Cancelled)),
            ErrorKind::Stopped => Ok(Some(self.finished(ExitReason::Stopped(error.message().to_owned())))),
            ErrorKind::Limit if error.context("budget").is_some() => Ok(Some(self.finished(ExitReason::Budget))),
            _ => Err(error),
        }
    }

    /// Ends the run at the step limit, after one more answer without tools if `final_answer` is
    /// set.
    async fn step_limit(&mut self) -> Result<Stop> {
        let limit = self.executor.limits.steps;
        let message = format!("the step limit of {limit} is reached");
        self.cx().emit(EventKind::Warning { message });
        if self.executor.limits.final_answer && !self.cx().history().is_empty() {
            let step = self.driver.next_step();
            self.step_deadline = Deadline::of_step(&self.executor.deadlines);
            self.cx().engine().log().try_flush()?;
            match try_join(self.commit(), self.call_model(ToolSpecs::default())).await {
                Ok(((), mut response)) => {
                    response.message = model::without_calls(response.message);
                    let exit = Exit::new(ExitReason::StepLimit, response.message.text());
                    self.cx().engine().log().record_accepted(step, &response.message, Some(exit));
                    self.unanswered = None;
                }
                Err(e) => {
                    if let Some(stop) = self.not_answered(e)? {
                        return Ok(stop);
                    }
                }
            }
        }
        Ok(self.finished(ExitReason::StepLimit))
    }

    /// Runs the remaining calls of a turn and adds the turn to the history.
    async fn tools_phase(&mut self, turn: &PendingTurn) -> Result<Option<Stop>> {
        if self.table.is_stale() {
            let cx = self.driver.cx();
            guarded(cx, "a tool set", self.table.refresh(&self.executor.tools, cx)).await?;
        }
        match self.run_batch(turn).await? {
            BatchEnd::Answered => self.end_turn().await,
            BatchEnd::Suspended => Ok(Some(Stop::Interrupted)),
            BatchEnd::Paused => Ok(Some(Stop::Paused)),
            BatchEnd::Cancelled => Ok(Some(Stop::Cancelled)),
        }
    }
}
