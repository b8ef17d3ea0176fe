//! Runs: what goes in, what a hook sees, what comes out, and what is kept while one waits.

mod answer;
mod ask;
mod background;
mod booking;
mod busy;
mod call_model;
mod clock;
mod cx;
mod digest;
mod driver;
mod end;
mod ids;
mod inbox;
mod pause;
mod per_run;
mod question;
mod request;
mod state;
mod sub_agent;
mod sub_run;
mod tasks;
mod usage;

pub(crate) use self::state::{Child, Trail};
pub use self::{
    answer::{Answer, Refusal},
    ask::Ask,
    background::BackgroundRun,
    booking::Booking,
    busy::{WhenBusy, WhenWaiting},
    clock::Clock,
    cx::RunCx,
    digest::canonical_json,
    driver::{RunDriver, RunParts},
    end::{Exit, ExitReason, Finished, RunEnd},
    ids::{RunIds, new_id},
    inbox::Inbox,
    pause::Pause,
    per_run::PerRun,
    question::Question,
    request::{Parent, RunInput, RunRequest, ToolChoices},
    state::{Begun, CallState, Checkpoint, PendingCall, PendingTurn, Phase, RunState},
    sub_agent::{SubAgent, SubAgents},
    sub_run::{SubAgentCall, SubRun, SubRunHandle},
    usage::UsageMeter,
};
