//! [`Durable`]: the engine that executes the steps of a run and persists their results.

mod embedded;
mod result;
mod served;
mod steps;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::future::BoxFuture;

pub(crate) use self::result::{another_kind, is_kept};
pub use self::{
    embedded::Embedded,
    result::{KeptCall, KeptError, KeptRun, KeptValue, StepResult},
    served::{ServedEnd, ServedRun},
    steps::Steps,
};
use crate::{
    error::{Error, ErrorKind, Result},
    journal::Journal,
    state::{Answer, Question},
    tooling::Effect,
};

/// Durable execution engine of a tree of runs. A finished step is never executed again: its result
/// is persisted, and returned when the run is driven again.
///
/// The executor makes every model call, every tool call and every [decision](crate::RunCx::decide)
/// a step. Steps are innermost in the middleware stacks, so that the policies around them run again
/// and decide the same. Steering messages, answers to questions, sleeps, runs of sub-agents and
/// remote runs are steps too: all external input passes through this trait.
///
/// [`Embedded`] is the engine of runs that recover from their [journal](crate::Journal): the
/// journal contains the results, and the engine stores nothing. An engine that persists results
/// ([`RunRequest::durable`](crate::RunRequest::durable)) drives a run whose process died again
/// *from its beginning*, under the same run id: every step with a result returns it, and the run
/// continues at the first step without one. Requirements for such an engine:
///
/// * Persist the `Ok` results of bodies under [`Step::name`], in any format; [`StepResult`]
///   implements serde's traits. Errors are not persisted.
/// * Run one attempt at a run at a time, each with a unique nonce.
/// * Let a step begin while the body of another is running: a tool call makes decisions.
///
/// Code between steps, such as hooks, runs again: it must come to the same result for the same run.
#[async_trait]
pub trait Durable: Send + Sync + 'static {
    /// Nonce of this attempt at the run; every restart has a new one.
    fn attempt(&self) -> &str;

    /// Executes `body` and persists its result, or returns the persisted result without polling
    /// `body`.
    ///
    /// # Errors
    /// Those of `body`, which are not persisted; [`ErrorKind::Store`](crate::ErrorKind::Store) if
    /// the result cannot be persisted;
    /// [`ErrorKind::NonDeterminism`](crate::ErrorKind::NonDeterminism) if another step was
    /// persisted at this position.
    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult>;

    /// Drives the run of a sub-agent, which is `body`, and may persist its end; or returns the
    /// persisted end.
    ///
    /// Default: nothing is persisted, so that the sub-agent is driven again with its parent run.
    /// The sub-agent's own steps are persisted.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        let _ = step;
        body.await
    }

    /// Starts a run of a remote agent, waits for it and persists its result. Idempotent across
    /// restarts.
    ///
    /// Default: an error, since the engine does not support remote runs.
    ///
    /// # Cancellation safety
    /// Dropping the future before the run's end cancels the run.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the engine does not support remote runs,
    /// or an ancestor run uses the same session; [`ErrorKind::Tool`](crate::ErrorKind::Tool) if the
    /// run never began, or its maximum depth is exceeded;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if the run took too long. A failure of the
    /// run itself is part of its [end](ServedEnd::reason).
    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        let _ = step;
        Err(Error::config(format!(
            "agent '{}' is served elsewhere, where this engine sends no runs: have the caller's runs driven by one that does, or reach the agent \
             by its address",
            run.agent
        )))
    }

    /// Returns the journal of the run's session, if the engine stores sessions too: its content is
    /// the run's past, and the run's entries are written there. In every attempt it contains the
    /// entries that existed when the run began; a later attempt writes the same entries again,
    /// possibly with other times and, for concurrent steps, in another order.
    ///
    /// Default: `None`; the run has no past and leaves nothing but the results of its steps.
    fn journal(&self) -> Option<Arc<dyn Journal>> {
        None
    }

    /// Waits for the answer to a question of the run.
    ///
    /// Default: does not wait; the run ends [`Interrupted`](crate::RunEnd::Interrupted) with its
    /// checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the run must end and wait
    /// outside the engine.
    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        let _ = step;
        Err(Error::interrupted(question.clone()))
    }

    /// Waits until a paused run is resumed.
    ///
    /// Default: does not wait; the run ends [`Paused`](crate::RunEnd::Paused) with its checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the run must end and wait
    /// outside the engine.
    async fn paused(&self, step: &Step) -> Result<()> {
        let _ = step;
        Err(Error::new(ErrorKind::Interrupted, "the run is paused"))
    }

    /// Sleeps for `time`. After a restart the run sleeps for the remaining time.
    ///
    /// Default: a timer of this process.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the engine failed.
    async fn sleep(&self, step: &Step, time: Duration) -> Result<()> {
        let _ = step;
        tokio::time::sleep(time).await;
        Ok(())
    }
}

