//! A model that calls other agents.

use crate::common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agent_core::{
    Checkpoint, Effect, Error, ErrorKind, ExitReason, Finished, History, Middleware, Question, Result, RunEnd,
    RunRequest, Tool, ToolOutput,
    engine::{RunDriver, RunParts},
    run::{RunInput, checkpoint::ChildRun},
    tool::Reconciled,
};
use agent_middleware::Delegation;
use common::{alone, begin, call, end, finished, root};
use futures::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::service_fn;

fn finishes(req: &RunRequest, answer: impl Into<String>, reason: ExitReason) -> Result<RunEnd> {
    let parent = req.parent.as_ref().expect("runs below another");
    let ids = parent.cx.ids().child("some other name", None, req.run_id.clone());
    Ok(RunEnd::Finished(Box::new(Finished::new(ids, answer, reason, History::default()))))
}

/// Returns the message that the sub-agent received.
fn message(req: &RunRequest) -> String {
    match &req.input {
        RunInput::Messages(messages) => messages[0].text(),
        _ => panic!("not a new run"),
    }
}

/// Adds an agent that repeats its message.
fn echo(delegation: Delegation, key: &str) -> Delegation {
    delegation.to(
        key,
        format!("Says {key}."),
        service_fn(|req| async move { finishes(&req, message(&req), ExitReason::Text) }),
    )
}

/// Creates a run with the agents of `delegation`.
fn run_with(delegation: &Delegation, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    root(|parts| {
        parts.sub_agents = delegation.sub_agents().into_iter().collect();
        edit(parts);
    })
}

async fn delegate(
    delegation: &Delegation,
    run: &RunDriver,
    id: &str,
    agent: &str,
    message: &str,
) -> Result<ToolOutput> {
    let req = call(run.cx(), id, "delegate", json!({"agent": agent, "message": message}));
    delegation.tools()[0].call(req).await
}

// NexAU 59
#[test]
fn one_tool_lists_the_keys_and_takes_no_others() {
    let delegation = echo(echo(Delegation::new(), "writer"), "critic");
    let [tool] = &delegation.tools()[..] else { panic!("one tool") };
    let spec = tool.spec();
    assert_eq!(spec.name, "delegate");
    assert_eq!(spec.parameters["properties"]["agent"]["enum"], json!(["writer", "critic"]));
    assert!(spec.description.ends_with("\n- **writer**: Says writer.\n- **critic**: Says critic."));
    assert_eq!(tool.options().cancel_grace, Duration::from_millis(50));
}

#[tokio::test]
async fn one_tool_per_agent_is_named_by_its_key() {
    let delegation = echo(echo(Delegation::new(), "writer"), "critic").one_tool_per_agent();
    let tools = delegation.tools();
    let specs: Vec<_> = tools.iter().map(Tool::spec).collect();
    assert_eq!([&*specs[0].name, &*specs[1].description], ["writer", "Says critic."]);
    let run = run_with(&delegation, |_| {});
    let out = tools[1].call(call(run.cx(), "c", "critic", json!({"message": "hm"}))).await.expect("answers");
    assert_eq!(out.as_value().expect("value")["agent"], "critic");
}

#[tokio::test]
async fn the_model_sees_the_answer_and_a_program_sees_whose_it_is() {
    let delegation = echo(Delegation::new(), "writer");
    let run = run_with(&delegation, |_| {});
    let out = delegate(&delegation, &run, "c", "writer", "hello").await.expect("answers");
    assert_eq!((out.to_text().as_str(), out.is_error()), ("hello", false));
    let value = out.as_value().expect("value");
    assert_eq!(
        (&value["agent"], &value["answer"], &value["reason"]),
        (&json!("writer"), &json!("hello"), &json!("text"))
    );
    assert_eq!(value["run_id"].as_str().expect("an id").len(), 32);
}

