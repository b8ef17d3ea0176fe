//! Runs: the input ([`RunRequest`]), the view of hooks ([`RunCx`]), and the result ([`RunEnd`]).
//!
//! Applications create requests, answer [`Question`]s and read ends; authors of middlewares and
//! tools receive a [`RunCx`]. The persistent form of a suspended run is in [`checkpoint`]; the
//! interface of executors is in [`engine`](crate::engine).
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

pub mod checkpoint;
pub(crate) mod driver;
pub(crate) mod sub_run;
pub(crate) mod sub_runs;

pub use crate::{
    cx::{Ask, Clock, RunCx},
    deadlines::{DeadlineKind, Deadlines, RunDeadline},
    request::{RunInput, RunRequest, SubAgent, SubAgents, ToolChoices},
    state::{
        Answer, Exit, ExitReason, Finished, Question, Refusal, RunEnd, RunIds, SessionId, WhenBusy, WhenWaiting, new_id,
    },
};