/// Body of a step: a future that is polled only if the step has no result yet.
pub type StepBody<'a> = BoxFuture<'a, Result<StepResult>>;

/// Identity of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The run that makes the step.
    pub run: Arc<str>,
    /// Kind of the step.
    pub kind: StepKind,
    /// Number of earlier steps of this run with the same kind.
    pub n: u32,
}

/// Kind of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepKind {
    /// A model call.
    Model {
        /// Number of the run's step, from 1.
        step: u32,
    },
    /// Nonce of the attempt that begins a tool call: persisted before an effect that must not be
    /// repeated blindly.
    Intent {
        /// Number of the run's step.
        step: u32,
        /// Id of the call.
        call_id: Arc<str>,
    },
    /// A tool's call.
    Tool {
        /// Number of the run's step.
        step: u32,
        /// Id of the call.
        call_id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
        /// Effect class: the consequence of repeating the call.
        effect: Effect,
    },
    /// A decision.
    Decision {
        /// Name of the decision.
        name: String,
    },
    /// The messages that steer the run, taken before a model call.
    Steering {
        /// Number of the run's current step.
        step: u32,
    },
    /// The answer to a question.
    Answer {
        /// Id of the question.
        question: String,
    },
    /// A sleep.
    Sleep {
        /// Name of the sleep.
        name: String,
    },
    /// A pause.
    Pause,
    /// A remote run.
    Served {
        /// Session of the remote run.
        session: Arc<str>,
        /// Id of the remote run.
        run: Arc<str>,
    },
    /// The run id of a sub-agent that is about to be started.
    Child {
        /// Number of the run's step; 0 for one that belongs to the whole run.
        step: u32,
        /// Tool call or hook that starts the sub-agent.
        owner: Arc<str>,
        /// Key under which the sub-agent is called.
        key: String,
        /// Number of sub-agents that the same call or hook started earlier under the same key.
        number: u32,
    },
    /// The run of a sub-agent.
    Run {
        /// Key under which the sub-agent was called.
        key: String,
        /// Run id of the sub-agent.
        run: Arc<str>,
    },
}

impl Step {
    /// Name under which the result is persisted; unique in the tree, and the same in every attempt.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.run, self.kind, self.n)
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { step } => write!(f, "model/{step}"),
            Self::Intent { step, call_id } => write!(f, "intent/{step}/{call_id}"),
            Self::Tool { step, call_id, .. } => write!(f, "tool/{step}/{call_id}"),
            Self::Decision { name } => write!(f, "decision/{name}"),
            Self::Steering { step } => write!(f, "steering/{step}"),
            Self::Answer { question } => write!(f, "answer/{question}"),
            Self::Sleep { name } => write!(f, "sleep/{name}"),
            Self::Pause => f.write_str("pause"),
            Self::Served { session, run } => write!(f, "served/{session}/{run}"),
            Self::Child { step, owner, key, number } => write!(f, "child/{step}/{owner}/{key}/{number}"),
            Self::Run { run, .. } => write!(f, "run/{run}"),
        }
    }
}
