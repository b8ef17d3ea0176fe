//! What every engine must do, as tests: whatever becomes of the processes that drive its runs, and on whichever engine, a run ends as one
//! that nothing happened to.
//!
//! [`engine_conformance!`](crate::engine_conformance) makes one test of each claim. It takes an [`EngineWorld`], which knows how a run of an
//! agent is driven by the engine, in a process that may die, and how somebody outside answers, pauses and lets go on. The suite brings the
//! agents, decides when processes die, and reads how runs ended.
//!
//! Not here is what no engine sees: requests that cannot be driven again at all (without a run id, from a checkpoint) are refused by the
//! executor, before any engine is asked.

mod deaths;
mod deeds;
mod drive;
mod questions;
mod runs;
mod served;
mod sessions;
mod waits;

use std::time::Duration;

use agent_core::{
    Question, Result, async_trait,
    dispatch::{Job, RunAddress},
    engine::ServedEnd,
    testing::MortalProcess,
};
use agent_tools::ServedAgent;
use serde_json::Value;

pub use self::{deaths::*, questions::*, runs::*, served::*, sessions::*, waits::*};
use crate::Agent;

/// A world with an engine. It outlives the processes that drive its runs; of each of these, nothing is left when it is dead.
#[async_trait]
pub trait EngineWorld: Send + Sync + Sized + 'static {
    /// True if time passes by the clock. Otherwise it is paused: it passes when nothing else goes on, and a test of it takes none. By the clock, processes
    /// die at fewer combinations of steps.
    const REAL_TIME: bool;

    /// A fresh world; none if what it needs is not on this machine, which it says then.
    async fn new() -> Option<Self>;

    /// Drives a run of the agent in this process, through [`MortalProcess::engine`], until the run is over; or until the process has
    /// [`died`](MortalProcess::died), which gives none. One that an earlier process drove is driven again.
    ///
    /// # Errors
    /// Those of a run that was refused or failed.
    async fn drive(&self, agent: Agent, job: &Job, process: &MortalProcess) -> Option<Result<ServedEnd>>;

    /// Waits until the run waits with so many questions at once that nobody answered: these. One that is asked again, since the answer did not do, is another
    /// one.
    async fn asked(&self, run: &RunAddress, count: usize) -> Vec<Question>;

    /// Answers these questions, together.
    async fn answer(&self, run: &RunAddress, answers: Vec<(Question, Value)>);

    /// Tells the run, which is under way, to pause.
    async fn pause(&self, run: &RunAddress);

    /// Waits until the run is paused, and nothing of it goes on.
    async fn rests(&self, run: &RunAddress);

    /// Lets the run go on that is paused.
    async fn go_on(&self, run: &RunAddress);

    /// Serves an agent in a process of its own, which does not die: the tool that calls it.
    async fn serve(&self, agent: Agent) -> ServedAgent;
}

/// Makes a test of each claim of the [suite](crate::testing::engines).
#[macro_export]
macro_rules! engine_conformance {
    ($World:ty) => {
        $crate::engine_claims! { $World;
            a_run_whose_process_died_at_any_step_ends_as_one_that_did_not_and_does_nothing_twice_in_silence
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

/// A test of each claim.
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

/// Runs one claim, in a runtime of its own.
///
/// # Panics
/// If the claim does not hold, or is not decided within two minutes of real time.
pub fn run<W: EngineWorld>(claim: impl Future<Output = ()>) {
    let mut builder = match W::REAL_TIME {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().start_paused(!W::REAL_TIME).build().expect("a runtime");
    // Time that is paused passes only when everything waits: no claim waits for a year.
    let limit = if W::REAL_TIME { Duration::from_secs(120) } else { Duration::from_secs(365 * 24 * 3600) };
    runtime.block_on(async { tokio::time::timeout(limit, claim).await.expect("the claim hangs") });
}

/// True if something that takes `time` was waited for once. In real time a machine that is busy may take as long again.
fn is_once<W: EngineWorld>(took: Duration, time: Duration) -> bool {
    W::REAL_TIME || took < time * 2
}

/// How long a wait takes: long beside everything that is no wait.
fn nap<W: EngineWorld>() -> Duration {
    Duration::from_secs(if W::REAL_TIME { 4 } else { 60 })
}
