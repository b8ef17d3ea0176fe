//! Runs: what goes in, what a hook sees, what comes out, and what is kept while one waits.

mod answer;
mod ask;
mod background;
mod booking;
mod busy;
mod call_model;
mod checkpoint;
mod clock;
mod cx;
mod digest;
mod driver;
mod end;
mod ids;
mod inbox;
mod pause;
mod per_run;
mod prefetch;
mod question;
mod request;
mod sub_agent;
mod sub_run;
mod tasks;
mod usage;

pub use self::{
    answer::{Answer, Refusal},
    ask::Ask,
    background::BackgroundRun,
    booking::Booking,
    busy::{WhenBusy, WhenWaiting},
    checkpoint::{Begun, CallState, Checkpoint, PendingCall, PendingTurn, Phase},
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
    sub_agent::{SubAgent, SubAgents},
    sub_run::{SubAgentCall, SubRun, SubRunHandle},
    usage::UsageMeter,
};
