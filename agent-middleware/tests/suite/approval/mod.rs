//! Approval of tool calls by a person.

use crate::common;
mod bypass;
mod console;
mod permissions;
mod shell;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Error, ErrorKind, GlobalStorage, Result, RunCx, RunIds, ToolOutput, ToolRequest, ToolService, engine::RunDriver,
    middleware::Middlewares,
};
use agent_middleware::{
    Approval,
    approval::{ApprovalRequest, Decision, DecisionKind, Remember},
    permissions::{Policy, Rule},
};
use common::{alone, begin, call, end, finished, restarted, root, run_of, tool_stack};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A tool that doubles `x`, with the number of its runs.
struct Doubler {
    list: Middlewares,
    stack: ToolService,
    ran: Arc<AtomicU32>,
}

impl Doubler {
    fn under(approval: Approval) -> Self {
        let (list, ran) = (alone(approval), Arc::new(AtomicU32::new(0)));
        let counter = ran.clone();
        let stack = tool_stack(&list, move |req: ToolRequest| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move { Ok(ToolOutput::text((req.args["x"].as_i64().unwrap_or(0) * 2).to_string())) }
        });
        Self { list, stack, ran }
    }

    async fn call(&self, req: ToolRequest) -> Result<ToolOutput> {
        self.stack.clone().oneshot(req).await
    }

    fn ran(&self) -> u32 {
        self.ran.load(Ordering::SeqCst)
    }
}

fn f(cx: &RunCx, id: &str) -> ToolRequest {
    call(cx, id, "f", json!({"x": 3}))
}

/// Asks about the call `c1` of `f`, then resumes with `answer`.
async fn answered(tool: &Doubler, answer: Value) -> (RunDriver, Result<ToolOutput>) {
    let run = root(|_| {});
    let e = tool.call(f(run.cx(), "c1")).await.expect_err("must ask");
    assert_eq!((e.kind(), e.questions()[0].id.as_str()), (ErrorKind::Interrupted, "c1/approval"));
    let again = restarted(&run, |parts| parts.answers.extend([e.questions()[0].answer(answer)]));
    let out = tool.call(f(again.cx(), "c1")).await;
    (again, out)
}

async fn told(tool: &Doubler, answer: Value) -> ToolOutput {
    answered(tool, answer).await.1.expect("is told")
}

#[tokio::test]
async fn the_question_holds_what_a_person_needs_to_decide() {
    let approval = Approval::new().ask("f").describe("f", "Doubles.").decisions([DecisionKind::Approve]);
    let run = root(|_| {});
    let e = Doubler::under(approval).call(f(run.cx(), "c1")).await.expect_err("must ask");
    let question = &e.questions()[0];
    assert_eq!(question.kind, "approval");
    let payload = json!({
        "call_id": "c1",
        "tool": "f",
        "description": "Doubles.",
        "arguments": {"x": 3},
        "why": "rule 1 says so",
        "decisions": ["approve", "reject"],
    });
    assert_eq!(question.payload, payload);
    assert_eq!(run.take_questions().len(), 1, "the run knows the question, whatever becomes of the error");
}

#[tokio::test]
async fn an_approved_call_runs_once_and_as_it_was() {
    let tool = Doubler::under(Approval::new().ask("f"));
    assert_eq!(told(&tool, json!({"decision": "approve"})).await, ToolOutput::text("6"));
    assert_eq!(tool.ran(), 1);
}

#[tokio::test]
async fn a_rejected_call_never_runs_and_the_model_is_told_why() {
    let tool = Doubler::under(Approval::new().ask("f"));
    let text = "Tool execution for 'f' was rejected by the user.";
    assert_eq!(told(&tool, json!({"decision": "reject"})).await, ToolOutput::error(text));
    let with_reason = told(&tool, json!({"decision": "reject", "reason": "no!"})).await;
    assert_eq!(with_reason, ToolOutput::error(format!("{text} With user feedback: no!")));
    assert_eq!(tool.ran(), 0);
}

#[tokio::test]
async fn edited_arguments_run_and_the_model_is_told() {
    let tool = Doubler::under(Approval::new().ask("f"));
    let out = told(&tool, json!({"decision": "edit", "arguments": {"x": 5}})).await;
    assert_eq!(out.to_text(), "The parameters for tool 'f' were changed by the user to: {\"x\":5}\n10");
    assert!(!out.is_error());
}

