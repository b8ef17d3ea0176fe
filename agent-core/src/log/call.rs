//! A tool call as a durable step.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;

use super::RunLog;
use crate::{
    error::{Error, ErrorKind, Result},
    future::boxed,
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

/// The executor's part of a call, in the order in which [`CallLog::run`] asks for it.
pub trait CallBody: Send + Sync {
    /// Finds out what became of the call, which another attempt began: its output if it happened,
    /// none if it is to run.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if somebody has to be asked.
    fn settle(&self, begun: Begun) -> BoxFuture<'_, Result<Option<ToolOutput>>>;

    /// Prepares one try at the call: checks its arguments and takes its allowance.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] if a budget does not allow it: the tool does not run.
    fn allow(&self) -> impl Future<Output = Result<()>> + Send;

    /// Counts a try that an earlier attempt made, in the accounts that do not outlive an attempt.
    fn count_again(&self);

    /// Runs the tool.
    fn run(&self) -> impl Future<Output = Result<ToolOutput>> + Send;

    /// Returns the unanswered questions of the call, even if a layer replaced the error that
    /// reported them, or `None` if the call waits for a child run.
    fn asked(&self) -> Option<Vec<Question>>;
}

/// One tool call of a run, with what the run's state and its engine have of it.
#[derive(Debug)]
pub struct CallLog<'a> {
    log: &'a RunLog,
    call: ToolStep,
}

impl RunLog {
    /// Opens a call that is to be made.
    pub fn open_call(&self, call: ToolStep) -> CallLog<'_> {
        CallLog { log: self, call }
    }
}

