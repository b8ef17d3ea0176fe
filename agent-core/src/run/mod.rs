//! Runs: what goes in ([`RunRequest`]), what a hook sees ([`RunCx`]), and what comes out ([`RunEnd`]).
//!
//! Applications make requests, answer [`Question`]s and read ends; authors of middlewares and tools are given a [`RunCx`]. What
//! is kept of a run that waits is in [`checkpoint`]; what drives one is in [`engine`](crate::engine).
//!
//! ```
//! use agent_core::{
//!     History, RunEnd,
//!     run::{ExitReason, Finished, RunIds},
//! };
//!
//! fn said(end: RunEnd) -> String {
//!     match end {
//!         RunEnd::Finished(finished) => finished.answer,
//!         waits => format!("it stands at step {}", waits.checkpoint().map_or(0, |at| at.step)),
//!     }
//! }
//!
//! let finished = Finished::new(RunIds::root("helper", "s1"), "42", ExitReason::Text, History::default());
//! assert_eq!(said(RunEnd::Finished(Box::new(finished))), "42");
//! ```

mod ask;
mod background;
pub mod checkpoint;
mod clock;
mod cx;
pub(crate) mod driver;
pub(crate) mod engine_cx;
pub(crate) mod inbox;
pub(crate) mod pause;
pub(crate) mod per_run;
pub(crate) mod request;
mod sub_agent;
pub(crate) mod sub_run;
pub(crate) mod sub_runs;
mod tasks;
pub(crate) mod usage;

pub use self::{
    ask::Ask,
    clock::Clock,
    cx::RunCx,
    request::{RunInput, RunRequest, ToolChoices},
    sub_agent::{AgentService, SubAgent, SubAgents},
};
pub(crate) use self::{
    driver::{RunDriver, RunParts},
    engine_cx::{EngineCx, EngineKey},
    inbox::Inbox,
    pause::Pause,
    request::Parent,
    sub_run::{SubAgentCall, SubRunHandle},
    usage::UsageMeter,
};
pub use crate::{
    deadlines::{DeadlineKind, Deadlines, RunDeadline},
    state::{Answer, Exit, ExitReason, Finished, Question, Refusal, RunEnd, RunIds, WhenBusy, WhenWaiting, new_id},
};
