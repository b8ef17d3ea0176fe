//! Confirmation of tool calls by people.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    AssistantMessage, Block, Checkpoint, Effect, Error, ErrorKind, ExitReason, Finished, MemoryJournal, Message,
    Result, RunCx, RunEnd, RunRequest, ToolOptions, ToolRequest,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Approval,
    approval::{
        ApprovalConfig, ApprovalRequest, Approver, ConfirmationPolicy, ConfirmationStrategy, Decision, DecisionKind,
    },
};
use agent_tools::ToolExt;
use serde_json::{Value, json};

use crate::common::{Log, double, finished, gives, ms, results, stopped, tool};

/// Returns an approver with a fixed decision.
fn says(decision: Decision) -> impl Approver {
    move |_: RunCx, _: ApprovalRequest| {
        let decision = decision.clone();
        async { Ok(decision) }
    }
}

fn blocking(approver: impl Approver) -> ConfirmationStrategy {
    ConfirmationStrategy::blocking(ConfirmationPolicy::Always, approver)
}

/// Builds an agent whose model calls `f` with `x` = 3 and then says "done".
fn agent(approval: Approval) -> (AgentBuilder, ScriptedModel) {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    (Agent::builder("a", model.clone()).tool(double("f")).middleware(approval), model)
}

async fn run(builder: AgentBuilder) -> Finished {
    finished(builder.build().expect("builds").run("go").await)
}

// Haystack 53
#[tokio::test]
async fn confirmed_it_runs_rejected_it_does_not_and_modified_it_runs_otherwise_and_the_model_is_told() {
    let decide = |decision| Approval::new().confirm(["f"], blocking(says(decision)));
    let end = run(agent(decide(Decision::approve())).0).await;
    assert_eq!((results(&end.history)[0].1.as_str(), end.tool_calls["f"]), ("6", 1));

    let no = "Tool execution for 'f' was rejected by the user.";
    let silent = Decision::Reject { reason: None, remember: None, always: false };
    for (decision, told) in
        [(silent, no.to_owned()), (Decision::reject("no!"), format!("{no} With user feedback: no!"))]
    {
        let end = run(agent(decide(decision)).0.exit_on(["f"])).await;
        assert_eq!(results(&end.history)[0], ("1".to_owned(), told, true));
        assert_eq!((end.tool_calls.get("f"), end.reason), (None, ExitReason::Text), "no exit: it did not run");
    }

    let (builder, model) = agent(decide(Decision::edit(json!({"x": 5}))));
    let end = run(builder).await;
    let told = &model.requests()[1].results()[0].1;
    assert!(told.ends_with("10") && told.contains("changed by the user to: {\"x\":5}"), "{told}");
    let asked = end.history.iter().find_map(Message::as_assistant).expect("there").clone();
    assert_eq!(asked.calls().next().expect("a call").arguments, r#"{"x":3}"#, "what the model said stays");
}

#[tokio::test]
async fn what_may_destroy_something_is_asked_about_where_that_is_wanted_and_what_nobody_speaks_for() {
    let from_file = |config: Value| Approval::from(serde_json::from_value::<ApprovalConfig>(config).expect("parses"));
    let asks = async |options: ToolOptions, approval: Approval| {
        let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
        let builder = Agent::builder("a", model).tool(double("f").with_options(|_| options)).middleware(approval);
        matches!(builder.build().expect("builds").run("go").await.expect("runs"), RunEnd::Interrupted(_))
    };
    let options = ToolOptions::default;
    for (options, expected) in [
        (options(), true),
        (options().destructive(true), true),
        (options().effect(Effect::Idempotent), true),
        (options().destructive(false), false),
        (options().effect(Effect::Pure), false),
    ] {
        let confirming = ConfirmationStrategy::suspending(ConfirmationPolicy::IfRisky);
        assert_eq!(asks(options.clone(), Approval::new().confirm(["f"], confirming)).await, expected, "{options:?}");
        assert_eq!(asks(options.clone(), Approval::new().ask_if_risky("*")).await, expected, "{options:?}");
        assert_eq!(asks(options.clone(), from_file(json!({"if_risky": ["f*"]}))).await, expected, "{options:?}");
        assert!(!asks(options, from_file(json!({"if_risky": ["g*"]}))).await, "it is not among them");
    }
}

// Haystack 54 (B)
#[tokio::test(start_paused = true)]
async fn what_is_no_clear_yes_never_runs_the_tool() {
    let strict = |decision| Approval::new().confirm(["f"], blocking(says(decision)));
    let late = |_: RunCx, _: ApprovalRequest| async {
        tokio::time::sleep(ms(120_000)).await;
        Ok(Decision::approve())
    };
    let refuses_edits = strict(Decision::edit(json!({"x": 5}))).decisions([DecisionKind::Approve]);
    let empty = strict(Decision::edit(json!({})));
    let slow = Approval::new().confirm(["f"], blocking(late)).timeout(ms(60_000));
    for (approval, why) in [(refuses_edits, "not accepted"), (empty, "are empty"), (slow, "nobody decided in time")] {
        let end = run(agent(approval).0).await;
        let (_, text, is_error) = &results(&end.history)[0];
        assert!(*is_error && text.contains("was not approved") && text.contains(why), "{text}");
        assert_eq!(end.tool_calls.get("f"), None);
    }
    let suspending = || ConfirmationStrategy::suspending(ConfirmationPolicy::Always);
    let waiting = agent(Approval::new().confirm(["f"], suspending())).0.build().expect("builds");
    let (_, checkpoint) = stopped(waiting.run("go").await);
    for answer in [json!("yes"), json!({"decision": "allow"}), json!({"decision": "edit", "arguments": {}})] {
        let answers = [(checkpoint.questions[0].id.clone(), answer)];
        let e = waiting.start(RunRequest::resume(checkpoint.clone(), answers)).await.expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::AnswerRefused);
    }
}

