//! The durable steps of a run: restored from an adopted checkpoint, or executed by the engine and
//! recorded.

use std::{future::ready, sync::Arc, time::Duration};

use serde_json::Value;

use super::RunLog;
use crate::{
    error::Result,
    journal::{
        EntryBody, KeptError, ServedEnd, ServedRun, StepKind, StepResult, Steps,
        durable::{another_kind, is_kept},
    },
    llm::ModelResponse,
    message::Message,
    state::{ChildKey, new_id},
    usage::Usage,
};

impl RunLog {
    /// Sets the engine steps of the run. Only the first call has an effect.
    pub fn run_on(&self, steps: Steps) {
        self.0.steps.get_or_init(|| steps);
    }

    /// The engine steps of the run.
    pub fn steps(&self) -> &Steps {
        self.0.steps.get_or_init(Steps::default)
    }

    /// Executes a model call as a [step](crate::engine::Durable::step).
    ///
    /// # Errors
    /// Those of the call and of the engine.
    pub async fn model_step(
        &self,
        step: u32,
        call: impl Future<Output = Result<ModelResponse>> + Send,
    ) -> Result<ModelResponse> {
        let steps = self.steps();
        let body = async {
            match call.await {
                Err(e) if steps.keeps() && is_kept(e.kind()) => Ok(StepResult::Failed(KeptError::of(&e))),
                called => called.map(|answer| StepResult::Model(Box::new(answer))),
            }
        };
        let response = match steps.make(&self.0.ids.run_id, StepKind::Model { step }, Box::pin(body)).await? {
            StepResult::Model(response) => *response,
            StepResult::Failed(e) => return Err(e.into()),
            _ => return Err(another_kind()),
        };
        {
            let mut open = self.open();
            open.answered = Some(response.message.clone());
            self.record_in(&mut open, EntryBody::ModelFinished { step, response: Arc::new(response.clone()) });
        }
        Ok(response)
    }

    /// Makes a decision as a [step](crate::engine::Durable::step).
    ///
    /// # Errors
    /// Those of `decide` and of the engine.
    pub(crate) async fn decision(
        &self,
        name: &str,
        decide: impl Future<Output = Result<Value>> + Send,
    ) -> Result<Value> {
        if let Some(value) = self.stored_decision(name) {
            return Ok(value);
        }
        let mut is_new = false;
        let body = async {
            is_new = true;
            let value = decide.await?;
            Ok(StepResult::Value { value, beside: std::mem::take(&mut self.open().side_usage) })
        };
        let kind = StepKind::Decision { name: name.to_owned() };
        let made = self.steps().make(&self.0.ids.run_id, kind, Box::pin(body)).await?;
        let StepResult::Value { value, beside } = made else { return Err(another_kind()) };
        {
            let mut open = self.open();
            if !is_new && beside != Usage::default() {
                open.uncounted += beside;
                self.record_in(&mut open, EntryBody::SideModelFinished { usage: Box::new(beside) });
            }
            let (name, beginning) = (name.to_owned(), !open.entered);
            self.record_in(&mut open, EntryBody::Decided { name, value: value.clone(), beginning });
        }
        self.count_decision(name);
        self.commit().await?;
        Ok(value)
    }

    /// Records the usage of a side model call.
    pub(crate) fn record_side_call(&self, used: Usage) {
        let mut open = self.open();
        if self.steps().keeps() {
            open.side_usage += used; // persisted with the decision that requested it
        }
        self.record_in(&mut open, EntryBody::SideModelFinished { usage: Box::new(used) });
    }

    /// Selects the messages that steer the run in this step: returns the messages taken, and those
    /// of `waiting` that are left.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn steering_step(&self, step: u32, waiting: Vec<Message>) -> Result<(Vec<Message>, Vec<Message>)> {
        if !self.steps().keeps() {
            return Ok((waiting, Vec::new()));
        }
        let body = Box::pin(ready(Ok(StepResult::Messages(waiting.clone()))));
        match self.steps().make(&self.0.ids.run_id, StepKind::Steering { step }, body).await? {
            StepResult::Messages(taken) => {
                let mut left = waiting;
                for message in &taken {
                    // A hook that reruns sends the same message again.
                    left.iter().position(|said| said == message).map(|at| left.remove(at));
                }
                Ok((taken, left))
            }
            _ => Err(another_kind()),
        }
    }

    /// Sleeps as a [step](crate::engine::Durable::sleep).
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) async fn sleep_step(&self, name: &str, time: Duration) -> Result<()> {
        self.steps().sleep(&self.0.ids.run_id, name, time).await
    }

    /// Executes a remote run as a [step](crate::engine::Durable::served). Its usage is charged to
    /// this run's budgets.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) async fn served_step(&self, run: &ServedRun) -> Result<ServedEnd> {
        let end = self.steps().served(&self.0.ids.run_id, run).await?;
        self.open().uncounted += end.usage;
        Ok(end)
    }

    /// Returns the run id of a sub-agent that is started now: the same one whenever an engine
    /// executes the run again. Readers of the journal do not need the step.
    pub(crate) async fn child_id(&self, step: u32, key: &ChildKey) -> Result<Arc<str>> {
        if !self.steps().keeps() && !self.is_replay() {
            return Ok(new_id().into());
        }
        let kind = StepKind::Child { step, owner: key.owner(), key: key.key.clone(), number: key.n };
        let body = Box::pin(async { Ok(StepResult::value(new_id().into())) });
        match self.steps().make(&self.0.ids.run_id, kind, body).await? {
            StepResult::Value { value: Value::String(run), .. } => Ok(run.into()),
            _ => Err(another_kind()),
        }
    }

    /// Takes the usage, since the last call, of steps that were read back instead of executed:
    /// child runs and side model calls.
    pub(crate) fn take_uncounted(&self) -> Usage {
        std::mem::take(&mut self.open().uncounted)
    }
}
