//! Data that middlewares keep and edit: their state keys, outputs of tools, and the attempt at a run.

use agent_core::{
    Caps, Error, Flow, Journal, MemoryJournal, Message, Middleware, ModelRequest, ModelResponse, Result, RunCx,
    RunRequest, StateField, StateSchema, SubAgent, ToolOutput, ToolRequest, async_trait,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::Delegation;
use serde_json::{Value, json};

use crate::common::{Log, Watch, finished, gives, hooks, results, stopped, tool};

/// Counts the steps of each run, under a state key of its own.
struct CountSteps;

#[async_trait]
impl Middleware for CountSteps {
    fn name(&self) -> &str {
        "count_steps"
    }

    fn state(&self) -> StateSchema {
        StateSchema::default().key("steps_seen", StateField::of::<u32>())
    }

    async fn before_model(&self, cx: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        cx.state().set_value("steps_seen", cx.step().into(), None)?;
        Ok(Flow::Continue)
    }
}

fn says(name: &str, text: &str) -> AgentBuilder {
    Agent::builder(name, ScriptedModel::new([Turn::text(text)]))
}

#[tokio::test]
async fn a_middleware_brings_its_state_keys_beside_those_of_the_agent() {
    let own = || StateSchema::default().key("goal", StateField::of::<String>());
    let more = StateSchema::default().key("limit", StateField::of::<u32>());
    let agent = says("a", "done").state(own()).state(more).middleware(CountSteps).build().expect("builds");
    let request = RunRequest::user("go").state("goal", "rest").state("limit", 3);
    let end = finished(agent.start(request).await);
    let kept: Vec<_> = end.state.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    assert_eq!(kept, [("goal", json!("rest")), ("limit", json!(3)), ("steps_seen", json!(1))]);
}

#[tokio::test]
async fn a_descendant_has_the_state_keys_of_the_middlewares_that_it_inherits() {
    let boss = ScriptedModel::new([
        Turn::call("d", "delegate", json!({"agent": "helper", "message": "help"})),
        Turn::text("done"),
    ]);
    let delegation = Delegation::new().to("helper", "Helps.", says("helper", "42").build().expect("builds"));
    let agent = Agent::builder("boss", boss).middleware_for_all(CountSteps).middleware(delegation);
    let end = finished(agent.build().expect("builds").run("go").await);
    assert_eq!((end.state["steps_seen"].clone(), results(&end.history)[0].2), (json!(2), false));
}

#[test]
fn a_state_key_that_two_declare_is_refused_with_who_declares_it() {
    let own = StateSchema::default().key("steps_seen", StateField::of::<u32>());
    let e = says("a", "").state(own).middleware(CountSteps).build().expect_err("declared twice");
    assert!(e.message().contains("state key 'steps_seen' is declared twice"), "{e}");
    assert_eq!(e.context("middleware"), Some("count_steps"));
}

#[tokio::test]
async fn an_edit_of_an_outputs_text_reaches_the_model_the_history_the_events_the_state_and_the_session() {
    let journal = MemoryJournal::default();
    let redact = hooks::after_tool(|_, _, out| {
        out.edit_text(|text| text.replace("s3cret", "[hidden]"));
        Ok(())
    });
    let watch = Watch::default();
    let look = gives("look", json!({"key": "s3cret", "found": [{"s3cret": "of s3cret"}]}));
    let look = look.with(|options| options.writes("found", Some("found")));
    let model = ScriptedModel::new([Turn::call("c", "look", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone())
        .state(StateSchema::default().key("found", StateField::of::<Value>()))
        .tool(look)
        .middleware(watch.clone())
        .middleware(redact)
        .store(journal.clone())
        .build()
        .expect("builds");
    let end = finished(agent.start(RunRequest::user("go").session("s")).await);
    let view = journal.index("s").await.expect("reads").look(|index| index.view("a"));
    let all = [
        format!("{:?}", model.requests()[1].texts()),
        serde_json::to_string(&end.history).expect("JSON"),
        serde_json::to_string(&end.state).expect("JSON"),
        serde_json::to_string(&watch.events()).expect("JSON"),
        serde_json::to_string(&view.history).expect("JSON"),
    ];
    for text in all {
        assert!(!text.contains("s3cret") && text.contains("[hidden]"), "{text}");
    }
}

#[tokio::test]
async fn a_hook_can_tell_the_first_attempt_at_a_run_from_later_ones() {
    let log = Log::default();
    let noted = log.clone();
    let note = hooks::before_agent(move |cx| {
        noted.note(format!("{} {}", cx.attempt(), cx.is_resumed()));
        Ok(())
    });
    let asks = tool("ask", async |req: ToolRequest| {
        let may: bool = req.ask("may", json!(null))?;
        Ok(ToolOutput::text(may.to_string()))
    });
    let model = ScriptedModel::new([Turn::call("c", "ask", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(asks).middleware(note).store(MemoryJournal::default());
    let agent = agent.build().expect("builds");
    let (_, checkpoint) = stopped(agent.start(RunRequest::user("go").session("s")).await);
    assert_eq!(checkpoint.resumed, 0);
    let (_, checkpoint) = stopped(agent.start(RunRequest::resume(checkpoint, [])).await);
    finished(agent.start(RunRequest::resume(checkpoint, [("c/may".to_owned(), json!(true))])).await);
    assert_eq!(log.seen(), ["1 false", "2 true", "3 true"]);
}

/// Decides a list and appends a message, before the first model call and among tool calls.
struct Keeps(Log);

#[async_trait]
impl Middleware for Keeps {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let route: Vec<String> = cx.decide_typed("route", async { Ok(vec!["north".to_owned()]) }).await?;
        let of_another_type = cx.decide_typed::<u32>("number", async { Ok(7) }).await?;
        cx.append(Message::user(format!("{route:?} {of_another_type}"))).await
    }

    async fn after_tool(&self, cx: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        let e = cx.append(Message::user("between")).await.expect_err("calls are open");
        self.0.note(e.kind().to_string());
        Ok(())
    }
}

#[tokio::test]
async fn a_middleware_decides_values_of_any_type_and_appends_to_the_stored_conversation() {
    let (journal, log) = (MemoryJournal::default(), Log::default());
    let model = ScriptedModel::new([Turn::call("c", "look", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(gives("look", json!("ok"))).middleware(Keeps(log.clone()));
    let agent = agent.store(journal.clone()).build().expect("builds");
    finished(agent.start(RunRequest::user("go").session("s")).await);
    assert_eq!(model.requests()[0].texts(), ["go", "[\"north\"] 7"]);
    let view = journal.index("s").await.expect("reads").look(|index| index.view("a"));
    assert_eq!(view.history.iter().map(Message::text).collect::<Vec<_>>()[1], "[\"north\"] 7");
    assert_eq!(log.seen(), ["history"]);
}

// --- ends ---

#[tokio::test]
async fn a_sub_agent_that_ended_early_is_an_error_for_the_code_that_called_it() {
    let helper = Agent::builder("helper", ScriptedModel::new([Turn::text("so far").and_call("1", "look", json!({}))]));
    let helper = helper.tool(gives("look", json!("ok"))).build().expect("builds");
    let share = SubAgent::new("helper", "Helps.", helper).with_caps(Caps::default().model_calls(1));
    let asks = tool("ask_helper", async |req: ToolRequest| {
        Ok(ToolOutput::text(req.call_sub_agent("helper", "help").await?.answer))
    });
    let boss = ScriptedModel::new([Turn::call("c", "ask_helper", json!({})), Turn::text("done")]);
    let agent = Agent::builder("boss", boss).tool(asks).middleware(Delegation::new().agent(share));
    let end = finished(agent.build().expect("builds").run("go").await);
    let told = "agent 'helper' ended before it was done (budget); its answer so far: so far";
    assert_eq!(results(&end.history), [("c".to_owned(), told.to_owned(), true)]);
}

#[tokio::test]
async fn an_end_is_a_result_for_the_question_mark() -> Result<()> {
    assert_eq!(says("a", "42").build()?.run("go").await?.text()?, "42");
    let early = Agent::builder("a", ScriptedModel::new([Turn::call("1", "look", json!({}))]));
    let early = early.tool(gives("look", json!("ok"))).max_steps(1).build()?;
    let e = early.run("go").await?.text().expect_err("no text was given");
    assert_eq!(e.context("exit_reason"), Some("step_limit"));
    let asks =
        tool("ask", async |req: ToolRequest| req.ask::<bool>("may", json!(null)).map(|_| ToolOutput::text("ok")));
    let waits = Agent::builder("a", ScriptedModel::new([Turn::call("c", "ask", json!({}))])).tool(asks).build()?;
    let e: Error = waits.run("go").await?.into_result().expect_err("it waits");
    assert_eq!((e.kind(), e.questions()[0].id.as_str()), (agent_core::ErrorKind::Interrupted, "c/may"));
    assert_eq!(e.checkpoint().expect("to go on from").questions.len(), 1);
    Ok(())
}
