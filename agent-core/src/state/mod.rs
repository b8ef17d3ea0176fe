//! The data of a run: its ids, questions and answers, state and end. Independent of the journal and
//! of executors; the public modules [`run`](crate::run) and [`engine`](crate::engine) re-export it.

mod answer;
mod background;
mod busy;
mod child;
pub(crate) mod digest;
mod end;
mod ids;
mod question;
mod run_meta;
mod run_state;
mod session_id;
mod status;
mod suspension;
mod turn;

pub use self::{
    answer::{Answer, Refusal},
    background::BackgroundRun,
    busy::{WhenBusy, WhenWaiting},
    child::ChildRun,
    digest::canonical_json,
    end::{Exit, ExitReason, Finished, RunEnd},
    ids::{RunIds, new_id},
    question::Question,
    run_state::{Checkpoint, RunState},
    session_id::SessionId,
    status::RunStatus,
    turn::{Begun, CallState, PendingCall, PendingTurn, Phase},
};
pub(crate) use self::{
    child::{ChildKey, HOOK_OF_STEP},
    question::id_within,
    run_meta::RunMeta,
    run_state::is_default,
};