#[tokio::test]
async fn a_response_stands_in_for_the_tool() {
    let tool = Doubler::under(Approval::new().ask("f"));
    assert_eq!(told(&tool, json!({"decision": "respond", "content": "seven"})).await, ToolOutput::text("seven"));
    assert_eq!(tool.ran(), 0);
}

#[tokio::test]
async fn what_is_no_decision_is_refused_clearly() {
    let tool = Doubler::under(Approval::new().ask("f").decisions([DecisionKind::Approve]));
    for (answer, why) in [
        (json!(null), "not a decision"),
        (json!("approve"), "not a decision"),
        (json!({}), "missing field"),
        (json!({"decision": "deny"}), "unknown variant"),
        (json!({"decision": "approve", "arguments": {"x": 5}}), "unknown field"),
        (json!({"decision": "edit"}), "missing field"),
        (json!({"decision": "edit", "arguments": {}}), "arguments are empty"),
        (json!({"decision": "edit", "arguments": [1]}), "arguments are empty"),
        (json!({"decision": "edit", "arguments": {"x": 5}}), "not accepted"),
        (json!({"decision": "respond", "content": " "}), "response is empty"),
    ] {
        let out = told(&tool, answer.clone()).await;
        assert!(out.is_error() && out.to_text().contains(why), "{answer}: {}", out.to_text());
    }
    assert_eq!(tool.ran(), 0);
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "approve",
        "edit",
        "reject",
        "respond",
        "decision",
        "arguments",
        "remember",
        "tool",
        "call",
        "content",
        "yes",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(words.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn only_a_clear_yes_runs_the_tool(answer in any_json()) {
        let tool = Doubler::under(Approval::new().ask("*"));
        let yes = match serde_json::from_value::<Decision>(answer.clone()) {
            Ok(Decision::Approve { .. }) => true,
            Ok(Decision::Edit { arguments }) => arguments.as_object().is_some_and(|a| !a.is_empty()),
            _ => false,
        };
        let (_, out) = common::block_on(answered(&tool, answer));
        prop_assert!(out.is_ok());
        prop_assert_eq!(tool.ran(), u32::from(yes));
    }
}

#[tokio::test]
async fn an_answer_holds_for_the_arguments_that_were_asked_about_alone() {
    let tool = Doubler::under(Approval::new().ask("f"));
    let run = root(|_| {});
    let asked = tool.call(f(run.cx(), "c1")).await.expect_err("must ask").questions()[0].clone();
    let again = restarted(&run, |parts| parts.answers.extend([asked.answer(json!({"decision": "approve"}))]));
    let other = call(again.cx(), "c1", "f", json!({"x": 999}));
    let asks = tool.call(other).await.expect_err("asks about the other call");
    assert_ne!(asks.questions()[0].digest, asked.digest);
    assert_eq!(tool.ran(), 0);
}

#[tokio::test]
async fn what_is_not_to_be_shown_is_not_in_the_question_and_is_kept_by_an_edit() {
    let tool = Doubler::under(Approval::new().ask("f").redact("*", ["key"]));
    let run = root(|_| {});
    let req = |cx: &RunCx| call(cx, "c1", "f", json!({"x": 3, "key": "s3cret"}));
    let e = tool.call(req(run.cx())).await.expect_err("must ask");
    let question = &e.questions()[0];
    let shown = serde_json::to_string(question).expect("serialises");
    assert!(!shown.contains("s3cret") && shown.contains("[redacted]"), "{shown}");
    let edit = json!({"decision": "edit", "arguments": {"x": 5, "key": "[redacted]"}});
    let again = restarted(&run, |parts| parts.answers.extend([question.answer(edit)]));
    let seen = Arc::new(std::sync::Mutex::new(Value::Null));
    let (list, args) = (tool.list.clone(), seen.clone());
    let stack = tool_stack(&list, move |req: ToolRequest| {
        *args.lock().expect("lock") = (*req.args).clone();
        async { Ok(ToolOutput::text("ok")) }
    });
    stack.oneshot(req(again.cx())).await.expect("runs");
    assert_eq!(*seen.lock().expect("lock"), json!({"x": 5, "key": "s3cret"}));
}

#[tokio::test]
async fn an_answer_to_hidden_arguments_holds_for_those_arguments_alone() {
    let tool = Doubler::under(Approval::new().ask("f").redact("f", ["key"]));
    let run = root(|_| {});
    let req = |cx: &RunCx, key: &str| call(cx, "c1", "f", json!({"x": 3, "key": key}));
    let asked = tool.call(req(run.cx(), "mine")).await.expect_err("must ask").questions()[0].clone();
    let again = restarted(&run, |parts| parts.answers.extend([asked.answer(json!({"decision": "approve"}))]));
    let asks = tool.call(req(again.cx(), "another")).await.expect_err("asks again");
    assert_eq!(asks.questions()[0].payload, asked.payload, "it looks the same, and is not");
    assert_eq!(tool.ran(), 0);
}

#[tokio::test]
async fn calls_of_one_message_are_asked_about_and_decided_apart() {
    let tool = Doubler::under(Approval::new().ask("*"));
    let run = root(|_| {});
    let requests = |cx: &RunCx| ["a", "b", "c"].map(|id| call(cx, id, &format!("tool_{id}"), json!({"x": 1})));
    for req in requests(run.cx()) {
        tool.call(req).await.expect_err("must ask");
    }
    let questions = run.take_questions();
    assert_eq!(questions.len(), 3);
    let (yes, no) = (json!({"decision": "approve"}), json!({"decision": "reject"}));
    let answers = questions.iter().zip([&no, &yes, &no]).map(|(question, decision)| question.answer(decision.clone()));
    let again = restarted(&run, |parts| parts.answers.extend(answers));
    let mut texts = Vec::new();
    for req in requests(again.cx()) {
        texts.push(tool.call(req).await.expect("is told").to_text());
    }
    let no = |name: &str| format!("Tool execution for '{name}' was rejected by the user.");
    assert_eq!(texts, [no("tool_a"), "2".to_owned(), no("tool_c")]);
    assert_eq!(tool.ran(), 1);
}

#[tokio::test]
async fn the_strictest_rule_holds_the_star_is_for_the_rest_and_predicates_only_make_it_stricter() {
    let approval = Approval::new()
        .ask("*")
        .allow("read*")
        .deny("read_secrets")
        .when(Policy::Ask, |tool, args| tool == "read" && args["path"] == "/etc/shadow")
        .when(Policy::Allow, |_, _| true);
    let tool = Doubler::under(approval);
    let run = root(|_| {});
    let outcome = async |name: &str, args| tool.call(call(run.cx(), "c", name, args)).await;
    assert!(!outcome("read", json!({"path": "a"})).await.expect("runs").is_error());
    assert_eq!(outcome("read", json!({"path": "/etc/shadow"})).await.expect_err("asks").kind(), ErrorKind::Interrupted);
    assert!(outcome("read_secrets", json!({})).await.expect("is told").to_text().contains("is not allowed"));
    assert_eq!(outcome("other", json!({})).await.expect_err("asks").kind(), ErrorKind::Interrupted);
}

#[tokio::test]
async fn what_was_asked_once_is_asked_again_for_other_arguments_and_other_sessions() {
    let tool = Doubler::under(Approval::new().ask("*"));
    let (run, out) = answered(&tool, json!({"decision": "approve", "remember": "call"})).await;
    out.expect("runs");
    // The next run of the session, in another process.
    let next = run_of(RunIds::root("main", "s"), GlobalStorage::restore(run.cx().globals().snapshot()), |_| {});
    assert_eq!(tool.call(f(next.cx(), "c7")).await.expect("runs unasked").to_text(), "6");
    let other = call(next.cx(), "c8", "f", json!({"x": 4}));
    assert_eq!(tool.call(other).await.expect_err("asks").kind(), ErrorKind::Interrupted);
    let elsewhere = root(|_| {});
    assert_eq!(tool.call(f(elsewhere.cx(), "c1")).await.expect_err("asks").kind(), ErrorKind::Interrupted);
}

#[tokio::test]
async fn a_standing_rule_of_one_agent_is_not_that_of_another() {
    let tool = Doubler::under(Approval::new().ask("*"));
    let (run, out) = answered(&tool, json!({"decision": "approve", "remember": "tool"})).await;
    out.expect("runs");
    let other = run_of(RunIds::root("other", "s"), run.cx().globals().clone(), |_| {});
    assert_eq!(tool.call(f(other.cx(), "c1")).await.expect_err("asks").kind(), ErrorKind::Interrupted);
}

#[tokio::test]
async fn a_remembered_rejection_stands_and_a_policy_beats_a_remembered_approval() {
    let tool = Doubler::under(Approval::new().ask("*"));
    let (run, _) = answered(&tool, json!({"decision": "reject", "remember": "tool"})).await;
    let other = call(run.cx(), "c2", "f", json!({"x": 9}));
    assert!(tool.call(other).await.expect("is told").to_text().contains("rejected by the user"));

    let (run, out) = answered(&tool, json!({"decision": "approve", "remember": "tool"})).await;
    out.expect("runs");
    let stricter = Doubler::under(Approval::new().deny("f"));
    assert!(stricter.call(f(run.cx(), "c2")).await.expect("is told").is_error());
    assert_eq!((tool.ran(), stricter.ran()), (1, 0));
}

fn shell(cx: &RunCx, id: &str, line: &str) -> ToolRequest {
    call(cx, id, "shell", json!({"command": line}))
}

/// Returns true if the line runs without a question.
async fn runs(tool: &Doubler, cx: &RunCx, line: &str) -> bool {
    tool.call(shell(cx, &format!("c-{line}"), line)).await.is_ok()
}

#[tokio::test]
async fn an_approval_of_a_prefix_holds_for_commands_that_begin_alike_and_for_no_other() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let shown = seen.clone();
    let decide = move |_: RunCx, request: ApprovalRequest| {
        shown.lock().expect("lock").push(request.prefixes.clone());
        async move {
            Ok(match request.arguments["command"].as_str() {
                Some("cargo test unit" | "git log -5 && ls") => {
                    Decision::Approve { remember: Some(Remember::Prefix), always: false }
                }
                _ => Decision::reject("no"),
            })
        }
    };
    let tool = Doubler::under(Approval::new().ask("*").decide_with(decide));
    let run = root(|_| {});
    for line in ["cargo test unit", "git log -5 && ls"] {
        assert!(!tool.call(shell(run.cx(), line, line)).await.expect("is approved").is_error());
    }
    for (line, allowed) in [
        ("cargo test other", true),
        ("git log --oneline", true),
        ("ls src | git log", true),
        ("cargo test", true),
        ("cargo publish", false),
        ("cargo test && rm x", false),
        ("cargo test $KEY", false),
        ("git push", false),
        ("git log --output=f", false),
    ] {
        let out = tool.call(shell(run.cx(), line, line)).await.expect("is decided");
        assert_eq!(out.is_error(), !allowed, "{line}");
    }
    let seen = seen.lock().expect("lock");
    assert_eq!(seen[..2], [vec!["cargo test".to_owned()], vec!["git log".to_owned(), "ls".to_owned()]]);
}

