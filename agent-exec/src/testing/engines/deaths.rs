//! A run that uses every feature, whose process dies at any of its steps.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Error, Finished, Message, Middleware, Result, Retry, RunCx, SubAgent, ToolBatch, ToolOutput, ToolRequest,
    ToolResults, Verdict, async_trait, middleware::ToolNext, run::new_id, testing::Processes,
};
use serde_json::json;

use super::{
    EngineWorld,
    deeds::{COUNT, Deeds, Does, STEERS, Script, call},
    drive::{AGENT, Death, Driven, Witness, drive, first_job, in_worlds},
    nap,
};
use crate::{Agent, AgentBuilder};

/// Decides in every hook, steers the run once, retries a call that failed with a temporary error,
/// and has a sub-agent.
struct House(Agent);

#[async_trait]
impl Middleware for House {
    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::new("helper", "Helps.", self.0.clone())]
    }

    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        cx.decide("begin", async { Ok(json!(new_id())) }).await.map(drop)
    }

    async fn before_tools(&self, cx: &RunCx, _: &mut ToolBatch) -> Result<()> {
        let drawn = cx.decide("draw", async { Ok(json!(new_id())) }).await?;
        assert!(drawn.is_string());
        Ok(())
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        if cx.step() == 1 {
            cx.steer(Message::user(STEERS))?;
        }
        Ok(Verdict::Proceed)
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        match next.run(req.clone()).await {
            Err(e) if matches!(e.retry(), Retry::Temporary(_)) => next.run(req).await,
            answered => answered,
        }
    }
}

/// State that outlives the processes of a run.
#[derive(Default)]
struct Scene {
    processes: Processes,
    deeds: Deeds,
    model_calls: Arc<AtomicU32>,
    unsteady: Arc<AtomicU32>,
    witness: Witness,
}

impl Scene {
    /// Builds the tree of agents anew, as each process does.
    fn agent(&self, sleeps: Duration) -> Agent {
        let deeds = |prefix: [&'static str; 4]| {
            let [pure, again, looks, once] = prefix;
            vec![call(pure, "pure"), call(again, "again"), call(looks, "looks"), call(once, "once")]
        };
        let helps = Script::new([deeds(["h1", "h2", "h3", "h4"])]).counting(&self.model_calls);
        let tools = self.deeds.tools();
        let helper = tools.into_iter().fold(Agent::builder("helper", helps), AgentBuilder::tool);
        let helper = helper.build().expect("builds");

        let mut first = deeds(["b1", "b2", "b3", "b4"]);
        first.push(call("d1", "delegate"));
        let then = vec![call("s1", "slow"), call("u1", "unsteady"), call("b1", "once")];
        let agent = Agent::builder(AGENT, Script::new([first, then]).counting(&self.model_calls));
        let agent = self.deeds.tools().into_iter().fold(agent, AgentBuilder::tool);
        let agent = agent.tool(Does::delegating()).tool(slow(sleeps)).tool(unsteady(&self.unsteady));
        self.witness.sees(agent.middleware(House(helper)))
    }

    /// Drives the run in processes that die at these steps, and then in one that survives.
    async fn run<W: EngineWorld>(&self, world: &W, deaths: &[Death]) -> Driven {
        let answer = |question: &_, _| Some(self.deeds.answer(question));
        let agent = || self.agent(nap::<W>() / 20);
        drive(world, &self.processes, agent, &first_job(), deaths, answer).await
    }
}

/// A tool that asks, decides and sleeps before it acts.
fn slow(sleeps: Duration) -> Does {
    Does::new("slow", move |req| async move {
        let may: bool = req.ask("may", json!("May I?"))?;
        let drawn = req.decide("drawn", async { Ok(json!(7)) }).await?;
        req.cx.sleep(&req.call.id, sleeps).await?;
        Ok(ToolOutput::text(format!("{may} {drawn}")))
    })
}

/// A tool whose first attempt fails with a temporary error.
fn unsteady(tries: &Arc<AtomicU32>) -> Does {
    let tries = tries.clone();
    Does::new("unsteady", move |_| {
        let is_first = tries.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match is_first {
                true => Err(Error::tool("not now").with_retry(Retry::Temporary(None))),
                false => Ok(ToolOutput::text("steady")),
            }
        }
    })
}