// Haystack 55 (B)
#[tokio::test]
async fn a_message_of_which_some_calls_are_rejected_stays_as_the_model_said_it() {
    let calls = ["f", "g", "k"].map(|name| Block::tool_call(name, name, r#"{"x":1}"#));
    let said = [Block::reasoning("because"), Block::text("let me see")].into_iter().chain(calls);
    let said = AssistantMessage::new(said.collect());
    let model = ScriptedModel::new([Turn::message(said.clone()), Turn::text("done")]);
    let decide = |_: RunCx, request: ApprovalRequest| async move {
        Ok(if request.tool == "g" { Decision::approve() } else { Decision::reject("no") })
    };
    let builder = Agent::builder("a", model).tool(double("f")).tool(double("g")).tool(double("k"));
    let end = run(builder.middleware(Approval::new().confirm(["*"], blocking(decide)))).await;
    let turns: Vec<_> = end.history.iter().filter_map(Message::as_assistant).collect();
    assert_eq!((turns.len(), turns[0]), (2, &said));
    let told: Vec<_> = results(&end.history).into_iter().map(|(id, _, is_error)| (id, is_error)).collect();
    assert_eq!(told, [("f".to_owned(), true), ("g".to_owned(), false), ("k".to_owned(), true)]);
}

// Haystack 56
#[tokio::test]
async fn of_several_strategies_the_tools_own_holds_then_its_groups_then_the_star() {
    let log = Log::default();
    let noting = |who: &'static str| {
        let log = log.clone();
        blocking(move |_: RunCx, request: ApprovalRequest| {
            log.note(format!("{who} {}", request.tool));
            async { Ok(Decision::approve()) }
        })
    };
    let calls = ["own", "grouped", "rest", "never", "ghost"].map(|name| (name, name, json!({})));
    let model = || ScriptedModel::new([Turn::calls(calls.clone()), Turn::text("done")]);
    let tools = |model| {
        let names = ["own", "grouped", "rest", "never"];
        names.into_iter().fold(Agent::builder("a", model).tool_concurrency(1), |b, name| b.tool(gives(name, json!(1))))
    };
    let never = ConfirmationStrategy::suspending(ConfirmationPolicy::Never);
    let approval = Approval::new()
        .confirm(["*"], noting("star"))
        .confirm(["grouped", "own"], noting("group"))
        .confirm(["grouped", "rest2"], noting("second group"))
        .confirm(["own"], noting("own"))
        .confirm(["never"], never);
    let end = run(tools(model()).middleware(approval)).await;
    assert_eq!(log.seen(), ["own own", "group grouped", "star rest"]);
    assert!(results(&end.history)[4].1.starts_with("Tool 'ghost' not found"), "nobody is asked about it");

    let unmatched = Approval::new().confirm(["other"], noting("other"));
    let end = run(tools(model()).middleware(unmatched)).await;
    assert_eq!((end.tool_calls.len(), log.seen().len()), (4, 3), "without a strategy it runs");
}

#[tokio::test]
async fn a_policy_of_ones_own_sees_the_arguments_and_a_rule_that_is_stricter_holds() {
    let large = || ConfirmationPolicy::custom(|call: &ToolRequest| call.args["x"].as_i64().is_some_and(|x| x > 3));
    let no = || says(Decision::reject("no"));
    let strategy = ConfirmationStrategy::blocking(large(), no());
    let end = run(agent(Approval::new().confirm(["f"], strategy.clone())).0).await;
    assert_eq!(results(&end.history)[0].1, "6", "3 is not asked about");
    let end = run(agent(Approval::new().confirm(["f"], strategy).ask("f")).0).await;
    assert!(results(&end.history)[0].2, "a rule says that it is");
    let never = ConfirmationStrategy::suspending(ConfirmationPolicy::Never);
    let end = run(agent(Approval::new().confirm(["f"], never).deny("f")).0).await;
    assert!(results(&end.history)[0].1.contains("is not allowed"));
}

// Haystack 57
#[tokio::test]
async fn asked_once_the_same_call_is_asked_about_once_in_a_session_and_another_one_again() {
    let (asked, journal) = (Arc::new(AtomicU32::new(0)), MemoryJournal::default());
    let run = async |session: &'static str, x: i64| {
        let count = asked.clone();
        let yes = move |_: RunCx, _: ApprovalRequest| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(Decision::approve()) }
        };
        let once = ConfirmationStrategy::blocking(ConfirmationPolicy::Once, yes);
        let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": x})), Turn::text("done")]);
        // Each run simulates a new process: they share only the journal.
        let agent = Agent::builder("a", model).tool(double("f")).middleware(Approval::new().confirm(["f"], once));
        let agent = agent.store(journal.clone()).build().expect("builds");
        finished(agent.start(RunRequest::user("go").session(session)).await);
        asked.load(Ordering::SeqCst)
    };
    assert_eq!((run("s", 3).await, run("s", 3).await), (1, 1));
    assert_eq!((run("s", 4).await, run("s", 4).await), (2, 2), "other arguments");
    assert_eq!(run("t", 3).await, 3, "another session");
}

