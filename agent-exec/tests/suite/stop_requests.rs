//! Stopping a run: the request outlasts a question, a pause and the process.

use std::sync::Arc;

use agent_core::{
    ExitReason, MemoryJournal, Message, Middleware, ModelResponse, Result, RunCx, RunEnd, RunRequest, ToolOutput,
    ToolRequest, ToolResults, Verdict, async_trait,
    engine::Durable,
    run::checkpoint::{CallState, Phase},
    testing::{ByteEngine, MortalJournal, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::common::{finished, gives, ms, results, stopped, tool};

/// An agent whose model calls `finish`, which stops the run, and another tool in one message.
fn finishes_and(other: &'static str) -> (AgentBuilder, ScriptedModel) {
    let turns = [Turn::calls([("f", "finish", json!({})), ("o", other, json!({}))]), Turn::text("it went on")];
    let model = ScriptedModel::new(turns);
    (Agent::builder("a", model.clone()).tool(finish()), model)
}

fn finish() -> crate::common::FnTool {
    tool("finish", async |req: ToolRequest| {
        req.cx.stop("order placed");
        Ok(ToolOutput::text("placed"))
    })
}

fn placed() -> ExitReason {
    ExitReason::Stopped("order placed".to_owned())
}

#[tokio::test]
async fn a_run_that_was_stopped_ends_after_a_question() {
    let (builder, model) = finishes_and("transfer");
    let transfer = tool("transfer", async |req: ToolRequest| {
        let may: Value = req.ask("may", json!(null))?;
        Ok(ToolOutput::text(may.to_string()))
    });
    let agent = builder.tool(transfer).build().expect("builds");
    let (how, checkpoint) = stopped(agent.run("go").await);
    assert_eq!((how, checkpoint.stop.as_deref()), ("interrupted", Some("order placed")));
    let end = finished(agent.start(RunRequest::resume(checkpoint, [("o/may".to_owned(), json!(true))])).await);
    assert_eq!((end.reason, model.calls()), (placed(), 1));
}

#[tokio::test]
async fn a_run_that_is_stopped_and_paused_at_once_ends() {
    let (builder, model) = finishes_and("pausing");
    let pausing = tool("pausing", async |req: ToolRequest| {
        req.cx.pause();
        Ok(ToolOutput::text("ok"))
    });
    let end = finished(builder.tool(pausing).build().expect("builds").run("go").await);
    assert_eq!((end.reason, model.calls()), (placed(), 1));
}

/// Looks at each result and takes its time: meanwhile the journal gets what is recorded.
struct Lingers;

#[async_trait]
impl Middleware for Lingers {
    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        sleep(ms(1)).await;
        Ok(())
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        sleep(ms(1)).await;
        Ok(Verdict::Proceed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_stopped_ends_wherever_its_process_died() {
    let build = |journal: MortalJournal, turns: &[Turn]| {
        let agent =
            Agent::builder("a", ScriptedModel::new(turns.to_vec())).tool(finish()).tool(gives("o", json!("ok")));
        agent.middleware(Lingers).store(journal).build().expect("builds")
    };
    let turns = [Turn::calls([("f", "finish", json!({})), ("o", "o", json!({}))]), Turn::text("it went on")];
    let straight = MortalJournal::new(MemoryJournal::default());
    let end = finished(build(straight.clone(), &turns).start(RunRequest::user("go").session("s")).await);
    assert_eq!(end.reason, placed());
    let mut checked = 0;
    for n in 1..=straight.written() {
        let journal = MemoryJournal::default();
        let mortal = MortalJournal::new(journal.clone()).dying_at(n);
        let first = build(mortal.clone(), &turns);
        tokio::select! {
            biased;
            () = mortal.died() => {}
            end = first.start(RunRequest::user("go").session("s")) => panic!("it lived to the end: {end:?}"),
        }
        sleep(ms(1)).await;
        let heir = build(MortalJournal::new(journal.clone()), &turns[1..]);
        let Some(stands) = heir.unfinished("s").await.expect("reads") else { continue };
        let has_result = match &stands.phase {
            Phase::Tools(turn) => {
                matches!(turn.calls[0].state, CallState::Done(_)) || stands.finished.contains_key("f")
            }
            _ => stands.step == 1,
        };
        if !has_result {
            continue; // the call that stops the run may have to run again
        }
        let answers = |at: &agent_core::Checkpoint| {
            at.questions.iter().map(|asked| (asked.id.clone(), json!("unknown"))).collect::<Vec<_>>()
        };
        let mut end = heir.start(RunRequest::recover("s", answers(&stands))).await.expect("goes on");
        while let RunEnd::Interrupted(asks) = &end {
            end = heir.start(RunRequest::recover("s", answers(asks))).await.expect("goes on");
        }
        assert_eq!(finished(Ok(end)).reason, placed(), "died at {n}");
        checked += 1;
    }
    assert!(checked > 2, "the request was journalled at {checked} of the deaths");
}

#[tokio::test]
async fn a_replay_of_a_run_that_a_tool_stopped_ends_as_the_run_did() {
    let (builder, model) = finishes_and("o");
    let agent = builder.tool(gives("o", json!("ok"))).store(MemoryJournal::default()).build().expect("builds");
    let first = finished(agent.start(RunRequest::user("go").session("s")).await);
    let again = finished(agent.start(RunRequest::replay("s")).await);
    assert_eq!((first.reason, again.reason, model.calls()), (placed(), placed(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_tool_stopped_ends_when_an_engine_drives_it_again_after_a_question() {
    let (engine, turns) = (ByteEngine::default(), finishes_and("transfer").1);
    let build = || {
        let transfer = tool("transfer", async |req: ToolRequest| {
            let may: bool = req.ask("may", json!({}))?;
            Ok(ToolOutput::text(may.to_string()))
        });
        Agent::builder("a", turns.clone()).tool(finish()).tool(transfer).build().expect("builds")
    };
    let request = || {
        let attempt: Arc<dyn Durable> = Arc::new(engine.attempt().in_session(MemoryJournal::default()));
        RunRequest::user("go").session("s").run_id("r").durable(attempt)
    };
    let asked = tokio::select! {
        biased;
        end = build().start(request()) => panic!("it asks nothing: {end:?}"),
        asked = engine.asked(1) => asked,
    };
    for question in asked {
        engine.answer(question.id, json!(true));
    }
    let end = finished(build().start(request()).await);
    assert_eq!((end.reason, turns.calls()), (placed(), 1));
}

// --- steering where no step is left ---

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_last_step_is_not_lost_when_somebody_steers() {
    let model = ScriptedModel::new([Turn::text("42").delay(ms(10))]);
    let agent = Agent::builder("a", model).max_steps(1).build().expect("builds");
    let run = agent.start(RunRequest::user("6 x 7?"));
    let handle = run.handle();
    let steer = async {
        sleep(ms(5)).await;
        handle.steer(Message::user("be brief")).expect("accepted");
    };
    let end = finished(tokio::join!(run, steer).0);
    assert_eq!((end.answer.as_str(), &end.reason), ("42", &ExitReason::Text));
    let texts: Vec<_> = end.history.iter().map(Message::text).collect();
    assert_eq!(texts, ["6 x 7?", "42", "be brief"], "an accepted message is kept");
}

#[tokio::test]
async fn what_was_said_with_the_last_calls_is_the_answer_at_a_limit_though_somebody_steered_since() {
    let steers = || {
        tool("steers", async |req: ToolRequest| {
            req.cx.steer(Message::user("be brief"))?;
            Ok(ToolOutput::text("ok"))
        })
    };
    type Limit = fn(AgentBuilder) -> AgentBuilder;
    let limits: [(Limit, ExitReason); 2] = [
        (|builder| builder.max_steps(1), ExitReason::StepLimit),
        (
            |builder| builder.budget(agent_core::Budget::new(agent_core::Caps::default().model_calls(1))),
            ExitReason::Budget,
        ),
    ];
    for (limit, reason) in limits {
        let model = ScriptedModel::new([Turn::text("so far").and_call("1", "steers", json!({}))]);
        let agent = limit(Agent::builder("a", model).tool(steers())).build().expect("builds");
        let end = finished(agent.run("go").await);
        assert_eq!((end.answer.as_str(), end.reason), ("so far", reason));
        assert_eq!(end.history.iter().next_back().map(Message::text).as_deref(), Some("be brief"));
    }
}

/// Says something more after each answer of the model.
struct Nags;

#[async_trait]
impl Middleware for Nags {
    async fn after_model(&self, cx: &RunCx, _: &mut ModelResponse) -> Result<()> {
        cx.steer(Message::user("be brief"))
    }
}

#[tokio::test]
async fn a_caller_is_told_what_its_sub_agent_said_at_its_last_step() {
    let helper = Agent::builder("helper", ScriptedModel::new([Turn::text("42")])).max_steps(1).middleware(Nags);
    let boss = ScriptedModel::new([
        Turn::call("d", "delegate", json!({"agent": "helper", "message": "6 x 7?"})),
        Turn::text("done"),
    ]);
    let delegation = Delegation::new().to("helper", "Calculates.", helper.build().expect("builds"));
    let end = finished(Agent::builder("boss", boss).middleware(delegation).build().expect("builds").run("go").await);
    assert!(results(&end.history)[0].1.contains("42"), "{:?}", results(&end.history));
}
