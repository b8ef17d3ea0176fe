//! [`Durable`]: the engine that keeps what the steps of a run gave.

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

/// Runs the steps of a tree of runs so that a finished one is never run again: its result is kept, and given back when the run
/// is driven again.
///
/// The executor makes every model call, every tool call and every [decision](crate::RunCx::decide) a step, innermost in the
/// stacks, so that the policies outside it are run again and decide the same. Taking in messages that steer the run, waiting
/// for an answer, sleeping, the run of a sub-agent and a run that is driven elsewhere are steps too: whatever comes from outside
/// the program comes through here.
///
/// [`Embedded`] is the engine of runs that go on from their [journal](crate::Journal): the journal has what the steps gave, and
/// the engine keeps nothing itself. An engine that keeps results ([`RunRequest::durable`](crate::RunRequest::durable)) drives
/// a run whose process died again *from its beginning*, under the same run id: every step that has a result is given it, and
/// the first one that has none is where the run goes on. What such an engine has to do:
///
/// * Keep the `Ok` results of bodies under [`Step::name`], in whatever form; [`StepResult`] is serde. An error is not kept.
/// * Make one attempt at a run at a time, each with a nonce of its own.
/// * Let a step begin while the body of another is running: a tool's call makes decisions.
///
/// What is done between steps, such as a hook's, is done again: it must come to the same result for the same run.
#[async_trait]
pub trait Durable: Send + Sync + 'static {
    /// The nonce of this attempt at the run: another one after every restart.
    fn attempt(&self) -> &str;

    /// Runs `body` and keeps its result; or gives back the kept result and leaves `body` unpolled.
    ///
    /// # Errors
    /// Those of `body`, which are not kept; [`ErrorKind::Store`](crate::ErrorKind::Store) if the result cannot be kept;
    /// [`ErrorKind::NonDeterminism`](crate::ErrorKind::NonDeterminism) if another step was kept in this place.
    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult>;

    /// Drives the run of a sub-agent, which is `body`, and may keep its end; or gives back the end that was kept.
    ///
    /// Default: nothing is kept, so that the sub-agent is driven again with the run above it. Its own steps are kept.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    async fn child(&self, step: &Step, body: StepBody<'_>) -> Result<StepResult> {
        let _ = step;
        body.await
    }

    /// Has a run of an agent that is served elsewhere driven there, and waits for its end, which it keeps. After a restart it is the same run.
    /// It is cancelled if the future is dropped before its end.
    ///
    /// Default: the engine sends no runs elsewhere.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the engine cannot, or a run above is of the same session;
    /// [`ErrorKind::Tool`](crate::ErrorKind::Tool) if the run never began, or there are as many above it as may be;
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if it took too long. That it failed is its [end](ServedEnd::reason).
    async fn served(&self, step: &Step, run: &ServedRun) -> Result<ServedEnd> {
        let _ = step;
        Err(Error::config(format!(
            "agent '{}' is served elsewhere, where this engine sends no runs: have the caller's runs driven by one that does, or reach the agent \
             by its address",
            run.agent
        )))
    }

    /// Where the run's session is, if the engine keeps sessions too: what was said in it is the run's past, and the run's entries
    /// are written there. It holds what was there when the run began, in every attempt; what is written again by a later attempt
    /// is the same entries, perhaps at other times and, of steps side by side, in another order.
    ///
    /// Default: none, so that the run has no past and leaves nothing but what its steps gave.
    fn journal(&self) -> Option<Arc<dyn Journal>> {
        None
    }

    /// Waits until somebody answers a question of the run.
    ///
    /// Default: it does not wait, and the run ends [`Interrupted`](crate::RunEnd::Interrupted) with its checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the run is to end and wait outside the engine.
    async fn answer(&self, step: &Step, question: &Question) -> Result<Answer> {
        let _ = step;
        Err(Error::interrupted(question.clone()))
    }

    /// Waits until somebody lets a run go on that was paused.
    ///
    /// Default: it does not wait, and the run ends [`Paused`](crate::RunEnd::Paused) with its checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the run is to end and wait outside the engine.
    async fn paused(&self, step: &Step) -> Result<()> {
        let _ = step;
        Err(Error::new(ErrorKind::Interrupted, "the run is paused"))
    }

    /// Waits until this time has passed. After a restart the run asks for what is left of it.
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

/// What a step does: a future that is polled only if the step has no result yet.
pub type StepBody<'a> = BoxFuture<'a, Result<StepResult>>;

/// Which step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The run that makes it.
    pub run: Arc<str>,
    /// What it is.
    pub kind: StepKind,
    /// How many steps of this run that are the same otherwise were kept before it.
    pub n: u32,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepKind {
    /// A model call.
    Model {
        /// The number of the run's step, from 1.
        step: u32,
    },
    /// Which attempt begins a tool's call: kept before an effect that must not be repeated blindly.
    Intent {
        /// The number of the run's step.
        step: u32,
        /// The call.
        call_id: Arc<str>,
    },
    /// A tool's call.
    Tool {
        /// The number of the run's step.
        step: u32,
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        name: Arc<str>,
        /// What repeating it would do.
        effect: Effect,
    },
    /// A decision.
    Decision {
        /// Its name.
        name: String,
    },
    /// The messages that steer the run, before a model call.
    Steering {
        /// The number of the run's step so far.
        step: u32,
    },
    /// The answer to a question.
    Answer {
        /// The question's id.
        question: String,
    },
    /// A time to wait.
    Sleep {
        /// Its name.
        name: String,
    },
    /// A pause.
    Pause,
    /// A run that is driven elsewhere.
    Served {
        /// Its session.
        session: Arc<str>,
        /// Its id.
        run: Arc<str>,
    },
    /// The run of a sub-agent.
    Run {
        /// The key by which it was called.
        key: String,
        /// Its run.
        run: Arc<str>,
    },
}

impl Step {
    /// The name under which its result is kept: no other step of the tree has it, in any attempt.
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
            Self::Run { run, .. } => write!(f, "run/{run}"),
        }
    }
}
