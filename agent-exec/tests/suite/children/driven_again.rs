//! Runs that an engine executes again, which takes its time to store a result.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Budget, Caps, Finished, MemoryJournal, Middleware, Result, RunCx, RunRequest, ToolOutput, ToolRequest, async_trait,
    engine::Durable,
    testing::{ByteEngine, SlowEngine},
};
use agent_exec::Agent;
use agent_middleware::Delegation;
use serde_json::json;

use super::*;

/// Drives run `r` until it asks; the process leaves then, as with every engine that lets go of a run that waits.
/// Somebody answers, and another process drives it to its end.
async fn drive(agent: impl Fn() -> Agent, engine: &ByteEngine, waits: bool) -> Finished {
    let request = || {
        let attempt: Arc<dyn Durable> = Arc::new(engine.attempt().in_session(MemoryJournal::default()));
        let attempt = if waits { Arc::new(SlowEngine::new(attempt)) } else { attempt };
        RunRequest::user("go").session("s").run_id("r").durable(attempt)
    };
    let asked = tokio::select! {
        biased;
        end = agent().start(request()) => panic!("it asks nothing: {end:?}"),
        asked = engine.asked(1) => asked,
    };
    for question in asked {
        engine.answer(question.id, json!(true));
    }
    let driven = tokio::time::timeout(Duration::from_secs(600), agent().start(request())).await;
    finished(driven.expect("it does not hang"))
}

/// A boss that has two tasks done by the same agent in one message, and then asks a person.
fn two_at_once(shop: &Shop, model: &Thinks) -> Agent {
    let delegate = |id, task| (id, "delegate", json!({"agent": "researcher", "message": task}));
    let boss = thinks(move |seen| match seen.results.len() {
        0 => calls([delegate("d1", "one"), delegate("d2", "two")]),
        2 => call("a1", "ask"),
        _ => "done".into(),
    });
    let delegation = Delegation::new().to("researcher", "Finds out.", researcher_with(shop, model));
    Agent::builder("boss", boss).middleware(delegation).tool(asks("ask")).build().expect("builds")
}

fn two_are_right(end: &Finished, shop: &Shop, model: &Thinks) -> Option<String> {
    let mut calls = model.calls.lock().expect("free").clone();
    calls.sort();
    let right = not_as(end, shop, &["found one", "found two", "true"], &["one", "two"]);
    right
        .or((calls != ["one", "one", "two", "two"])
            .then(|| format!("the models of the sub-agents were called: {calls:?}")))
}

#[tokio::test(start_paused = true)]
async fn two_calls_of_one_message_to_one_sub_agent_have_their_own_runs_when_the_run_is_driven_again() {
    let (shop, model, engine) = (Shop::default(), paying(|_| false), ByteEngine::default());
    let end = drive(|| two_at_once(&shop, &model), &engine, true).await;
    let steps: Vec<_> = engine.names().into_iter().filter(|name| name.contains("child/")).collect();
    assert_eq!(two_are_right(&end, &shop, &model), None, "steps: {steps:?}");
}

#[tokio::test(start_paused = true)]
async fn with_an_engine_that_keeps_at_once_each_call_has_its_own_run() {
    let (shop, model, engine) = (Shop::default(), paying(|_| false), ByteEngine::default());
    let end = drive(|| two_at_once(&shop, &model), &engine, false).await;
    assert_eq!(two_are_right(&end, &shop, &model), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_calls_a_sub_agent_twice_gets_the_right_ones_back_when_the_run_is_driven_again() {
    for waits in [false, true] {
        let (shop, model, engine) = (Shop::default(), paying(|_| false), ByteEngine::default());
        let build = || {
            let survey = tool("survey", |req: ToolRequest| async move {
                let one = req.call_sub_agent("researcher", "one").await?.answer;
                let two = req.call_sub_agent("researcher", "two").await?.answer;
                Ok(ToolOutput::text(format!("{one}; {two}")))
            });
            let agent =
                Agent::builder("boss", calls_in_turn(["survey", "ask"])).tool(survey.delegates()).tool(asks("ask"));
            agent.sub_agent("researcher", "Finds out.", researcher_with(&shop, &model)).build().expect("builds")
        };
        let end = drive(build, &engine, waits).await;
        assert_eq!(not_as(&end, &shop, &["found one; found two", "true"], &["one", "two"]), None, "waits: {waits}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_at_once_of_one_tool_to_one_sub_agent_have_their_own_runs_when_the_run_is_driven_again() {
    let (shop, model, engine) = (Shop::default(), paying(|_| false), ByteEngine::default());
    let build = || {
        let survey = tool("survey", |req: ToolRequest| async move {
            let (one, two) =
                futures::join!(req.call_sub_agent("researcher", "one"), req.call_sub_agent("researcher", "two"));
            Ok(ToolOutput::text(format!("{}; {}", one?.answer, two?.answer)))
        });
        let agent = Agent::builder("boss", calls_in_turn(["survey", "ask"])).tool(survey.delegates()).tool(asks("ask"));
        agent.sub_agent("researcher", "Finds out.", researcher_with(&shop, &model)).build().expect("builds")
    };
    let end = drive(build, &engine, true).await;
    assert_eq!(not_as(&end, &shop, &["found one; found two", "true"], &["one", "two"]), None);
}

/// Rates each result, by a throw of a die that counts itself.
struct Rates(Arc<AtomicU32>);

#[async_trait]
impl Middleware for Rates {
    async fn after_tool(&self, cx: &RunCx, _: &ToolRequest, output: &mut ToolOutput) -> Result<()> {
        let thrown = self.0.clone();
        let throws = async move {
            tokio::time::sleep(ms(5)).await;
            Ok(json!(thrown.fetch_add(1, Ordering::SeqCst)))
        };
        let rating = cx.decide("rating", throws).await?;
        *output = ToolOutput::text(rating.to_string());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn decisions_of_hooks_side_by_side_are_made_once_when_the_run_is_driven_again() {
    let (engine, thrown) = (ByteEngine::default(), Arc::new(AtomicU32::new(0)));
    let build = || {
        let model = thinks(|seen| match seen.results.len() {
            0 => calls([("l1", "look", json!({})), ("l2", "look", json!({}))]),
            2 => call("a1", "ask"),
            _ => "done".into(),
        });
        let agent = Agent::builder("boss", model).tool(gives("look", "looked")).tool(asks("ask"));
        agent.middleware(Rates(thrown.clone())).build().expect("builds")
    };
    let mut rated = told(&drive(build, &engine, true).await.history);
    rated.sort();
    assert_eq!((rated, thrown.load(Ordering::SeqCst)), (vec!["0".to_owned(), "1".to_owned(), "2".to_owned()], 3));
}

#[tokio::test(start_paused = true)]
async fn a_kept_tool_call_counts_once_in_the_budget_however_often_the_run_is_driven() {
    let (engine, caps) = (ByteEngine::default(), Caps::default().tool_calls(100).model_calls(100));
    let budget = Budget::builder().caps(caps).build().expect("builds"); // in a ledger, as all that outlives a run
    let build = || {
        let agent =
            Agent::builder("boss", calls_in_turn(["look", "ask"])).tool(gives("look", "looked")).tool(asks("ask"));
        agent.budget(budget.clone()).build().expect("builds")
    };
    let end = drive(build, &engine, true).await;
    let settled = budget.balance().await.expect("in memory").settled;
    assert_eq!((end.answer.as_str(), settled.model_calls), ("done", 3));
    assert!(settled.tool_calls <= 3, "`look` ran once, `ask` at most twice, and {} were counted", settled.tool_calls);
}
