//! Runs of remote agents.

use std::sync::atomic::Ordering;

use agent_core::{Caps, ExitReason, RunRequest, Usage, testing::Processes};
use agent_tools::RemoteAgent;
use serde_json::json;

use super::{
    EngineWorld,
    deeds::{Script, call},
    drive::{AGENT, Death, Witness, drive, first_job, in_worlds, job, nobody, one_death},
};
use crate::{Agent, AgentBuilder};

/// Builds an agent that calls the agent `travel` once.
fn clerk(travel: RemoteAgent) -> AgentBuilder {
    let message = json!({"message": "To Bern, please."});
    Agent::builder(AGENT, Script::new([vec![("t1", "travel", message)]])).tool(travel)
}

/// Checks that a call of a remote agent is one run, whenever the process of its caller dies.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_call_is_one_run_elsewhere_at_whichever_step_its_process_died<W: EngineWorld>() {
    let calls = async |world: W, deaths: Vec<Death>| {
        let (witness, processes, books) = (Witness::default(), Processes::default(), Script::new([]));
        let travel = Agent::builder("travel", books.clone()).build().expect("builds");
        let travel = world.serve(travel).await;
        let agent = || witness.sees(clerk(travel.clone()));
        let driven = drive(&world, &processes, agent, &first_job(), &deaths, nobody).await;
        assert_eq!(driven.died, deaths.len(), "{deaths:?}");
        assert_eq!(witness.results(), ["done"], "{deaths:?}");
        assert_eq!(books.calls.load(Ordering::SeqCst), 1, "{deaths:?}");
        (driven.end, processes.steps().len())
    };
    let Some(world) = W::new().await else { return };
    let (straight, steps) = calls(world, vec![]).await;
    in_worlds(one_death(steps), async |world, deaths| assert_eq!(calls(world, deaths).await.0, straight)).await;
}

/// Checks that the usage of the remote run counts against the budget of its caller, whether the run
/// finished or failed.
///
/// # Panics
/// If the claim does not hold.
pub async fn what_a_run_elsewhere_used_counts_against_the_callers_budget_however_it_ended<W: EngineWorld>() {
    let books = Script::new([]).using(Usage::new(400, 200));
    let fails = Script::new([vec![call("n1", "nothing")]]).using(Usage::new(400, 200)).failing();
    for travel in [books, fails] {
        let Some(world) = W::new().await else { return };
        let travel = Agent::builder("travel", travel).build().expect("builds");
        let travel = world.serve(travel).await;
        let job = job(RunRequest::user("go").run_id("r").caps(Caps::default().tokens(500)));
        let agent = || clerk(travel.clone()).build().expect("builds");
        let driven = drive(&world, &Processes::default(), agent, &job, &[], nobody).await;
        assert_eq!(driven.end.reason, Ok(ExitReason::Budget), "nothing is left for the second model call");
    }
}