#[tokio::test]
async fn a_sub_agent_that_was_not_done_says_so_in_brackets() {
    for (answer, reason, shown) in [
        ("half", ExitReason::StepLimit, "half\n\n[Sub-agent 'a' reached its step limit before it was done.]"),
        ("", ExitReason::Stopped("limit: 3 model calls".into()), "[Sub-agent 'a' was stopped: limit: 3 model calls.]"),
        ("", ExitReason::Text, "[Sub-agent 'a' gave no answer.]"),
    ] {
        let agent = service_fn(move |req| {
            let reason = reason.clone();
            async move { finishes(&req, answer, reason) }
        });
        let delegation = Delegation::new().to("a", "", agent);
        let run = run_with(&delegation, |_| {});
        assert_eq!(delegate(&delegation, &run, "c", "a", "go").await.expect("answers").to_text(), shown);
    }
}

// NexAU 59
#[tokio::test]
async fn another_name_than_the_key_is_not_found_and_the_keys_are_listed() {
    let delegation = echo(echo(Delegation::new(), "writer"), "critic");
    let run = run_with(&delegation, |_| {});
    let e = delegate(&delegation, &run, "c", "some other name", "go").await.expect_err("not found");
    assert_eq!(e.kind(), ErrorKind::SubAgentNotFound);
    assert!(e.message().ends_with("critic, writer"), "{e}");
}

#[tokio::test]
async fn a_failed_sub_agent_is_a_failed_call_that_has_its_id() {
    let fails = service_fn(|req: RunRequest| async move {
        let parent = req.parent.clone().expect("runs below another");
        let ids = parent.cx.ids().child("a", None, req.run_id.clone());
        let e = Error::new(ErrorKind::Authentication, "the key was refused");
        Err::<RunEnd, _>(e.with_checkpoint(Checkpoint::new(ids, "f")))
    });
    let delegation = Delegation::new().to("a", "", fails);
    let run = run_with(&delegation, |_| {});
    let e = delegate(&delegation, &run, "c", "a", "go").await.expect_err("fails");
    assert_eq!(e.kind(), ErrorKind::Tool, "the model is told and the run goes on");
    let id = e.message().strip_prefix("Sub-agent 'a' failed (id ").expect("has the id");
    assert!(id.ends_with("): the key was refused") && id.len() > 32, "{e}");
}

#[tokio::test]
async fn agents_are_nested_no_deeper_than_allowed() {
    let delegation = echo(Delegation::new(), "a").max_depth(1);
    let run = run_with(&delegation, |_| {});
    delegate(&delegation, &run, "c", "a", "go").await.expect("answers");
    let child = common::below(run.cx(), |parts| parts.sub_agents = delegation.sub_agents().into_iter().collect());
    let e = delegate(&delegation, &child, "c", "a", "go").await.expect_err("too deep");
    assert!(e.kind() == ErrorKind::Tool && e.message().contains("at most 1 deep"), "{e}");
}

#[tokio::test(start_paused = true)]
async fn as_many_sub_agents_run_at_once_as_are_allowed_and_all_get_their_own_answer() {
    let (running, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = peak.clone();
    let agent = service_fn(move |req: RunRequest| {
        let (running, peak) = (running.clone(), peak.clone());
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            finishes(&req, message(&req), ExitReason::Text)
        }
    });
    let delegation = Delegation::new().to("a", "", agent).max_concurrent(3);
    let run = run_with(&delegation, |_| {});
    let names: Vec<_> = (0..10).map(|i| i.to_string()).collect();
    let start = Instant::now();
    let outs = join_all(names.iter().map(|name| delegate(&delegation, &run, name, "a", name))).await;
    let texts: Vec<_> = outs.into_iter().map(|out| out.expect("answers").to_text()).collect();
    assert_eq!(texts, names);
    assert_eq!((highest.load(Ordering::SeqCst), start.elapsed()), (3, Duration::from_secs(4)));
}

