//! The one primitive of durability: a step whose result is kept.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    error::Result,
    llm::ModelResponse,
    tooling::{Effect, ToolOutput},
};

/// Runs steps so that a finished one is never run again: its result is kept, and given back when the run is driven again.
///
/// The executor makes every model call, every tool call and every [decision](crate::RunCx::decide) a step, innermost in the
/// stacks, so that the policies outside it replay deterministically. [`RunLog`](crate::engine::RunLog) is the embedded engine, over
/// a [`Journal`](crate::Journal); a distributed engine implements the trait with its own log.
///
/// A result is typed and not yet bytes, so that an engine in memory does not serialise what nobody reads; every variant is
/// serde, for an engine that does.
#[async_trait]
pub trait Durable: Send + Sync + 'static {
    /// The nonce of this attempt at the run: another one after every restart.
    fn attempt(&self) -> &str;

    /// Runs `body` and keeps its result; or gives back the kept result and leaves `body` unpolled.
    ///
    /// The embedded engine gives back decisions and the results of tools that a checkpoint holds; an answered model call is
    /// in the checkpoint's phase and never comes here again.
    ///
    /// # Errors
    /// Those of `body`, which are not kept; [`ErrorKind::Store`](crate::ErrorKind::Store) if the result cannot be kept;
    /// [`ErrorKind::NonDeterminism`](crate::ErrorKind::NonDeterminism) if another step was kept in this place.
    async fn step(&self, step: Step, body: StepBody<'_>) -> Result<StepResult>;
}

/// What a step does: a future that is polled only if the step has no result yet.
pub type StepBody<'a> = BoxFuture<'a, Result<StepResult>>;

/// Which step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A model call.
    Model {
        /// The step's number, from 1.
        step: u32,
    },
    /// A tool call. Its intent is durable before an effect that must not be repeated blindly.
    Tool {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// What repeating it would do.
        effect: Effect,
    },
    /// A decision.
    Named(String),
}

/// What a step gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepResult {
    /// A model's answer.
    Model(ModelResponse),
    /// A tool's output.
    Tool(ToolOutput),
    /// A decision.
    Value(Value),
}
