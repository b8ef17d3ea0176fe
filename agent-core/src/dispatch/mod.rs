//! Runs that go to other processes: what is sent ([`Job`]), and who takes it ([`Dispatch`]); and a [`Queue`] of them, as workers see it.
//!
//! A front door (a server, a schedule, a program) makes jobs; a queue with workers, or a distributed engine, runs them. Both sides share
//! the agents by name and the session's [`Journal`](crate::Journal), where whoever wants reads what becomes of a run.
//!
//! ```
//! use agent_core::{RunRequest, dispatch::Job};
//!
//! let request = RunRequest::user("A-17 came broken.").session("garden").run_id("r1");
//! let job = Job::new("support", &request)?.priority(5);
//! let sent = serde_json::to_string(&job).expect("a job is data");
//! let taken: Job = serde_json::from_str(&sent).expect("and comes back");
//! assert_eq!(taken.request().run_id.as_deref(), Some("r1"));
//! # Ok::<(), agent_core::Error>(())
//! ```

mod job;
mod queue;
mod upkeep;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use self::{
    job::Job,
    queue::{Claim, Claimed, Outcome, Queue, Told},
    upkeep::{QueuedJob, Schedule, StandingKind, Upkeep, Wanted},
};
use crate::{error::Result, message::Message, state::Answer};

/// Takes runs over and has them run, in this process or in another one.
///
/// What a method has returned is durable: it survives the process that called it and the one that runs.
#[async_trait]
pub trait Dispatch: Send + Sync + 'static {
    /// Takes a run over. A job with a run id that was taken before is the same run, and changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an agent that nobody runs, where that is known;
    /// [`ErrorKind::RateLimited`](crate::ErrorKind::RateLimited) if no more is taken now;
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it could not be kept.
    async fn dispatch(&self, job: Job) -> Result<Dispatched>;

    /// Goes on with a run that waits, with answers by question id; with none it goes on where it stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`](crate::ErrorKind::Stale) if it waits for nothing; [`ErrorKind::Store`](crate::ErrorKind::Store).
    async fn answer(&self, run: &RunAddress, answers: BTreeMap<String, Answer>) -> Result<()>;

    /// Tells a run that is queued or under way; false if it is neither. One that is at rest can be cancelled, and so can one that was given up, which ends
    /// when it is retried.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it could not be told.
    async fn signal(&self, run: &RunAddress, signal: Signal) -> Result<bool>;

    /// Where a run stands, as far as the journal does not tell; none if it is not known here.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it could not be looked up.
    async fn standing(&self, run: &RunAddress) -> Result<Option<Standing>>;
}

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunAddress {
    /// Its agent, by name.
    pub agent: Arc<str>,
    /// Its session, as the store names it.
    pub session: Arc<str>,
    /// Its id.
    pub run: Arc<str>,
}

impl RunAddress {
    /// The run `run` of `agent` in `session`.
    pub fn new(agent: impl Into<Arc<str>>, session: impl Into<Arc<str>>, run: impl Into<Arc<str>>) -> Self {
        Self { agent: agent.into(), session: session.into(), run: run.into() }
    }
}

/// Whether a job was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dispatched {
    /// It is taken now.
    New,
    /// It was taken before.
    Known,
}

/// What a run is told from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// It ends now, and its descendants.
    Cancel,
    /// It stops before its next step.
    Pause,
    /// It takes this message before its next model call.
    Steer(Message),
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// It waits for its turn.
    Queued,
    /// A process has it.
    Running {
        /// Which one, as it calls itself.
        worker: String,
    },
    /// It waits for an answer, or was stopped: no process has it.
    AtRest,
    /// It is given up: it failed, or its process died, as often as it may.
    Dead {
        /// Why, the last time.
        error: String,
    },
    /// It is done.
    Done,
}

impl Standing {
    /// Which one it is, without what else it says.
    pub fn kind(&self) -> StandingKind {
        match self {
            Self::Queued => StandingKind::Queued,
            Self::Running { .. } => StandingKind::Running,
            Self::AtRest => StandingKind::AtRest,
            Self::Dead { .. } => StandingKind::Dead,
            Self::Done => StandingKind::Done,
        }
    }
}
