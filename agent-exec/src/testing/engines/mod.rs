//! Conformance suite for engines: whatever happens to the processes that drive its runs, and on
//! whichever engine, a run ends like an undisturbed one.
//!
//! [`engine_conformance!`](crate::engine_conformance) generates one test per claim. It takes an
//! [`EngineWorld`], which drives a run of an agent on the engine, in a process that may die, and
//! can answer, pause and resume the run from outside. The suite supplies the agents, decides when
//! processes die, and inspects how runs ended.
//!
//! Cases that no engine sees are not covered here: the executor refuses requests that cannot be
//! re-driven at all (without a run id, from a checkpoint) before it calls the engine.

mod children;
mod deaths;
mod deeds;
mod drive;
mod questions;
mod runs;
mod served;
mod sessions;
mod waits;

use std::time::Duration;

use agent_core::{Question, Result, async_trait, engine::ServedEnd, testing::MortalProcess};
use agent_dispatch::{Job, RunAddress};
use agent_tools::RemoteAgent;
use serde_json::Value;

pub use self::{children::*, deaths::*, questions::*, runs::*, served::*, sessions::*, waits::*};
use crate::Agent;

/// A world with an engine. It outlives the processes that drive its runs; a dead process leaves
/// nothing behind.
#[async_trait]
pub trait EngineWorld: Send + Sync + Sized + 'static {
    /// True if the test runs in real time. Otherwise time is paused: it advances only when
    /// everything waits, and tests take no time. In real time, processes die at fewer combinations
    /// of steps.
    const REAL_TIME: bool;

    /// Creates a fresh world; returns `None`, after printing the reason, if this machine lacks what
    /// it needs.
    async fn new() -> Option<Self>;

    /// Drives a run of the agent in this process, through [`MortalProcess::engine`], until the run
    /// ends, or until the process has [`died`](MortalProcess::died), in which case it returns
    /// `None`. A run that an earlier process drove is driven again.
    ///
    /// # Errors
    /// The error of a run that was refused or failed.
    async fn drive(&self, agent: Agent, job: &Job, process: &MortalProcess) -> Option<Result<ServedEnd>>;

    /// Waits until the run has `count` open questions at once, and returns them. A question that is
    /// asked again, because its answer was refused, is a new one.
    async fn asked(&self, run: &RunAddress, count: usize) -> Vec<Question>;

    /// Answers these questions, together.
    async fn answer(&self, run: &RunAddress, answers: Vec<(Question, Value)>);

    /// Requests the running run to pause.
    async fn pause(&self, run: &RunAddress);

    /// Waits until the run is paused and idle.
    async fn rests(&self, run: &RunAddress);

    /// Resumes the paused run.
    async fn go_on(&self, run: &RunAddress);

    /// Serves an agent in a separate process, which does not die; returns the tool that calls it.
    async fn serve(&self, agent: Agent) -> RemoteAgent;
}

/// Generates a test of each claim of the [suite](crate::testing::engines).
#[macro_export]
macro_rules! engine_conformance {
    ($World:ty) => {
        $crate::engine_claims! { $World;
            a_run_whose_process_died_at_any_step_ends_as_one_that_did_not_and_does_nothing_twice_in_silence
            every_call_and_hook_gets_its_own_sub_agents_back_at_whichever_step_the_process_died
            a_run_that_is_sent_again_when_it_is_over_asks_nobody_anything
            a_wait_that_was_begun_is_not_begun_again_by_the_next_process
            what_steps_of_earlier_attempts_used_counts_against_the_caps_of_the_run
            what_a_kept_sub_agent_used_counts_against_the_caps_of_its_caller
            an_agent_with_a_store_of_its_own_is_refused
            an_answer_that_does_not_fit_is_asked_for_again
            a_question_that_nobody_answers_in_time_has_its_default
            questions_that_are_open_at_once_are_answered_together_or_in_any_order
            an_answer_that_came_in_time_holds_however_late_the_run_goes_on
            a_paused_run_rests_until_it_is_let_go_on_and_does_nothing_again
            what_was_said_in_the_session_is_the_past_of_its_next_run
            a_call_is_one_run_elsewhere_at_whichever_step_its_process_died
            what_a_run_elsewhere_used_counts_against_the_callers_budget_however_it_ended
        }
    };
}

/// Generates a test of each claim.
#[doc(hidden)]
#[macro_export]
macro_rules! engine_claims {
    ($World:ty; $($claim:ident)*) => {$(
        #[test]
        fn $claim() {
            $crate::testing::engines::run::<$World>($crate::testing::engines::$claim::<$World>());
        }
    )*};
}

/// Runs one claim in its own runtime.
///
/// # Panics
/// If the claim does not hold, or is not decided within two minutes of real time.
pub fn run<W: EngineWorld>(claim: impl Future<Output = ()>) {
    let mut builder = match W::REAL_TIME {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().start_paused(!W::REAL_TIME).build().expect("a runtime");
    // Paused time advances only when everything waits: no claim waits for a year.
    let limit = if W::REAL_TIME { Duration::from_secs(120) } else { Duration::from_secs(365 * 24 * 3600) };
    runtime.block_on(async { tokio::time::timeout(limit, claim).await.expect("the claim hangs") });
}

/// True if a wait of `time` happened only once. In real time, a busy machine may take up to twice
/// as long.
fn is_once<W: EngineWorld>(took: Duration, time: Duration) -> bool {
    W::REAL_TIME || took < time * 2
}

/// Returns the duration of a wait, long compared to everything else.
fn nap<W: EngineWorld>() -> Duration {
    Duration::from_secs(if W::REAL_TIME { 4 } else { 60 })
}
