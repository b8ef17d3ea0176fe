//! The engine of steps: what was done is written down, and not done again.

use std::sync::{Arc, atomic::Ordering};

use async_trait::async_trait;
use futures::future::try_join;

use super::{RunLog, results::Given};
use crate::{Begun, Durable, Effect, EntryBody, ErrorKind, Result, Step, StepBody, StepResult};

#[async_trait]
impl Durable for RunLog {
    fn attempt(&self) -> &str {
        &self.0.attempt
    }

    async fn step(&self, step: Step, body: StepBody<'_>) -> Result<StepResult> {
        self.step(step, body).await
    }
}

impl RunLog {
    /// As [`Durable::step`], without a box around the body.
    ///
    /// # Errors
    /// As [`Durable::step`].
    pub async fn step(&self, step: Step, body: impl Future<Output = Result<StepResult>> + Send) -> Result<StepResult> {
        let place = step.clone();
        let body = async {
            match self.recorded(&place) {
                Some(result) => result,
                None => body.await,
            }
        };
        match step {
            Step::Model { step } => {
                let result = body.await?;
                if let StepResult::Model(response) = &result {
                    let response = Arc::new(response.clone());
                    self.results().models.push(Given::now(response.clone()));
                    self.record(EntryBody::ModelFinished { step, response });
                    self.flush();
                }
                Ok(result)
            }
            Step::Tool { call_id, name, effect } => {
                self.count(&call_id, &name);
                let kept = self.results().kept.remove(&call_id);
                if let Some(output) = kept {
                    self.results().tools.insert(call_id, Given::earlier(output.clone()));
                    return Ok(StepResult::Tool(output));
                }
                let attempt = self.0.attempt.clone();
                self.results().begun.insert(call_id.clone(), Begun::new(effect, attempt.clone()));
                self.record(EntryBody::ToolStarted { call_id: call_id.clone(), name, effect, attempt });
                let result = match effect {
                    Effect::Pure => try_join(self.commit(), body).await.map(|(_, result)| result),
                    _ => {
                        self.commit().await?; // the intent is durable before the effect
                        body.await
                    }
                };
                match &result {
                    Ok(StepResult::Tool(output)) => self.finished(call_id, output),
                    // A tool asks before it does anything, and is entered again from the start.
                    Err(e) if e.kind() == ErrorKind::Interrupted => {
                        self.results().begun.remove(&call_id);
                        self.record(EntryBody::ToolSuspended { call_id });
                    }
                    // What a tool says of its failure is for the model. Until the call is answered with it, nobody can tell from
                    // outside what the tool had done.
                    _ => {}
                }
                result
            }
            Step::Named(name) => {
                if let Some(value) = self.kept_decision(&name) {
                    return Ok(StepResult::Value(value));
                }
                let result = body.await?;
                if let StepResult::Value(value) = &result {
                    self.decided().made.push((name.clone(), value.clone()));
                    let beginning = self.0.beginning.load(Ordering::Acquire);
                    self.record(EntryBody::Decided { name, value: value.clone(), beginning });
                    self.commit().await?;
                }
                Ok(result)
            }
        }
    }
}
