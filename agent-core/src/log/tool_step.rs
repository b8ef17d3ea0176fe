//! A tool call as a durable step.

use std::{collections::BTreeMap, future::ready, pin::pin, sync::Arc};

use futures::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;

use super::RunLog;
use crate::{
    error::{Error, ErrorKind, Result},
    journal::{
        EntryBody, KeptCall, KeptError, KeptValue, Step, StepKind, StepResult,
        durable::{another_kind, is_kept},
    },
    state::{Begun, Question},
    tooling::{Effect, ToolOutput},
};

/// Scope of the values that all runs of a tree share.
pub(super) const SHARED: &str = "";

/// A tool call to execute as a step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolStep {
    /// Number of the run's step.
    pub step: u32,
    /// Id of the call.
    pub call_id: Arc<str>,
    /// Name of the tool.
    pub name: Arc<str>,
    /// Effect class: the consequence of repeating the call.
    pub effect: Effect,
    /// True if the call only runs sub-agents, whose own steps are persisted: on recovery the call
    /// is entered again.
    pub delegates: bool,
}

impl ToolStep {
    /// Creates the step of call `call_id`.
    pub fn new(step: u32, call_id: Arc<str>, name: Arc<str>, effect: Effect) -> Self {
        Self { step, call_id, name, effect, delegates: false }
    }

    fn kind(&self) -> StepKind {
        let Self { step, effect, .. } = *self;
        StepKind::Tool { step, call_id: self.call_id.clone(), name: self.name.clone(), effect }
    }
}

/// Facts about a call that its result does not carry.
pub trait CallWitness: Send + Sync {
    /// Reconciles a call that another attempt began: returns its output if it happened, `None` if
    /// it must run.
    fn settle(&self, begun: Begun) -> BoxFuture<'_, Result<Option<ToolOutput>>>;

    /// The call's unanswered questions, even if the tool dropped the error that carried them;
    /// `None` if the call waits for a child run.
    fn asked(&self) -> Option<Vec<Question>>;
}

/// A call without further facts.
impl CallWitness for () {
    fn settle(&self, _: Begun) -> BoxFuture<'_, Result<Option<ToolOutput>>> {
        Box::pin(ready(Ok(None)))
    }

    fn asked(&self) -> Option<Vec<Question>> {
        Some(Vec::new())
    }
}

impl RunLog {
    /// Executes a tool call as a [step](crate::engine::Durable::step).
    ///
    /// # Errors
    /// Those of the call and of the engine.
    pub async fn tool_step(
        &self,
        call: ToolStep,
        witness: &dyn CallWitness,
        run: impl Future<Output = Result<ToolOutput>> + Send,
    ) -> Result<ToolOutput> {
        if let Some(output) = self.begin_call(&call) {
            return Ok(output); // from before a restart
        }
        match call.effect {
            Effect::Pure => self.try_flush()?,
            _ => self.commit().await?, // the intent is durable before the effect
        }
        let result = self.call(&call, witness, run).await;
        if let Err(e) = &result
            && e.kind() == ErrorKind::Interrupted
        {
            // A tool asks before it has effects, and restarts from the beginning.
            self.cut_off_call(&call.call_id);
            self.record(EntryBody::ToolSuspended { call_id: call.call_id });
        }
        // A tool's error text is for the model. Until the call is answered with it, an observer
        // cannot tell which effects the tool had.
        result
    }

    /// Returns the call's persisted result, or executes the call.
    async fn call(
        &self,
        call: &ToolStep,
        witness: &dyn CallWitness,
        run: impl Future<Output = Result<ToolOutput>> + Send,
    ) -> Result<ToolOutput> {
        let steps = self.steps();
        if steps.keeps() && call.delegates {
            return run.await.inspect(|output| self.finished(call.call_id.clone(), output));
        }
        let (mut run, run_id) = (pin!(run), &self.0.ids.run_id);
        loop {
            let doubt = self.begun_by_another(call, steps.kept_before(run_id, &call.kind())).await?;
            let (mut is_new, mut alone, run) = (false, None, run.as_mut());
            let body = async {
                is_new = true;
                match doubt {
                    Some(begun) => Ok(match witness.settle(begun).await? {
                        Some(output) => StepResult::Tool(Box::new(KeptCall::new(Ok(output)))),
                        None => StepResult::DidNot,
                    }),
                    None if steps.keeps() => self.run_to_keep(call, witness, run, &mut alone).await,
                    None => run.await.map(|output| StepResult::Tool(Box::new(KeptCall::new(Ok(output))))),
                }
            };
            let result = match steps.make(run_id, call.kind(), Box::pin(body)).await? {
                StepResult::Tool(kept) if is_new => kept.result,
                StepResult::Tool(kept) => self.take_over(*kept),
                StepResult::Asked(questions) => return Err(Error::waiting(questions)),
                StepResult::DidNot => continue, // it begins anew, persisted as begun by this attempt
                _ => return Err(another_kind()),
            };
            match &result {
                Ok(output) => self.finished(call.call_id.clone(), output),
                Err(_) => self.record_result(&call.call_id, |_| ()),
            }
            if !is_new {
                self.flush(); // the changes that were read back go into the same batch
            }
            drop(alone);
            return result.map_err(Error::from);
        }
    }