/// Returns everything about the end that must not depend on the number of deaths, one item per
/// line.
fn told(end: &Finished) -> Vec<String> {
    let Finished { answer, reason, history, steps, usage, tree_usage, tool_calls, state, .. } = end;
    let messages = history.iter().map(|message| json!(message).to_string());
    let counts = json!([answer, reason, steps, usage, tree_usage, tool_calls, state]);
    messages.chain(counts.as_array().into_iter().flatten().map(ToString::to_string)).collect()
}

/// Compares both ends, and reports the lines that only one of them has.
fn assert_same(one: &Finished, two: &Finished, deaths: &[Death]) {
    let (one, two) = (told(one), told(two));
    let only =
        |of: &[String], not: &[String]| of.iter().filter(|line| !not.contains(line)).cloned().collect::<Vec<_>>();
    assert!(one == two, "{deaths:?}: {:#?} became {:#?}", only(&two, &one), only(&one, &two));
}

/// Returns deaths of one process at each of `steps` steps and of another one after it: every
/// combination, or one per step in real time.
fn deaths<W: EngineWorld>(steps: usize) -> impl Iterator<Item = Vec<Death>> {
    let again = [None, Some((1, false)), Some((2, false)), Some((3, true)), Some((7, false))];
    let first = (1..=steps as u64).flat_map(|step| [(step, false), (step, true)]);
    first.enumerate().flat_map(move |(n, first)| {
        let again = again.into_iter().enumerate();
        let again = again.filter(move |(at, _)| !W::REAL_TIME || at % 5 == n % 5);
        again.map(move |(_, again)| Some(first).into_iter().chain(again).collect())
    })
}

/// Checks that a run ends the same at whichever step its process dies: with the same history, usage
/// and counts. Pure and idempotent calls are repeated; for a call whose effect must not be repeated
/// blindly, the tool or a person is asked, once for each call in doubt.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_run_whose_process_died_at_any_step_ends_as_one_that_did_not_and_does_nothing_twice_in_silence<
    W: EngineWorld,
>() {
    let Some(world) = W::new().await else { return };
    let straight = Scene::default();
    straight.run(&world, &[]).await;
    let (end, steps) = (straight.witness.finished(), straight.processes.steps());
    assert!(steps.len() > 25, "{steps:?}");
    assert_eq!(straight.witness.counted(&COUNT), 9, "four calls of each agent, and one more");
    assert_eq!((end.answer.as_str(), end.steps), ("done", 3));
    let (straight, end) = (&straight, &end);
    in_worlds(deaths::<W>(steps.len()), async |world: W, deaths| {
        let scene = Scene::default();
        let Driven { asked, died, .. } = scene.run(&world, &deaths).await;
        assert!(died > 0, "{deaths:?}");
        assert_same(&scene.witness.finished(), end, &deaths);
        assert_eq!(scene.deeds.outside.doubled(), [""; 0], "{deaths:?}");
        assert_eq!(scene.deeds.outside.deeds(), straight.deeds.outside.deeds(), "{deaths:?}");
        let counted = scene.witness.counted(&COUNT) + scene.deeds.cut_off();
        assert_eq!(counted, straight.witness.counted(&COUNT), "{deaths:?}");
        assert!(asked.values().all(|times| *times == 1), "{deaths:?}: {asked:?}");
    })
    .await;
}

/// Checks that a completed run that is submitted again ends as before: no model is called, and no
/// tool runs.
///
/// # Panics
/// If the claim does not hold.
pub async fn a_run_that_is_sent_again_when_it_is_over_asks_nobody_anything<W: EngineWorld>() {
    let Some(world) = W::new().await else { return };
    let scene = Scene::default();
    let first = scene.run(&world, &[]).await;
    let (end, asked) = (scene.witness.finished(), scene.model_calls.load(Ordering::SeqCst));
    let second = scene.run(&world, &[]).await;
    assert_eq!(second.end, first.end);
    assert!(second.asked.is_empty(), "{:?}", second.asked);
    assert_same(&scene.witness.finished(), &end, &[]);
    assert_eq!(scene.model_calls.load(Ordering::SeqCst), asked, "no model was called");
}
