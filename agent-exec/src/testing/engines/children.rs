//! Sub-agents that tools and hooks start in code, several of them for one call, whose process dies
//! at any step.

use agent_core::{
    Effect, Flow, Middleware, ModelRequest, ModelResponse, Result, RunCx, ToolOutput, ToolRequest, ToolResults,
    Verdict, async_trait, testing::Processes,
};
use futures::future::try_join;
use serde_json::json;

use super::{
    EngineWorld,
    deeds::{Deeds, Does, Script, call},
    drive::{AGENT, Driven, Witness, drive, first_job, in_worlds, one_death},
};
use crate::{Agent, AgentBuilder};

/// Hooks that start sub-agents, decide and sleep: once in a run, once in a step, and around each
/// call.
struct Consults;

#[async_trait]
impl Middleware for Consults {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        cx.call_sub_agent("helper", "for the run").await.map(drop)
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        if cx.step() == 1 {
            cx.call_sub_agent("helper", "for the step").await?;
        }
        Ok(Flow::Continue)
    }

    async fn before_tool(&self, cx: &RunCx, req: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        if &*req.call.name == "order" {
            req.call_sub_agent("helper", format!("before {}", req.call.id)).await?;
        }
        cx.decide("seen", async { Ok(json!(*req.call.id)) }).await?;
        Ok(Flow::Continue)
    }

    async fn after_tool(&self, cx: &RunCx, req: &ToolRequest, output: &mut ToolOutput) -> Result<()> {
        let seen = cx.decide("seen", async { Ok(json!(*req.call.id)) }).await?;
        assert_eq!(seen, *req.call.id, "the decision of another call");
        if &*req.call.name == "order" {
            let checked = cx.call_sub_agent("helper", format!("after {}", req.call.id)).await?;
            *output = ToolOutput::text(format!("{}; {}", output.to_text(), checked.answer));
        }
        Ok(())
    }

    async fn after_tools(&self, cx: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        cx.call_sub_agent("other", "after all").await?;
        Ok(Verdict::Proceed)
    }
}

/// A tool that starts sub-agents one after the other, of one key and of another, and two at once.
fn survey() -> Does {
    let survey = Does::new("survey", |req| async move {
        let one = req.call_sub_agent("helper", "one").await?.answer;
        let two = req.call_sub_agent("helper", "two").await?.answer;
        let three = req.call_sub_agent("other", "three").await?.answer;
        let (four, five) = try_join(req.call_sub_agent("helper", "four"), req.call_sub_agent("helper", "five")).await?;
        Ok(ToolOutput::text([one, two, three, four.answer, five.answer].join(", ")))
    });
    survey.delegates()
}

/// A tool with an effect of its own behind a sub-agent.
fn order(deeds: &Deeds) -> Does {
    let deeds = deeds.clone();
    Does::new("order", move |req| {
        let deeds = deeds.clone();
        async move {
            let checked = req.call_sub_agent("helper", "the order").await?.answer;
            let output = ToolOutput::text(checked);
            deeds.outside.happened(&req.idempotency_key(), Effect::AtMostOnce, &output);
            Ok(output)
        }
    })
    .at_most_once()
}

/// State that outlives the processes of a run.
#[derive(Default)]
struct Office {
    processes: Processes,
    deeds: Deeds,
    witness: Witness,
}

impl Office {
    fn agent(&self) -> Agent {
        let helper = |name, asks: bool| {
            let steps = match asks {
                true => vec![vec![call("q", "ask")], vec![call("h", "once")]],
                false => vec![vec![call("h", "once")]],
            };
            let tools = self.deeds.tools().into_iter();
            let agent = tools.fold(Agent::builder(name, Script::new(steps).naming_its_task()), AgentBuilder::tool);
            let asks = Does::new("ask", |req| async move {
                let may: bool = req.ask("may", json!("May I?"))?;
                Ok(ToolOutput::text(may.to_string()))
            });
            agent.tool(asks).build().expect("builds")
        };
        let script = Script::new([vec![call("s1", "survey"), call("o1", "order"), call("o2", "order")]]);
        let agent = Agent::builder(AGENT, script).tool(survey()).tool(order(&self.deeds)).middleware(Consults);
        let agent = agent.sub_agent("helper", "Helps.", helper("helper", false));
        self.witness.sees(agent.sub_agent("other", "Asks first.", helper("other", true)))
    }

    async fn run<W: EngineWorld>(&self, world: &W, deaths: &[(u64, bool)]) -> Driven {
        let answer = |question: &_, _| Some(self.deeds.answer(question));
        drive(world, &self.processes, || self.agent(), &first_job(), deaths, answer).await
    }
}

/// Checks that each call and each hook gets back the sub-agents that it started, at whichever step
/// the process died: every sub-agent acts once, and nobody gets the answer of another one's.
///
/// # Panics
/// If the claim does not hold.
pub async fn every_call_and_hook_gets_its_own_sub_agents_back_at_whichever_step_the_process_died<W: EngineWorld>() {
    let Some(world) = W::new().await else { return };
    let straight = Office::default();
    let asked = straight.run(&world, &[]).await.asked;
    let (results, steps) = (straight.witness.results(), straight.processes.steps());
    assert!(asked.len() >= 2, "a tool's and a hook's sub-agent ask: {asked:?}");
    let (straight, results) = (&straight, &results);
    let every = if W::REAL_TIME { 13 } else { 5 };
    let deaths = one_death(steps.len()).enumerate().filter(|(n, _)| n % every == 0);
    in_worlds(deaths.map(|(_, deaths)| deaths), async |world: W, deaths| {
        let office = Office::default();
        let Driven { asked, died, .. } = office.run(&world, &deaths).await;
        assert!(died > 0, "{deaths:?}");
        assert_eq!(office.witness.results(), *results, "{deaths:?}");
        assert_eq!(office.deeds.outside.doubled(), [""; 0], "{deaths:?}");
        assert_eq!(office.deeds.outside.deeds(), straight.deeds.outside.deeds(), "{deaths:?}");
        assert!(asked.values().all(|times| *times == 1), "{deaths:?}: {asked:?}");
    })
    .await;
}