// Haystack 58
#[tokio::test]
async fn the_context_of_a_run_reaches_the_approver_by_reference_and_is_in_nothing_that_is_kept() {
    struct Connection(Mutex<Vec<String>>, #[expect(dead_code, reason = "must not be shown")] &'static str);

    let decide = |cx: RunCx, request: ApprovalRequest| async move {
        let connection = cx.resources().get::<Arc<Connection>>()?;
        connection.0.lock().expect("free").push(request.tool);
        let ask = ScriptedModel::new([]).calls() == 0;
        Ok(if ask { Decision::approve() } else { Decision::reject("") })
    };
    let connection = Arc::new(Connection(Mutex::default(), "SECRET123"));
    let waits =
        tool("g", async |req: ToolRequest| req.ask::<String>("name", Value::Null).map(agent_core::ToolOutput::text));
    let model = ScriptedModel::new([Turn::calls([("1", "f", json!({"x": 1})), ("2", "g", json!({}))])]);
    let agent = Agent::builder("a", model).tool(double("f")).tool(waits);
    let agent = agent.middleware(Approval::new().confirm(["f"], blocking(decide))).build().expect("builds");
    let run = agent.start(RunRequest::user("go").resource(connection.clone()));
    let events = run.handle().events();
    let (_, checkpoint) = stopped(run.await);
    assert_eq!(*connection.0.lock().expect("free"), ["f"], "the caller's own value");
    let events: Vec<_> = futures::StreamExt::collect::<Vec<_>>(events).await;
    let kept =
        format!("{}{}", checkpoint.to_json().expect("serialises"), serde_json::to_string(&events).expect("serialises"));
    assert!(!kept.contains("SECRET123") && !kept.contains("Connection"));
}

fn waiting_agent(model: &ScriptedModel, log: &Log) -> Agent {
    let noting = |name: &'static str| {
        let log = log.clone();
        tool(name, move |req: ToolRequest| {
            log.note(format!("{name} {}", req.args));
            async { Ok(agent_core::ToolOutput::text("ran")) }
        })
    };
    let suspending = ConfirmationStrategy::suspending(ConfirmationPolicy::Always);
    let builder =
        Agent::builder("a", model.clone()).tool(noting("f")).tool(noting("g")).tool(noting("free").repeatable());
    builder.middleware(Approval::new().confirm(["f", "g"], suspending)).build().expect("builds")
}

