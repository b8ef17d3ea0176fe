//! Runs that wait: for a duration, or for a resume after a pause.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use agent_core::{ToolOutput, testing::Processes};
use tokio::{sync::Notify, time::Instant};

use super::{
    EngineWorld,
    deeds::{Does, Script, call},
    drive::{AGENT, drive, first_job, in_worlds, nobody, one_death},
    is_once, nap,
};
use crate::{Agent, AgentBuilder};

/// Builds an agent that calls this tool once and then ends.
fn calls_once(tool: Does) -> AgentBuilder {
    Agent::builder(AGENT, Script::new([vec![call("c1", "act")]])).tool(tool)
}

/// Checks that a run waits only for the remaining time whenever its process died, even in the
/// middle of the wait.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_wait_that_was_begun_is_not_begun_again_by_the_next_process<W: EngineWorld>() {
    let sleeps_once = async |world: W, deaths: Vec<_>| {
        let (processes, began) = (Processes::default(), Arc::<OnceLock<Instant>>::default());
        let agent = || {
            let began = began.clone();
            let sleeps = Does::new("act", move |req| {
                began.get_or_init(Instant::now); // in the first process that gets here
                async move {
                    req.cx.sleep("a while", nap::<W>()).await?;
                    Ok(ToolOutput::text("slept"))
                }
            });
            calls_once(sleeps).build().expect("builds")
        };
        let driven = drive(&world, &processes, agent, &first_job(), &deaths, nobody).await;
        assert_eq!(driven.died, deaths.len(), "{deaths:?}");
        let took = began.get().expect("it was called").elapsed();
        assert!(nap::<W>() <= took && is_once::<W>(took, nap::<W>()), "it is slept once: {took:?} with {deaths:?}");
        processes.steps()
    };
    let Some(world) = W::new().await else { return };
    let steps = sleeps_once(world, vec![]).await;
    assert!(steps.iter().any(|name| name.contains("/sleep/")), "{steps:?}");
    in_worlds(one_death(steps.len()), async |world, deaths| _ = sleeps_once(world, deaths).await).await;
}

/// A call that blocks until the run was requested to pause.
#[derive(Clone, Default)]
struct Stay(Arc<Staying>);

#[derive(Default)]
struct Staying {
    entered: Notify,
    may_leave: Notify,
    left: AtomicBool,
    /// The completed calls.
    done: Mutex<Vec<Arc<str>>>,
}

impl Stay {
    fn tool(&self) -> Does {
        let stay = self.0.clone();
        Does::new("stay", move |req| {
            let stay = stay.clone();
            async move {
                if !stay.left.load(Ordering::SeqCst) {
                    stay.entered.notify_one();
                    stay.may_leave.notified().await;
                    stay.left.store(true, Ordering::SeqCst);
                }
                stay.done.lock().unwrap_or_else(PoisonError::into_inner).push(req.call.id.clone());
                Ok(ToolOutput::text("done"))
            }
        })
    }

    fn agent(&self) -> Agent {
        let agent = Agent::builder(AGENT, Script::new([vec![call("c1", "stay")], vec![call("c2", "stay")]]));
        agent.tool(self.tool()).build().expect("builds")
    }

    fn done(&self) -> Vec<Arc<str>> {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Pauses the run during its first call, and resumes it once it is paused. Returns the number
    /// of steps at that point.
    async fn pauses<W: EngineWorld>(&self, world: &W, processes: &Processes) -> usize {
        let at = first_job().at;
        self.0.entered.notified().await;
        world.pause(&at).await;
        self.0.may_leave.notify_one();
        world.rests(&at).await;
        let steps = processes.steps().len();
        assert_eq!(self.done(), ["c1".into()], "it rests after the call under way");
        world.go_on(&at).await;
        steps
    }
}

/// Checks that a run that was requested to pause stops before its next step. Once resumed, it
/// completes the remaining steps and does not pause again, whether its process dies then or not.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_paused_run_rests_until_it_is_let_go_on_and_does_nothing_again<W: EngineWorld>() {
    let pause_and_die = async |world: W, deaths: Vec<_>| {
        let (stay, processes) = (Stay::default(), Processes::default());
        let agent = || stay.agent();
        let job = first_job();
        let run = drive(&world, &processes, agent, &job, &deaths, nobody);
        let (driven, steps) = futures::join!(run, stay.pauses(&world, &processes));
        assert_eq!((driven.end.answer.as_str(), driven.died), ("done", deaths.len()), "{deaths:?}");
        // The second call is repeated if the process dies before it is recorded.
        let (first, second) = (stay.done()[0].clone(), stay.done()[1..].to_vec());
        assert!(&*first == "c1" && !second.is_empty() && second.iter().all(|id| **id == *"c2"), "{:?}", stay.done());
        steps as u64
    };
    let Some(world) = W::new().await else { return };
    let before = pause_and_die(world, vec![]).await;
    let deaths = [(1, true), (2, false), (2, true), (3, false)].map(|(step, keeps)| vec![(before + step, keeps)]);
    in_worlds(deaths, async |world, deaths| _ = pause_and_die(world, deaths).await).await;
}