#[tokio::test]
async fn an_approval_of_a_tool_lifts_no_question_about_its_arguments() {
    let approve = json!({"decision": "approve", "remember": "tool"});
    for (approval, asked, runs_unasked) in [
        (Approval::new().ask("*").rule(Rule::ask("shell").command("command", "rm")), "rm x", "ls"),
        (Approval::new().ask("*").when(Policy::Ask, |_, args| args["command"] == "rm x"), "rm x", "ls"),
        (Approval::new().ask("*").rule(Rule::ask("shell").text("command", "rm *")), "rm x", "ls"),
    ] {
        let tool = Doubler::under(approval);
        let run = root(|_| {});
        let first = tool.call(shell(run.cx(), "c1", "date")).await.expect_err("asks");
        assert_eq!(first.kind(), ErrorKind::Interrupted);
        let answer = first.questions()[0].answer(approve.clone());
        let run = restarted(&run, |parts| parts.answers.extend([answer]));
        tool.call(shell(run.cx(), "c1", "date")).await.expect("runs");
        assert!(runs(&tool, run.cx(), runs_unasked).await, "{runs_unasked}");
        assert!(!runs(&tool, run.cx(), asked).await, "{asked}");
    }
}

#[tokio::test]
async fn an_approver_decides_in_the_process_and_sees_the_run() {
    let decide = |cx: RunCx, request: ApprovalRequest| async move {
        assert_eq!(cx.ids().agent.as_ref(), "main");
        Ok(match request.arguments["x"].as_i64() {
            Some(3) => Decision::edit(json!({"x": 4})),
            _ => Decision::reject("no!"),
        })
    };
    let tool = Doubler::under(Approval::new().ask("*").decide_with(decide));
    let run = root(|_| {});
    assert!(tool.call(f(run.cx(), "c1")).await.expect("runs").to_text().ends_with("\n8"));
    let out = tool.call(call(run.cx(), "c2", "f", json!({"x": 1}))).await.expect("is told");
    assert!(out.to_text().ends_with("With user feedback: no!"));
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_takes_too_long_denies() {
    let never = |_: RunCx, _: ApprovalRequest| std::future::pending::<Result<Decision>>();
    let tool = Doubler::under(Approval::new().ask("*").decide_with(never).timeout(Duration::from_secs(60)));
    let run = root(|_| {});
    let before = tokio::time::Instant::now();
    let out = tool.call(f(run.cx(), "c1")).await.expect("is told");
    assert!(out.is_error() && out.to_text().contains("in time"));
    assert_eq!((before.elapsed(), tool.ran()), (Duration::from_secs(60), 0));
}

#[tokio::test]
async fn an_approver_that_fails_fails_the_run_and_the_tool_does_not_run() {
    let broken = |_: RunCx, _: ApprovalRequest| async { Err(Error::new(ErrorKind::Transport, "console gone")) };
    let tool = Doubler::under(Approval::new().ask("*").decide_with(broken));
    let run = root(|_| {});
    let e = tool.call(f(run.cx(), "c1")).await.expect_err("fails");
    assert_eq!((e.context("middleware"), tool.ran()), (Some("approval"), 0));
}

#[tokio::test]
async fn a_decision_holds_over_a_restart_of_the_call() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = asked.clone();
    let decide = move |_: RunCx, _: ApprovalRequest| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(Decision::edit(json!({"x": 5}))) }
    };
    let list = alone(Approval::new().ask("*").decide_with(decide));
    let crashes = tool_stack(&list, |_| async { Err(Error::new(ErrorKind::Store, "disk full")) });
    let run = root(|_| {});
    crashes.oneshot(f(run.cx(), "c1")).await.expect_err("the process dies in the middle of the call");
    let works = tool_stack(&list, |req: ToolRequest| async move { Ok(ToolOutput::text(req.args["x"].to_string())) });
    let again = restarted(&run, |_| {});
    let out = works.oneshot(f(again.cx(), "c1")).await.expect("runs");
    assert_eq!(out.to_text(), "The parameters for tool 'f' were changed by the user to: {\"x\":5}\n5");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nothing_but_standing_rules_is_left_of_a_finished_run() {
    let tool = Doubler::under(Approval::new().ask("*"));
    for answer in [json!({"decision": "approve"}), json!({"decision": "reject"}), json!(7)] {
        let (run, out) = answered(&tool, answer).await;
        out.expect("is told");
        begin(&tool.list, run.cx()).await;
        end(&tool.list, run.cx(), finished(run.cx())).await;
        assert!(run.cx().globals().snapshot().is_empty());
    }
}

#[test]
fn decisions_are_the_json_that_they_are_documented_to_be() {
    for (decision, json) in [
        (Decision::approve(), json!({"decision": "approve"})),
        (
            Decision::Approve { remember: Some(Remember::Call), always: false },
            json!({"decision": "approve", "remember": "call"}),
        ),
        (Decision::edit(json!({"x": 1})), json!({"decision": "edit", "arguments": {"x": 1}})),
        (Decision::reject("no"), json!({"decision": "reject", "reason": "no"})),
        (Decision::respond("hi"), json!({"decision": "respond", "content": "hi"})),
    ] {
        assert_eq!(serde_json::to_value(&decision).expect("serialises"), json);
        assert_eq!(serde_json::from_value::<Decision>(json).expect("parses"), decision);
    }
}