impl CallLog<'_> {
    /// Makes the call, on every engine in this order:
    ///
    /// 1. A result that the run's state or its engine has is returned.
    /// 2. A call that another attempt began and left without a result is settled.
    /// 3. The allowance of one try is taken.
    /// 4. The intent is recorded, and is durable before an effect.
    /// 5. The tool runs.
    /// 6. Its result is recorded together with what the call changed.
    ///
    /// # Errors
    /// Those of `body`, of the journal and of the engine.
    pub async fn run(&self, body: &impl CallBody) -> Result<ToolOutput> {
        let (log, id) = (self.log, &self.call.call_id);
        if let Some(output) = log.stored_output(id) {
            return Ok(output);
        }
        if let Some(begun) = log.in_doubt(id) {
            let settled = body.settle(begun).await?;
            log.doubt_settled(id);
            if let Some(output) = settled {
                log.finished(id.clone(), &output);
                return Ok(output);
            }
        }
        let result = match log.steps().keeps() && self.call.delegates {
            true => boxed(|| self.enter(body)).await,
            false => self.step(body).await,
        };
        if let Err(e) = &result
            && e.kind() == ErrorKind::Interrupted
        {
            // A tool asks before it has effects, and restarts from the beginning.
            log.cut_off_call(id);
            log.record(EntryBody::ToolSuspended { call_id: id.clone() });
        }
        // A tool's error text is for the model. Until the call is answered with it, an observer
        // cannot tell which effects the tool had.
        result
    }

    /// Runs a tool that only delegates: the engine stores the steps of its sub-agents, so the tool
    /// itself is entered again.
    async fn enter(&self, body: &impl CallBody) -> Result<ToolOutput> {
        let intent = self.log.steps().number(&self.log.0.ids.run_id, self.intent());
        if self.begin_as(intent.step(), body).await?.is_some() {
            body.count_again();
        }
        intent.keep();
        self.begin().await?;
        body.run().await.inspect(|output| self.log.finished(self.call.call_id.clone(), output))
    }

    /// Runs the tool as a [step](crate::engine::Durable::step) of the engine.
    async fn step(&self, body: &impl CallBody) -> Result<ToolOutput> {
        let (log, call) = (self.log, &self.call);
        let (steps, run_id) = (log.steps(), &log.0.ids.run_id);
        loop {
            let numbered = steps.number(run_id, call.kind());
            let intends = steps.keeps() && !matches!(call.effect, Effect::Pure | Effect::Idempotent);
            let doubt = match intends {
                true => {
                    let intent = Step { kind: self.intent(), ..numbered.step().clone() };
                    self.begin_as(&intent, body).await?
                }
                false => None,
            };
            let (mut is_new, mut alone) = (false, None);
            let make = async {
                is_new = true;
                if let Some(by) = doubt {
                    let settled = body.settle(Begun::new(call.effect, by)).await?;
                    let Some(output) = settled else { return Ok(StepResult::DidNot) };
                    body.count_again();
                    self.record_begun();
                    return Ok(StepResult::Tool(Box::new(KeptCall::new(Ok(output)))));
                }
                if !intends {
                    body.allow().await?; // or else it was allowed with the intent
                }
                self.begin().await?;
                match steps.keeps() {
                    true => self.run_to_keep(body, &mut alone).await,
                    false => body.run().await.map(|output| StepResult::Tool(Box::new(KeptCall::new(Ok(output))))),
                }
            };
            let made = steps.engine().step(numbered.step(), Box::pin(make)).await?;
            numbered.keep();
            if !is_new && !matches!(made, StepResult::DidNot) {
                body.count_again();
                self.record_begun();
            }
            let result = match made {
                StepResult::Tool(kept) if is_new => kept.result,
                StepResult::Tool(kept) => log.take_over(*kept),
                StepResult::Asked(questions) => return Err(Error::waiting(questions)),
                StepResult::DidNot => continue, // it begins anew, persisted as begun by this attempt
                _ => return Err(another_kind()),
            };
            match &result {
                Ok(output) => log.finished(call.call_id.clone(), output),
                Err(_) => log.record_result(&call.call_id, |_| ()),
            }
            if !is_new {
                log.flush(); // the changes that were read back go into the same batch
            }
            drop(alone);
            return result.map_err(Error::from);
        }
    }

    fn intent(&self) -> StepKind {
        StepKind::Intent { step: self.call.step, call_id: self.call.call_id.clone() }
    }

    /// Takes the allowance of a try at the call and persists that this attempt begins it. Returns
    /// the attempt that began it, if that is another one.
    async fn begin_as(&self, intent: &Step, body: &impl CallBody) -> Result<Option<Arc<str>>> {
        let engine = self.log.steps().engine();
        let own = engine.attempt();
        let allow = async {
            body.allow().await?;
            Ok(StepResult::value(own.into()))
        };
        match engine.step(intent, Box::pin(allow)).await? {
            StepResult::Value { value, .. } => {
                let by = value.as_str().unwrap_or_default();
                Ok((by != own).then(|| by.into()))
            }
            _ => Err(another_kind()),
        }
    }

    /// Records the intent. It is durable before the effect.
    async fn begin(&self) -> Result<()> {
        self.record_begun();
        match self.call.effect {
            Effect::Pure => self.log.try_flush(),
            _ => self.log.commit().await,
        }
    }

    fn record_begun(&self) {
        let (call_id, name, attempt) = (self.call.call_id.clone(), self.call.name.clone(), self.log.attempt().clone());
        self.log.record(EntryBody::ToolStarted { call_id, name, effect: self.call.effect, attempt });
    }

    /// Executes a call for an engine that persists results: the result contains the call's changes,
    /// or its questions. No other call persists changes while `alone` is held.
    async fn run_to_keep(&self, body: &impl CallBody, alone: &mut Option<OwnedMutexGuard<()>>) -> Result<StepResult> {
        let result = body.run().await;
        match body.asked() {
            None => return Err(result.err().unwrap_or_else(|| Error::waiting(Vec::new()))),
            Some(asked) if !asked.is_empty() => return Ok(StepResult::Asked(asked)),
            Some(_) => {}
        }
        let result = match result {
            Err(e) if !is_kept(e.kind()) => return Err(e),
            result => result.map_err(|e| KeptError::of(&e)),
        };
        let (steps, mut kept) = (self.log.steps(), KeptCall::new(result));
        *alone = Some(steps.keep_alone().await);
        let (globals, state) = self.log.call_changes(&self.call.call_id);
        kept.globals = steps.kept(SHARED, globals);
        kept.state = steps.kept(&self.log.0.ids.run_id, state);
        kept.stop = self.log.stop_requested();
        Ok(StepResult::Tool(Box::new(kept)))
    }
}

impl RunLog {
    /// Applies the changes of a call that is read back instead of executed.
    pub(super) fn take_over(&self, kept: KeptCall) -> Result<ToolOutput, KeptError> {
        let used = kept.used_by_descendants();
        for entry in &kept.descendants {
            if let EntryBody::StateChanged { globals, .. } = &entry.body {
                self.0.globals.set_all(globals.clone(), true);
            }
        }
        self.take_over_globals(kept.globals);
        if let Some(reason) = kept.stop {
            self.record_stop(reason);
        }
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
}