fn approve(checkpoint: &Checkpoint, id: &str) -> RunRequest {
    let question = checkpoint.questions.iter().find(|q| q.id == id).expect("asked");
    RunRequest::resume_with(checkpoint.clone(), [question.answer(json!({"decision": "approve"}))])
}

// Haystack 64
#[tokio::test]
async fn of_two_calls_that_wait_each_is_asked_about_once_and_runs_once_when_its_answer_is_there() {
    let (log, calls) = (Log::default(), [("1", "f", json!({"x": 1})), ("2", "g", json!({"x": 2}))]);
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let build = || waiting_agent(&model, &log);
    let (_, first) = stopped(build().run("go").await);
    let ids = |checkpoint: &Checkpoint| checkpoint.questions.iter().map(|q| q.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&first), ["1/approval", "2/approval"]);
    let (_, second) = stopped(build().start(approve(&first, "1/approval")).await);
    assert_eq!(ids(&second), ["2/approval"], "the other one is not asked about again");
    let end = finished(build().start(approve(&second, "2/approval")).await);
    assert_eq!(log.seen(), ["f {\"x\":1}", "g {\"x\":2}"]);
    assert_eq!((end.answer.as_str(), model.calls()), ("done", 2));
}

// Haystack 65
#[tokio::test]
async fn the_calls_that_wait_are_listed_with_what_their_tools_do_and_the_checkpoint_stays_as_it_is() -> Result<()> {
    let calls = [("1", "f", json!({"x": 1})), ("2", "asks", json!({})), ("3", "g", json!({"x": 2}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let described = agent_tools::from_schema(
        "f",
        "Doubles.",
        json!({"type": "object", "properties": {"x": {"type": "integer"}}}),
        async |_: Value, _: ToolRequest| Ok::<_, Error>("6"),
    );
    let free =
        tool("asks", async |req: ToolRequest| req.ask::<String>("x", Value::Null).map(agent_core::ToolOutput::text));
    let suspending = ConfirmationStrategy::suspending(ConfirmationPolicy::Always);
    let builder = Agent::builder("a", model).tool(described).tool(free.repeatable()).tool(gives("g", json!(1)));
    let agent = builder.middleware(Approval::new().confirm(["f"], suspending)).build()?;
    let (_, checkpoint) = stopped(agent.run("go").await);
    let before = checkpoint.clone();

    let waiting = agent.waiting_calls(&checkpoint)?;
    let ids = |calls: &[agent_exec::WaitingCall]| calls.iter().map(|call| call.call_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&waiting), ["1", "2"]);
    assert_eq!((waiting[0].tool.as_str(), waiting[0].description.as_str()), ("f", "Doubles."));
    assert_eq!(
        (&waiting[0].arguments, waiting[0].questions.as_slice()),
        (&json!({"x": 1}), &["1/approval".to_owned()][..])
    );
    assert_eq!(ids(&agent.open_calls(&checkpoint)?), ["1", "2"], "the third one ran");
    assert_eq!(checkpoint, before);
    let question: ApprovalRequest =
        serde_json::from_value(checkpoint.questions[0].payload.clone()).expect("an approval");
    assert_eq!(question.description.as_deref(), Some("Doubles."), "whoever is asked is told too");

    let elsewhere = Checkpoint::new(checkpoint.ids.clone(), "");
    let e = agent.waiting_calls(&elsewhere).expect_err("no calls");
    assert!(e.kind() == ErrorKind::Config && e.message().contains("does not stand at tool calls"));
    Ok(())
}
