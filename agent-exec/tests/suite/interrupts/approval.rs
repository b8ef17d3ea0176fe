//! Approval in whole runs: one call or all calls of a message, at any depth.

use agent_core::{
    Answer, Checkpoint, ErrorKind, Message, RunRequest, ToolOutput, ToolRequest,
    run::Refusal,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use agent_middleware::{
    Approval, Delegation,
    approval::{ApprovalRequest, Decision},
    permissions::{Rule, RuleFile},
};
use serde_json::{Value, json};

use crate::common::{FnTool, Log, finished, results, stopped, tool};

/// Returns a tool that logs each of its runs, and doubles `x`.
fn doubles(name: &'static str, log: &Log) -> FnTool {
    let log = log.clone();
    let body = move |req: ToolRequest| {
        log.note(format!("{name}({})", req.args["x"]));
        async move { Ok(ToolOutput::text((req.args["x"].as_i64().unwrap_or(0) * 2).to_string())) }
    };
    tool(name, body).takes(json!({"x": {"type": "integer"}, "key": {"type": "string"}}), &["x"])
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

fn resume(checkpoint: &Checkpoint, answers: impl IntoIterator<Item = (String, Answer)>) -> RunRequest {
    RunRequest::resume_with(checkpoint.clone(), answers)
}

fn told(end: &agent_core::Finished) -> Vec<(String, bool)> {
    results(&end.history).into_iter().map(|(_, text, failed)| (text, failed)).collect()
}

#[tokio::test]
async fn edited_arguments_that_do_not_fit_the_tool_are_refused_and_the_question_stays_open() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    let agent = built(Agent::builder("a", model).tool(doubles("f", &log)).middleware(Approval::new().ask("f")));
    let (_, checkpoint) = stopped(agent.run("go").await);
    let question = &checkpoint.questions[0];
    for (wrong, why) in [
        (json!({"decision": "edit", "arguments": {"x": "much"}}), "x"),
        (json!({"decision": "edit", "arguments": {}}), "x"),
        (json!({"decision": "edit"}), "arguments"),
        (json!({"decision": "yes"}), "decision"),
        (json!({"decision": "approve", "always": true}), "always"),
        (json!("approve"), ""),
    ] {
        let e = agent.start(resume(&checkpoint, [question.answer(wrong.clone())])).await.expect_err("refused");
        let Some(Refusal::Misfit { problems }) = Refusal::of(&e) else { panic!("{wrong}: {e}") };
        assert!(problems.contains(why), "{wrong}: {problems}");
        assert_eq!(e.kind(), ErrorKind::AnswerRefused);
    }
    assert!(log.seen().is_empty());
    let edit = question.answer(json!({"decision": "edit", "arguments": {"x": 5}}));
    let end = finished(agent.start(resume(&checkpoint, [edit])).await);
    let text = "The parameters for tool 'f' were changed by the user to: {\"x\":5}\n10";
    assert_eq!(told(&end), [(text.to_owned(), false)]);
    let turn = end.history.iter().filter_map(Message::as_assistant).next().expect("the turn");
    let arguments: Value = serde_json::from_str(&turn.calls().next().expect("the call").arguments).expect("JSON");
    assert_eq!(arguments, json!({"x": 3}), "what the model said stays what it said");
}

#[tokio::test]
async fn one_turn_with_a_rejected_an_approved_and_a_rejected_call_stays_one_turn() {
    let log = Log::default();
    let calls = ["f", "g", "k"].map(|name| (name, name, json!({"x": 3})));
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let tools = ["f", "g", "k"].map(|name| doubles(name, &log));
    let builder = Agent::builder("a", model.clone()).middleware(Approval::new().ask("*")).exit_on(["text", "f"]);
    let agent = built(tools.into_iter().fold(builder, AgentBuilder::tool));
    let (_, checkpoint) = stopped(agent.run("go").await);
    let (yes, no) = (json!({"decision": "approve"}), json!({"decision": "reject", "reason": "no!"}));
    let answers = checkpoint.questions.iter().zip([&no, &yes, &no]).map(|(q, decision)| q.answer(decision.clone()));
    let end = finished(agent.start(resume(&checkpoint, answers.collect::<Vec<_>>())).await);
    let no = |name| (format!("Tool execution for '{name}' was rejected by the user. With user feedback: no!"), true);
    assert_eq!(
        told(&end),
        [no("f"), ("6".to_owned(), false), no("k")],
        "in call order, and a rejected exit tool ends nothing"
    );
    assert_eq!((log.seen(), end.tool_calls.get("f")), (vec!["g(3)".to_owned()], None));
    assert_eq!(end.history.iter().filter_map(Message::as_assistant).filter(|m| m.has_calls()).count(), 1);
    assert_eq!(model.calls(), 2);
}

#[tokio::test]
async fn batched_it_is_one_question_for_all_calls_and_each_has_its_decision() {
    let log = Log::default();
    let calls = [
        ("1", "f", json!({"x": 1})),
        ("2", "free", json!({"x": 2})),
        ("3", "f", json!({"x": 3})),
        ("4", "none", json!({})),
    ];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let approval = || Approval::new().ask("*").allow("free").batched();
    let build = || {
        let builder = Agent::builder("a", model.clone()).middleware(approval());
        built(builder.tool(doubles("f", &log)).tool(doubles("free", &log)))
    };
    let (_, checkpoint) = stopped(build().run("go").await);
    let [question] = checkpoint.questions.as_slice() else { panic!("{:?}", checkpoint.questions) };
    assert_eq!((question.kind.as_str(), question.id.as_str()), ("approvals", "step-1/approvals"));
    let asked: Vec<ApprovalRequest> = serde_json::from_value(question.payload["calls"].clone()).expect("calls");
    assert_eq!(asked.iter().map(|call| call.call_id.as_str()).collect::<Vec<_>>(), ["1", "3"]);
    assert!(log.seen().is_empty(), "none of them runs before");

    let yes = json!({"decision": "approve"});
    for wrong in [json!({"1": yes}), json!({"1": yes, "3": yes, "2": yes}), json!({"1": yes, "3": {"decision": "ok"}})]
    {
        let e = build().start(resume(&checkpoint, [question.answer(wrong)])).await.expect_err("refused");
        assert!(matches!(Refusal::of(&e), Some(Refusal::Misfit { .. })), "{e}");
    }
    let edit = json!({"decision": "edit", "arguments": {"x": 30}});
    let end = finished(build().start(resume(&checkpoint, [question.answer(json!({"1": yes, "3": edit}))])).await);
    let mut seen = log.seen();
    seen.sort();
    assert_eq!(seen, ["f(1)", "f(30)", "free(2)"]);
    assert!(told(&end)[3].0.contains("not found") || told(&end)[3].1, "an unknown tool is nobody's to approve");
}

#[tokio::test]
async fn a_batch_that_was_decided_is_not_asked_about_again_when_one_of_its_calls_has_to_wait() {
    let log = Log::default();
    let waits =
        tool("waits", async |req: ToolRequest| req.ask::<String>("name", json!("whose?")).map(ToolOutput::text));
    let calls = [("1", "f", json!({"x": 1})), ("2", "waits", json!({}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(doubles("f", &log)).tool(waits);
    let agent = built(agent.middleware(Approval::new().ask("*").batched()));
    let (_, checkpoint) = stopped(agent.run("go").await);
    let yes = json!({"decision": "approve"});
    let both = checkpoint.questions[0].answer(json!({"1": yes, "2": yes}));
    let (_, checkpoint) = stopped(agent.start(resume(&checkpoint, [both])).await);
    assert_eq!(checkpoint.questions.iter().map(|q| q.id.as_str()).collect::<Vec<_>>(), ["2/name"]);
    let end = finished(agent.start(resume(&checkpoint, [checkpoint.questions[0].answer("Ada")])).await);
    assert_eq!((told(&end)[1].0.as_str(), log.seen().len()), ("Ada", 1));
}

/// Builds a root, a middle and a leaf agent, each of which calls two helpers or tools concurrently;
/// every call of `act` asks a question.
fn tree(models: [&ScriptedModel; 3], log: &Log) -> Agent {
    let over = |name: &str, model: &ScriptedModel, helper: Agent| {
        let delegation = Delegation::new().to("helper", "Helps.", helper);
        Agent::builder(name, model.clone()).middleware(delegation).tool(doubles("act", log))
    };
    let leaf = Agent::builder("leaf", models[2].clone()).tool(doubles("act", log));
    let middle = over("middle", models[1], built(leaf));
    built(over("root", models[0], built(middle)).middleware_for_all(Approval::new().ask("act").only("ada")))
}

#[tokio::test]
async fn in_a_tree_of_three_the_same_approval_of_each_depth_is_answered_by_itself_and_no_sibling_runs_again() {
    let log = Log::default();
    let both = |x: u32| {
        let delegate = json!({"agent": "helper", "message": "go on"});
        Turn::calls([("c", "act", json!({"x": x})), ("d", "delegate", delegate)])
    };
    let models = [
        ScriptedModel::new([both(1), Turn::text("root done")]),
        ScriptedModel::new([both(2), Turn::text("middle done")]),
        ScriptedModel::new([
            Turn::calls([("c", "act", json!({"x": 3})), ("e", "act", json!({"x": 4}))]),
            Turn::text("leaf done"),
        ]),
    ];
    let build = || tree(models.each_ref(), &log);
    let (_, mut checkpoint) = stopped(build().run("go").await);
    let open = |c: &Checkpoint| c.questions.iter().map(|q| q.id.clone()).collect::<Vec<_>>();
    assert_eq!(open(&checkpoint), ["c/approval", "d/c/approval", "d/d/c/approval", "d/d/e/approval"]);
    // An answer to one depth does not answer another, although the tool, the call's id and the
    // answer are the same.
    let (_, stray) = checkpoint.questions[1].answer(json!({"decision": "approve"}));
    let e =
        build().start(resume(&checkpoint, [("c/approval".to_owned(), stray.by("ada"))])).await.expect_err("refused");
    assert_eq!(Refusal::of(&e), Some(&Refusal::AnotherRun));

    for id in ["d/d/e/approval", "c/approval", "d/d/c/approval"] {
        let question = checkpoint.questions.iter().find(|q| q.id == id).expect("open");
        let (id, answer) = question.answer(json!({"decision": "approve"}));
        checkpoint = stopped(build().start(resume(&checkpoint, [(id, answer.by("ada"))])).await).1;
    }
    assert_eq!(open(&checkpoint), ["d/c/approval"]);
    let (id, answer) = checkpoint.questions[0].answer(json!({"decision": "reject"}));
    let end = finished(build().start(resume(&checkpoint, [(id, answer.by("ada"))])).await);
    assert_eq!(end.answer, "root done");
    assert_eq!(log.seen(), ["act(4)", "act(1)", "act(3)"], "each once, as it was approved");
    models.iter().for_each(ScriptedModel::assert_finished);
}

#[tokio::test]
async fn what_holds_for_good_holds_in_the_next_session_and_what_is_said_once_does_not() {
    let (log, directory) = (Log::default(), tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("rules.json");
    let run = async |decision: Option<Value>| {
        let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
        let approval = Approval::new().ask("f").keep_rules(RuleFile::new(&file));
        let agent = built(Agent::builder("a", model).tool(doubles("f", &log)).middleware(approval));
        let end = agent.run("go").await;
        let Some(decision) = decision else { return drop(finished(end)) };
        let (_, checkpoint) = stopped(end);
        let answer = checkpoint.questions[0].answer(decision);
        finished(agent.start(resume(&checkpoint, [answer])).await);
    };
    run(Some(json!({"decision": "approve"}))).await;
    run(Some(json!({"decision": "approve", "remember": "tool"}))).await;
    assert!(!file.exists(), "once and for the session leave no rule behind");
    run(Some(json!({"decision": "approve", "remember": "call", "always": true}))).await;
    run(None).await;
    assert_eq!(log.seen().len(), 4);
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).expect("kept")).expect("JSON");
    assert_eq!(kept, json!({"a": [Rule::allow("f").with_arguments(json!({"x": 3}))]}));
}

#[tokio::test]
async fn a_call_that_is_allowed_runs_while_its_sibling_waits_and_both_run_once_across_a_crash() {
    let log = Log::default();
    let calls = [("1", "free", json!({"x": 1})), ("2", "f", json!({"x": 2}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let journal = agent_core::MemoryJournal::default();
    let build = || {
        let builder = Agent::builder("a", model.clone()).store(journal.clone());
        built(builder.tool(doubles("f", &log)).tool(doubles("free", &log)).middleware(Approval::new().ask("f")))
    };
    let (_, waiting) = stopped(build().start(RunRequest::user("go").session("s")).await);
    assert_eq!(log.seen(), ["free(1)"]);
    // The process with the checkpoint is gone: the journal holds the question too.
    let recovered = build().unfinished("s").await.expect("reads").expect("waits");
    assert_eq!(recovered.questions, waiting.questions);
    let answer = recovered.questions[0].answer(json!({"decision": "approve"}));
    finished(build().start(RunRequest::recover_with("s", [answer])).await);
    assert_eq!(log.seen(), ["free(1)", "f(2)"]);
}

#[tokio::test]
async fn a_decision_in_the_process_is_made_without_a_question() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    let decide = |_, request: ApprovalRequest| async move {
        assert_eq!((request.call_id.as_str(), request.why.as_str()), ("1", "rule 1 says so"));
        Ok(Decision::respond("seven"))
    };
    let approval = Approval::new().ask("f").decide_with(decide);
    let agent = built(Agent::builder("a", model).tool(doubles("f", &log)).middleware(approval));
    assert_eq!(told(&finished(agent.run("go").await)), [("seven".to_owned(), false)]);
}