    /// Persists which attempt begins try `n` of the call, where the effect class requires it;
    /// returns the record of another attempt if that one began it.
    async fn begun_by_another(&self, call: &ToolStep, n: u32) -> Result<Option<Begun>> {
        let steps = self.steps();
        if !steps.keeps() || matches!(call.effect, Effect::Pure | Effect::Idempotent) {
            return Ok(None);
        }
        let own = steps.engine().attempt();
        let kind = StepKind::Intent { step: call.step, call_id: call.call_id.clone() };
        let intent = Step { run: self.0.ids.run_id.clone(), kind, n };
        match steps.engine().step(&intent, Box::pin(ready(Ok(StepResult::value(own.into()))))).await? {
            StepResult::Value { value, .. } => {
                let by = value.as_str().unwrap_or_default();
                Ok((by != own).then(|| Begun::new(call.effect, by.into())))
            }
            _ => Err(another_kind()),
        }
    }

    /// Executes a call for an engine that persists results: the result contains the call's changes,
    /// or its questions. No other call persists changes while `alone` is held.
    async fn run_to_keep(
        &self,
        call: &ToolStep,
        witness: &dyn CallWitness,
        run: impl Future<Output = Result<ToolOutput>> + Send,
        alone: &mut Option<OwnedMutexGuard<()>>,
    ) -> Result<StepResult> {
        let result = run.await;
        match witness.asked() {
            None => return Err(result.err().unwrap_or_else(|| Error::waiting(Vec::new()))),
            Some(asked) if !asked.is_empty() => return Ok(StepResult::Asked(asked)),
            Some(_) => {}
        }
        let result = match result {
            Err(e) if !is_kept(e.kind()) => return Err(e),
            result => result.map_err(|e| KeptError::of(&e)),
        };
        let (steps, mut kept) = (self.steps(), KeptCall::new(result));
        *alone = Some(steps.keep_alone().await);
        let (globals, state) = self.call_changes(&call.call_id);
        kept.globals = steps.kept(SHARED, globals);
        kept.state = steps.kept(&self.0.ids.run_id, state);
        Ok(StepResult::Tool(Box::new(kept)))
    }

    /// Applies the changes of a call that is read back instead of executed.
    pub(super) fn take_over(&self, kept: KeptCall) -> Result<ToolOutput, KeptError> {
        let used = kept.used_by_descendants();
        for entry in &kept.descendants {
            if let EntryBody::StateChanged { globals, .. } = &entry.body {
                self.0.globals.set_all(globals.clone(), true);
            }
        }
        self.take_over_globals(kept.globals);
        let state = self.steps().newer(&self.0.ids.run_id, kept.state);
        self.0.state.set_all(state.filter_map(|(name, value)| Some((name, value?))).collect());
        let mut open = self.open();
        open.uncounted += used;
        self.record_all(&mut open, kept.descendants);
        kept.result
    }

    pub(super) fn take_over_globals(&self, globals: BTreeMap<String, KeptValue>) {
        self.0.globals.set_all(self.steps().newer(SHARED, globals).collect(), false);
    }

    /// Records that a call's tool begins; returns its result from before a restart instead, if
    /// there is one.
    fn begin_call(&self, call: &ToolStep) -> Option<ToolOutput> {
        let mut open = self.open();
        let restored = open.restored.take_output(&call.call_id);
        if restored.is_none() {
            let (call_id, name, attempt) = (call.call_id.clone(), call.name.clone(), self.attempt().clone());
            self.record_in(&mut open, EntryBody::ToolStarted { call_id, name, effect: call.effect, attempt });
        }
        restored
    }
}