#[tokio::test(start_paused = true)]
async fn a_run_below_does_not_wait_for_the_run_above() {
    // Both levels share the middleware and may have one sub-agent each.
    let inner = echo(Delegation::new(), "leaf").max_concurrent(1);
    let shared = Arc::new(inner);
    let below = shared.clone();
    let middle = service_fn(move |req: RunRequest| {
        let below = below.clone();
        async move {
            let parent = req.parent.as_ref().expect("runs below another").cx.clone();
            let run = common::below(&parent, |parts| parts.sub_agents = below.sub_agents().into_iter().collect());
            let out = delegate(&below, &run, "c", "leaf", "deep").await?;
            finishes(&req, out.to_text(), ExitReason::Text)
        }
    });
    let outer = Delegation::new().to("middle", "", middle).max_concurrent(1);
    let run = run_with(&outer, |_| {});
    let out = tokio::time::timeout(Duration::from_secs(1), delegate(&outer, &run, "c", "middle", "go")).await;
    assert_eq!(out.expect("no deadlock").expect("answers").to_text(), "deep");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_turn_ends_at_once_when_the_run_is_cancelled() {
    let hangs = service_fn(|_: RunRequest| std::future::pending::<Result<RunEnd>>());
    let delegation = Delegation::new().to("a", "", hangs).max_concurrent(1);
    let run = run_with(&delegation, |_| {});
    let first = delegate(&delegation, &run, "1", "a", "go");
    let second = async {
        sleep(Duration::from_secs(1)).await;
        let waiting = delegate(&delegation, &run, "2", "a", "go");
        let cancel = async {
            sleep(Duration::from_secs(1)).await;
            run.cx().cancellation().cancel();
        };
        tokio::join!(waiting, cancel).0
    };
    tokio::select! {
        _ = first => panic!("hangs"),
        out = second => assert_eq!(out.expect_err("cancelled").kind(), ErrorKind::Cancelled),
    }
}

#[tokio::test]
async fn a_sub_agent_that_waits_suspends_the_call_and_goes_on_with_the_answer() {
    let agent = service_fn(|req: RunRequest| async move {
        match &req.input {
            RunInput::Messages(_) => {
                let ids = req.parent.as_ref().expect("below").cx.ids().child("a", None, req.run_id.clone());
                let mut checkpoint = Checkpoint::new(ids, "f");
                checkpoint.questions.push(Question::new("c9/approval", "approval", json!({})));
                Ok(RunEnd::Interrupted(Box::new(checkpoint)))
            }
            RunInput::Resume { answers, .. } => {
                finishes(&req, answers["c9/approval"].value.to_string(), ExitReason::Text)
            }
            _ => Err(Error::config("no such input")),
        }
    });
    let delegation = Delegation::new().to("a", "", agent);
    let run = run_with(&delegation, |_| {});
    let e = delegate(&delegation, &run, "c1", "a", "go").await.expect_err("waits");
    assert_eq!((e.kind(), e.questions()[0].id.as_str()), (ErrorKind::Interrupted, "c1/c9/approval"));

    let child = e.into_suspension().1.expect("where it stands");
    let mut known = ChildRun::new("c1".into(), "a", child.ids.run_id.clone());
    known.checkpoint = Some(child);
    let run = run_with(&delegation, |parts| {
        parts.answers.insert("c1/c9/approval".into(), json!("yes").into());
        let mut stands = Checkpoint::new((*parts.ids).clone(), "f");
        stands.children.push(known);
        parts.log.adopt(&stands);
    });
    let req = call(run.cx(), "c1", "delegate", json!({"agent": "a", "message": "go"}));
    assert_eq!(delegation.tools()[0].call(req).await.expect("answers").to_text(), "\"yes\"");
}

#[tokio::test]
async fn after_a_crash_a_call_whose_sub_agent_is_unknown_did_not_happen() {
    let delegation = echo(Delegation::new(), "a");
    let tool = &delegation.tools()[0];
    assert_eq!(tool.options().effect, Effect::Reconcilable);
    let run = run_with(&delegation, |_| {});
    let req = call(run.cx(), "c1", "delegate", json!({"agent": "a", "message": "go"}));
    assert_eq!(tool.reconcile(req).await.expect("knows"), Reconciled::DidNot);
}

#[tokio::test]
async fn nothing_is_kept_of_a_run_that_ended() {
    let delegation = echo(Delegation::new(), "a");
    let fresh = format!("{delegation:?}");
    let run = run_with(&delegation, |_| {});
    delegate(&delegation, &run, "c", "a", "go").await.expect("answers");
    assert_ne!(format!("{delegation:?}"), fresh, "the run has a place for its sub-agents");
    delegation.after_agent(run.cx(), &mut finished(run.cx())).await.expect("ends");
    assert_eq!(format!("{delegation:?}"), fresh);
    let list = alone(delegation);
    begin(&list, run.cx()).await;
    end(&list, run.cx(), finished(run.cx())).await;
}
