//! Runs: what goes in, what a hook sees, what comes out, and what is kept while one waits.

mod answer;
mod ask;
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
mod per_run;
mod question;
mod request;
mod sub_agent;
mod usage;

pub use self::{
    answer::{Answer, Refusal},
    ask::Ask,
    booking::Booking,
    busy::WhenBusy,
    checkpoint::{Begun, CallState, Checkpoint, PendingCall, PendingTurn, Phase},
    clock::Clock,
    cx::RunCx,
    digest::canonical_json,
    driver::{RunDriver, RunParts},
    end::{Exit, ExitReason, Finished, RunEnd},
    ids::{RunIds, new_id},
    inbox::Inbox,
    per_run::PerRun,
    question::Question,
    request::{Parent, RunInput, RunRequest, ToolChoices},
    sub_agent::{SubAgent, SubAgents},
    usage::UsageMeter,
};
