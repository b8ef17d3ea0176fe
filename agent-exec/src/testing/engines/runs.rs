//! Caps of a run, and agents that an engine refuses.

use std::sync::{Arc, atomic::AtomicU32};

use agent_core::{
    Caps, ErrorKind, ExitReason, MemoryJournal, Middleware, RunRequest, SubAgent, ToolOutput, async_trait,
    testing::Processes,
};

use super::{
    EngineWorld,
    deeds::{Does, Script, call},
    drive::{AGENT, drive, first_job, in_worlds, job, nobody, one_death},
};
use crate::Agent;

/// Checks that the caps end a run whose process dies at any step.
async fn its_caps_end_it<W: EngineWorld>(caps: Caps, agent: impl Fn() -> Agent) {
    let job = job(RunRequest::user("go").run_id("r").caps(caps));
    let Some(world) = W::new().await else { return };
    let straight = Processes::default();
    let driven = drive(&world, &straight, &agent, &job, &[], nobody).await;
    assert_eq!(driven.end.reason, Ok(ExitReason::Budget));
    let (agent, job) = (&agent, &job);
    in_worlds(one_death(straight.steps().len()), async |world: W, deaths| {
        let driven = drive(&world, &Processes::default(), agent, job, &deaths, nobody).await;
        assert_eq!(driven.end.reason, Ok(ExitReason::Budget), "{deaths:?}");
        assert_eq!(driven.died, 1, "{deaths:?}");
    })
    .await;
}

/// Checks that the usage of steps from an earlier process counts against the caps of the resumed
/// run.
///
/// # Panics
/// If the claim does not hold.
pub async fn what_steps_of_earlier_attempts_used_counts_against_the_caps_of_the_run<W: EngineWorld>() {
    its_caps_end_it::<W>(Caps::default().model_calls(1), || {
        let noop = Does::new("noop", |_| async { Ok(ToolOutput::text("ok")) });
        Agent::builder(AGENT, Script::new([vec![call("c1", "noop")]])).tool(noop).build().expect("builds")
    })
    .await;
}

/// A middleware with a sub-agent.
struct Helped(Agent);

#[async_trait]
impl Middleware for Helped {
    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::new("helper", "Helps.", self.0.clone())]
    }
}

/// Checks that the usage of a sub-agent that ended in an earlier process counts against the caps of
/// its parent run.
///
/// # Panics
/// If the claim does not hold.
pub async fn what_a_kept_sub_agent_used_counts_against_the_caps_of_its_caller<W: EngineWorld>() {
    its_caps_end_it::<W>(Caps::default().model_calls(2), || {
        let helper = Agent::builder("helper", Script::new([])).build().expect("builds");
        let boss = Agent::builder(AGENT, Script::new([vec![call("d1", "delegate")]]));
        boss.tool(Does::delegating()).middleware(Helped(helper)).build().expect("builds")
    })
    .await;
}

/// Checks that an agent with its own store is refused: its runs would be stored twice.
///
/// # Panics
/// If the claim does not hold.
pub async fn an_agent_with_a_store_of_its_own_is_refused<W: EngineWorld>() {
    let Some(world) = W::new().await else { return };
    let calls = Arc::<AtomicU32>::default();
    let agent = Agent::builder(AGENT, Script::new([]).counting(&calls)).store(MemoryJournal::default());
    let agent = agent.build().expect("builds");
    let driven = world.drive(agent, &first_job(), &Processes::default().lasting()).await;
    let refused = driven.expect("it does not die").expect_err("it is refused");
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
    assert!(refused.message().contains("store"), "{refused}");
    assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 0, "no model was called");
}
