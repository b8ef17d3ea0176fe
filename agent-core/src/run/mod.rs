//! Runs: what goes in, what a hook sees, what comes out, and what is kept while one waits.

mod answer;
mod ask;
pub(crate) mod background;
pub(crate) mod booking;
mod busy;
mod call_model;
pub mod checkpoint;
mod clock;
mod cx;
pub(crate) mod digest;
pub(crate) mod driver;
mod end;
mod ids;
pub(crate) mod inbox;
pub(crate) mod pause;
pub(crate) mod per_run;
mod question;
pub(crate) mod request;
mod state;
mod sub_agent;
pub(crate) mod sub_run;
mod tasks;
pub(crate) mod usage;

pub use self::{
    answer::{Answer, Refusal},
    ask::Ask,
    busy::{WhenBusy, WhenWaiting},
    clock::Clock,
    cx::RunCx,
    end::{Exit, ExitReason, Finished, RunEnd},
    ids::{RunIds, new_id},
    question::Question,
    request::{RunInput, RunRequest, ToolChoices},
    sub_agent::{SubAgent, SubAgents},
};
pub(crate) use self::{
    background::BackgroundRun,
    driver::{RunDriver, RunParts},
    inbox::Inbox,
    pause::Pause,
    request::Parent,
    state::{Begun, CallState, Checkpoint, Child, PendingTurn, Phase, RunState, Trail},
    sub_run::{SubAgentCall, SubRunHandle},
    usage::UsageMeter,
};
pub use crate::deadlines::{DeadlineKind, Deadlines, RunDeadline};
