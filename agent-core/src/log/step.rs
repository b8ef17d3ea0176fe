//! The engine of steps: what was done is written down, and not done again.

use std::{mem, sync::Arc};

use async_trait::async_trait;
use futures::future::try_join;
use serde_json::Value;

use super::RunLog;
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{Durable, EntryBody, Step, StepBody, StepResult},
    llm::ModelResponse,
    tooling::{Effect, ToolOutput},
    usage::Usage,
};

#[async_trait]
impl Durable for RunLog {
    fn attempt(&self) -> &str {
        Self::attempt(self)
    }

    async fn step(&self, step: Step, body: StepBody<'_>) -> Result<StepResult> {
        match step {
            Step::Model { step } => {
                let call =
                    || async { if let StepResult::Model(answer) = body.await? { Ok(answer) } else { another_kind() } };
                self.model_step(step, call).await.map(StepResult::Model)
            }
            Step::Tool { call_id, name, effect } => {
                let call =
                    async { if let StepResult::Tool(output) = body.await? { Ok(output) } else { another_kind() } };
                self.tool_step(call_id, name, effect, call).await.map(StepResult::Tool)
            }
            Step::Named(name) => {
                let decide =
                    async { if let StepResult::Value(value) = body.await? { Ok(value) } else { another_kind() } };
                self.decision(&name, decide).await.map(StepResult::Value)
            }
        }
    }
}

fn another_kind<T>() -> Result<T> {
    Err(Error::new(ErrorKind::NonDeterminism, "a step gave the result of another kind of step"))
}

impl RunLog {
    /// A model call as a [step](Durable::step), without a box around it.
    ///
    /// # Errors
    /// As [`Durable::step`].
    pub async fn model_step<F>(&self, step: u32, call: impl FnOnce() -> F) -> Result<ModelResponse>
    where
        F: Future<Output = Result<ModelResponse>>,
    {
        let response = match self.replayed_answer(step) {
            Some(replayed) => replayed?,
            None => call().await?,
        };
        {
            let mut open = self.open();
            open.answered = Some(response.message.clone());
            self.note(&mut open, EntryBody::ModelFinished { step, response: Arc::new(response.clone()) });
        }
        self.flush();
        Ok(response)
    }

    /// A tool call as a [step](Durable::step), without a box around it.
    ///
    /// # Errors
    /// As [`Durable::step`].
    pub async fn tool_step(
        &self,
        call_id: Arc<str>,
        name: Arc<str>,
        effect: Effect,
        call: impl Future<Output = Result<ToolOutput>> + Send,
    ) -> Result<ToolOutput> {
        if let Some(output) = self.begin_call(&call_id, &name, effect) {
            return Ok(output); // from before a restart
        }
        let call = async {
            match self.replayed_output(&call_id) {
                Some(replayed) => replayed,
                None => call.await,
            }
        };
        let result = match effect {
            Effect::Pure => try_join(self.commit(), call).await.map(|(_, result)| result),
            _ => {
                self.commit().await?; // the intent is durable before the effect
                call.await
            }
        };
        match &result {
            Ok(output) => self.finished(call_id, output),
            // A tool asks before it does anything, and is entered again from the start.
            Err(e) if e.kind() == ErrorKind::Interrupted => {
                self.cut_off_call(&call_id);
                self.record(EntryBody::ToolSuspended { call_id });
            }
            // What a tool says of its failure is for the model. Until the call is answered with it, nobody can tell from
            // outside what the tool had done.
            _ => {}
        }
        result
    }

    /// A decision as a [step](Durable::step), without a box around it.
    ///
    /// # Errors
    /// As [`Durable::step`].
    pub async fn decision(&self, name: &str, decide: impl Future<Output = Result<Value>> + Send) -> Result<Value> {
        if let Some(value) = self.open().restored.take_decision(name) {
            return Ok(value);
        }
        let value = match self.replayed_decision(name) {
            Some(replayed) => replayed?,
            None => decide.await?,
        };
        let name = name.to_owned();
        {
            let mut open = self.open();
            let beginning = !open.entered;
            self.note(&mut open, EntryBody::Decided { name, value: value.clone(), beginning });
        }
        self.commit().await?;
        Ok(value)
    }

    /// Notes that a call's tool is begun; gives its result from before a restart instead, if there is one.
    fn begin_call(&self, call_id: &Arc<str>, name: &Arc<str>, effect: Effect) -> Option<ToolOutput> {
        let mut open = self.open();
        let restored = open.restored.take_output(call_id);
        if restored.is_none() {
            let (call_id, name, attempt) = (call_id.clone(), name.clone(), self.attempt().clone());
            self.note(&mut open, EntryBody::ToolStarted { call_id, name, effect, attempt });
        }
        restored
    }

    /// The recorded answer to a model call; none if no run is replayed.
    fn replayed_answer(&self, step: u32) -> Option<Result<ModelResponse>> {
        Some(self.replayed()?.replay.model(step))
    }

    /// The recorded output of a tool, with what the call changed; none if no run is replayed.
    fn replayed_output(&self, call_id: &Arc<str>) -> Option<Result<ToolOutput>> {
        let call = {
            let mut replayed = self.replayed()?;
            let call = replayed.replay.tool(call_id);
            if let Ok(call) = &call {
                replayed.used.below += call.usage();
            }
            call
        };
        Some(call.and_then(|mut call| {
            for entry in &call.below {
                if let EntryBody::StateChanged { globals, .. } = &entry.body {
                    self.0.globals.set_all(globals.clone(), true);
                }
            }
            self.0.globals.set_all(mem::take(&mut call.globals), false);
            self.0.state.set_all(mem::take(&mut call.state));
            let mut open = self.open();
            for entry in mem::take(&mut call.below) {
                self.0.tree.apply(&entry);
                open.pending.push(entry);
            }
            drop(open);
            call.result()
        }))
    }

    /// The recorded decision; none if no run is replayed.
    fn replayed_decision(&self, name: &str) -> Option<Result<Value>> {
        let decided = {
            let mut replayed = self.replayed()?;
            let decided = replayed.replay.decision(name);
            if let Ok((_, used)) = &decided {
                replayed.used.beside += *used;
            }
            decided
        };
        Some(decided.map(|(value, used)| {
            if used != Usage::default() {
                self.record(EntryBody::SideModelFinished { usage: Box::new(used) });
            }
            value
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{history::History, testing::detached_run};

    #[tokio::test]
    async fn a_step_gives_what_its_body_gave_and_takes_no_result_of_another_kind() {
        let results = [
            StepResult::Model(ModelResponse::new("a")),
            StepResult::Tool(ToolOutput::text("b")),
            StepResult::Value(json!("c")),
        ];
        let (call_id, name) = ("c1".into(), "tool".into());
        let steps =
            [Step::Model { step: 1 }, Step::Tool { call_id, name, effect: Effect::Pure }, Step::Named("n".into())];
        for (at, step) in steps.into_iter().enumerate() {
            for (of, result) in results.iter().enumerate() {
                let body = Box::pin(async { Ok(result.clone()) });
                match detached_run(History::default()).cx().log().step(step.clone(), body).await {
                    Ok(given) => assert_eq!((at, &given), (of, result)),
                    Err(e) => assert_eq!((e.kind(), at == of), (ErrorKind::NonDeterminism, false), "{step:?}"),
                }
            }
        }
    }
}
