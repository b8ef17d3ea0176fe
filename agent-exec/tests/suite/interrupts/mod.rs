//! Runs that wait for answers, and resume in another process.

mod answers;
mod approval;
mod breakpoints;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use agent_core::{
    Checkpoint, Error, ErrorKind, Finished, Flow, Middleware, Result, RunCx, RunRequest, ToolNext, ToolOutput,
    ToolRequest, async_trait,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};

use crate::common::{FnTool, Log, finished, hooks, results, roles, stopped, tool};

/// Returns a tool that logs each of its calls with its argument.
fn noted(name: &'static str, log: &Log) -> FnTool {
    let log = log.clone();
    tool(name, move |req| {
        log.note(format!("{name}({})", req.args["x"]));
        async move { Ok(ToolOutput::text(name)) }
    })
}

/// Asks before the tool `delete` runs, and logs each check.
fn guard(log: &Log) -> impl Middleware + use<> {
    let log = log.clone();
    hooks::before_tool(move |_, req| {
        if &*req.call.name != "delete" {
            return Ok(Flow::Continue);
        }
        log.note(format!("guard looks at {} (resumed: {})", req.call.id, req.resumed));
        let approved: bool = req.ask("approval", (*req.args).clone())?;
        Ok(if approved { Flow::Continue } else { Flow::Answer(ToolOutput::error("Rejected.")) })
    })
}

/// Builds an agent anew, as each process does: two tools, one of which is guarded.
fn guarded(model: &ScriptedModel, log: &Log) -> Agent {
    let builder = Agent::builder("a", model.clone()).tool(noted("read", log)).tool(noted("delete", log));
    builder.middleware(guard(log)).build().expect("builds")
}

fn ids(checkpoint: &Checkpoint) -> Vec<&str> {
    checkpoint.questions.iter().map(|q| q.id.as_str()).collect()
}

fn answers<const N: usize>(given: [(&str, Value); N]) -> [(String, Value); N] {
    given.map(|(id, answer)| (id.to_owned(), answer))
}

fn resume<const N: usize>(checkpoint: Checkpoint, given: [(&str, Value); N]) -> RunRequest {
    RunRequest::resume(checkpoint, answers(given))
}

async fn stop(builder: AgentBuilder) -> Checkpoint {
    let (kind, checkpoint) = stopped(builder.build().expect("builds").run("go").await);
    assert_eq!(kind, "interrupted");
    checkpoint
}

async fn go_on<const N: usize>(
    builder: AgentBuilder,
    checkpoint: Checkpoint,
    given: [(&str, Value); N],
) -> Result<Finished> {
    let end = builder.build().expect("builds").start(resume(checkpoint, given)).await;
    end.map(|end| finished(Ok(end)))
}

// --- a question about a call ---

#[tokio::test]
async fn a_suspended_run_goes_on_in_another_process_and_runs_only_what_was_open() {
    let log = Log::default();
    let calls = [("1", "read", json!({"x": 1})), ("2", "delete", json!({"x": 2})), ("3", "delete", json!({"x": 3}))];
    let first = ScriptedModel::new([Turn::calls(calls)]);
    let (kind, checkpoint) = stopped(guarded(&first, &log).run("tidy up").await);
    assert_eq!((kind, ids(&checkpoint)), ("interrupted", vec!["2/approval", "3/approval"]), "both are asked at once");
    assert_eq!(checkpoint.questions[0].payload, json!({"x": 2}));
    assert_eq!(
        log.seen(),
        ["read(1)", "guard looks at 2 (resumed: false)", "guard looks at 3 (resumed: false)"].map(String::from)
    );

    // One answer now; the other question stays open and is not asked twice.
    let (log, second) = (Log::default(), ScriptedModel::new([Turn::text("tidied")]));
    let agent = guarded(&second, &log);
    let (_, checkpoint) = stopped(agent.start(resume(checkpoint, [("2/approval", json!(true))])).await);
    assert_eq!(ids(&checkpoint), ["3/approval"]);
    let end = finished(agent.start(resume(checkpoint, [("3/approval", json!(false))])).await);
    assert_eq!(end.answer, "tidied");
    let ran: Vec<_> = log.seen().into_iter().filter(|line| !line.starts_with("guard")).collect();
    assert_eq!(ran, ["delete(2)"], "the sibling that was done is not run again");
    let told = [("1", "read", false), ("2", "delete", false), ("3", "Rejected.", true)];
    assert_eq!(results(&end.history), told.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed)));
    assert_eq!((end.steps, end.tool_calls["read"], end.tool_calls["delete"]), (2, 1, 1));
    assert_eq!((first.calls(), second.calls()), (1, 1), "the step's model call is not repeated");
}

#[tokio::test]
async fn hooks_of_what_is_finished_do_not_run_again_and_what_is_gone_on_with_is_marked() {
    let log = Log::default();
    let model = ScriptedModel::new([
        Turn::calls([("1", "read", json!({"x": 1})), ("2", "delete", json!({"x": 2}))]),
        Turn::call("3", "read", json!({"x": 3})),
        Turn::text("done"),
    ]);
    let (_, checkpoint) = stopped(guarded(&model, &log).run("go").await);
    let (log, trace) = (Log::default(), HookTrace::new("h"));
    let agent = Agent::builder("a", model.clone())
        .tool(noted("read", &log))
        .tool(noted("delete", &log))
        .middleware(guard(&log))
        .middleware(trace.clone());
    // The trace is an additional middleware, hence another agent.
    let request = resume(checkpoint, [("2/approval", json!(true))]).allow_changed_agent();
    finished(agent.build().expect("builds").start(request).await);
    let mut seen = trace.seen();
    seen.retain(|line| !line.ends_with("chunk") && !line.contains('>') && !line.contains('<'));
    let step = ["h.before_tools", "h.before_tool(delete)", "h.after_tool(delete)", "h.after_tools"];
    let next = ["h.before_model", "h.after_model"];
    let rest = ["h.before_tools", "h.before_tool(read)", "h.after_tool(read)", "h.after_tools"];
    let end = ["h.before_model", "h.after_model", "h.on_exit(text)", "h.after_agent(finished)"];
    let all = [&["h.before_agent"][..], &step, &next, &rest, &end].concat();
    assert_eq!(seen, all);
    assert_eq!(log.seen()[0], "guard looks at 2 (resumed: true)");
    assert!(model.requests().iter().all(|request| !request.resumed), "no model call was under way");
}

/// Turns every failure of a tool into a friendly output.
struct Swallows;

#[async_trait]
impl Middleware for Swallows {
    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        Ok(next.run(req).await.unwrap_or_else(|_| ToolOutput::text("all is well")))
    }
}

fn asking(name: &'static str, log: &Log) -> FnTool {
    let log = log.clone();
    tool(name, move |req| {
        let log = log.clone();
        async move {
            let answer: String = req.ask("input", json!("your name?"))?;
            log.note(format!("{name} got {answer}"));
            Ok(ToolOutput::text(answer))
        }
    })
}

#[tokio::test]
async fn a_layer_that_swallows_the_interruption_cannot_swallow_the_pause() {
    let (log, model) = (Log::default(), ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]));
    let build = || Agent::builder("a", model.clone()).tool(asking("t", &log)).middleware(Swallows);
    let checkpoint = stop(build()).await;
    assert_eq!((ids(&checkpoint), model.calls()), (vec!["1/input"], 1));
    let end = go_on(build(), checkpoint, [("1/input", json!("Ada"))]).await.expect("goes on");
    assert_eq!(results(&end.history), [("1".to_owned(), "Ada".to_owned(), false)]);
    assert_eq!(log.seen(), ["t got Ada"]);
}

#[tokio::test]
async fn a_call_that_asked_from_inside_its_tool_counts_once() {
    let (log, model) = (Log::default(), ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]));
    let build = || Agent::builder("a", model.clone()).tool(asking("t", &log));
    let checkpoint = stop(build()).await;
    let end = go_on(build(), checkpoint, [("1/input", json!("Ada"))]).await.expect("goes on");
    assert_eq!(end.tool_calls["t"], 1);
}

#[tokio::test]
async fn an_answer_is_for_one_call_and_not_for_a_later_one_with_the_same_id() {
    // Many models number calls from the start of each message.
    let log = Log::default();
    let delete = |x: u32| Turn::call("call_0", "delete", json!({"x": x}));
    let model = ScriptedModel::new([delete(1), delete(2), Turn::text("done")]);
    let agent = guarded(&model, &log);
    let (_, checkpoint) = stopped(agent.run("go").await);
    let (kind, checkpoint) = stopped(agent.start(resume(checkpoint, [("call_0/approval", json!(true))])).await);
    assert_eq!((kind, ids(&checkpoint)), ("interrupted", vec!["call_0/approval"]), "it is asked again");
    assert_eq!(checkpoint.questions[0].payload, json!({"x": 2}));
    let end = finished(agent.start(resume(checkpoint, [("call_0/approval", json!(false))])).await);
    assert_eq!(end.tool_calls["delete"], 1);
}

#[tokio::test]
async fn an_idempotency_key_is_the_calls_own_and_the_same_at_every_attempt() {
    let keys = Log::default();
    let log = keys.clone();
    let keyed = move |req: ToolRequest| {
        log.note(req.idempotency_key());
        async move { req.ask::<bool>("go", json!(null)).map(|_| ToolOutput::text("ok")) }
    };
    let call = || Turn::call("call_0", "t", json!({}));
    let model = ScriptedModel::new([call(), call(), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(tool("t", keyed)).build().expect("builds");
    let (_, checkpoint) = stopped(agent.run("go").await);
    let (_, checkpoint) = stopped(agent.start(resume(checkpoint, [("call_0/go", json!(true))])).await);
    finished(agent.start(resume(checkpoint, [("call_0/go", json!(true))])).await);
    let [first, again, second, second_again] = &keys.seen()[..] else { panic!("{:?}", keys.seen()) };
    assert_eq!((first, second), (again, second_again));
    assert_ne!(first, second, "another step's call is another effect");
}

// --- a question about a step ---

#[tokio::test]
async fn a_question_before_the_model_call_is_asked_once_and_the_call_is_made_after_it() {
    let model = ScriptedModel::new([Turn::text("done")]);
    let asked = Arc::new(AtomicU32::new(0));
    let build = || {
        let asked = asked.clone();
        Agent::builder("a", model.clone()).middleware(hooks::before_model(move |cx, req| {
            asked.fetch_add(1, Ordering::SeqCst);
            let topic: String = cx.ask("topic", json!("what about?"))?;
            req.messages.push(agent_core::Message::user(topic))?;
            Ok(Flow::Continue)
        }))
    };
    let checkpoint = stop(build()).await;
    assert_eq!((ids(&checkpoint), checkpoint.step, model.calls()), (vec!["step-1/topic"], 0, 0));
    let end = go_on(build(), checkpoint, [("step-1/topic", json!("birds"))]).await.expect("goes on");
    let request = &model.requests()[0];
    assert_eq!((request.texts(), request.resumed), (vec!["go".to_owned(), "birds".to_owned()], true));
    assert_eq!((end.steps, roles(&end.history)), (1, vec!["user", "assistant"]));
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once per attempt");
}

#[tokio::test]
async fn a_question_before_the_tools_run_holds_all_of_them() {
    let (log, model) = (
        Log::default(),
        ScriptedModel::new([
            Turn::calls([("1", "read", json!({"x": 1})), ("2", "read", json!({"x": 2}))]),
            Turn::text("done"),
        ]),
    );
    let build = || {
        Agent::builder("a", model.clone()).tool(noted("read", &log)).middleware(hooks::before_tools(|cx, batch| {
            if !cx.ask::<bool>("batch", json!(batch.calls.len()))? {
                batch.calls.clear();
            }
            Ok(())
        }))
    };
    let checkpoint = stop(build()).await;
    assert!(log.seen().is_empty());
    go_on(build(), checkpoint, [("step-1/batch", json!(true))]).await.expect("goes on");
    assert_eq!(log.seen(), ["read(1)", "read(2)"]);
}

#[tokio::test]
async fn a_question_after_a_tool_ran_does_not_run_it_again() {
    let (log, model) =
        (Log::default(), ScriptedModel::new([Turn::call("1", "read", json!({"x": 1})), Turn::text("done")]));
    let build = || {
        Agent::builder("a", model.clone()).tool(noted("read", &log)).middleware(hooks::after_tool(|_, req, output| {
            let shown: String = req.ask("release", json!(output.to_text()))?;
            *output = ToolOutput::text(shown);
            Ok(())
        }))
    };
    let checkpoint = stop(build()).await;
    assert_eq!(checkpoint.questions[0].payload, json!("read"));
    let end = go_on(build(), checkpoint, [("1/release", json!("released"))]).await.expect("goes on");
    assert_eq!((log.seen(), end.tool_calls["read"]), (vec!["read(1)".to_owned()], 1));
    assert_eq!(results(&end.history), [("1".to_owned(), "released".to_owned(), false)]);
}

#[tokio::test]
async fn a_question_after_the_tools_ran_does_not_run_them_again() {
    let (log, model) =
        (Log::default(), ScriptedModel::new([Turn::call("1", "read", json!({"x": 1})), Turn::text("done")]));
    let build = || {
        Agent::builder("a", model.clone()).tool(noted("read", &log)).middleware(hooks::after_tools(|cx, results| {
            results.results[0].output = ToolOutput::text(cx.ask::<String>("review", json!("fine?"))?);
            Ok(agent_core::Verdict::Proceed)
        }))
    };
    let checkpoint = stop(build()).await;
    let end = go_on(build(), checkpoint, [("step-1/review", json!("reviewed"))]).await.expect("goes on");
    assert_eq!(log.seen(), ["read(1)"]);
    assert_eq!(results(&end.history), [("1".to_owned(), "reviewed".to_owned(), false)]);
    model.assert_finished();
}

/// Asks for a name and throws a die before the run begins.
struct Opening(Arc<AtomicU32>);

#[async_trait]
impl Middleware for Opening {
    async fn before_agent(&self, cx: &RunCx) -> Result<()> {
        let die = decide(cx, "die", &self.0).await?;
        let name: String = cx.ask("name", json!("who are you?"))?;
        cx.globals().set_value("opening", json!([die, name]));
        Ok(())
    }
}

#[tokio::test]
async fn what_is_asked_and_decided_before_the_run_holds_for_all_of_it() {
    let (log, thrown) = (Log::default(), Arc::new(AtomicU32::new(0)));
    let model = ScriptedModel::new([
        Turn::call("1", "read", json!({"x": 1})),
        Turn::call("2", "t", json!({})),
        Turn::text("done"),
    ]);
    let globals = agent_core::GlobalStorage::default();
    let build = || {
        let builder = Agent::builder("a", model.clone()).middleware(Opening(thrown.clone())).globals(globals.clone());
        builder.tool(noted("read", &log)).tool(asking("t", &log))
    };
    let checkpoint = stop(build()).await;
    assert_eq!(ids(&checkpoint), ["step-0/name"]);
    let end = build().build().expect("builds").start(resume(checkpoint, [("step-0/name", json!("Ada"))])).await;
    let (_, checkpoint) = stopped(end);
    assert_eq!(ids(&checkpoint), ["2/input"], "in the second step");
    go_on(build(), checkpoint, [("2/input", json!("Bo"))]).await.expect("goes on without asking for the name again");
    assert_eq!((globals.snapshot()["opening"].clone(), thrown.load(Ordering::SeqCst)), (json!([1, "Ada"]), 1));
}

// --- what is refused ---

#[tokio::test]
async fn a_checkpoint_of_another_agent_is_refused_with_what_differs_unless_it_is_wanted() {
    let (log, model) = (Log::default(), ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]));
    let checkpoint = stop(Agent::builder("a", model.clone()).tool(asking("t", &log))).await;
    let other = || Agent::builder("a", model.clone()).tool(asking("t", &log)).tool(noted("more", &log));
    let given = [("1/input", json!("Ada"))];
    let e = go_on(other(), checkpoint.clone(), given.clone()).await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::Config);
    assert!(e.message().ends_with("- tools: t\n+ tools: more, t"), "{e}");
    assert!(log.seen().is_empty());
    let request = resume(checkpoint, given).allow_changed_agent();
    assert_eq!(finished(other().build().expect("builds").start(request).await).answer, "done");
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_refused_with_what_was_asked() {
    let (log, model) = (Log::default(), ScriptedModel::new([Turn::call("1", "t", json!({}))]));
    let build = || Agent::builder("a", model.clone()).tool(asking("t", &log));
    let checkpoint = stop(build()).await;
    let e = go_on(build(), checkpoint, [("2/input", json!("Ada"))]).await.expect_err("refused");
    assert_eq!(
        (e.kind(), e.message()),
        (ErrorKind::AnswerRefused, "the answer to '2/input': nobody asked it; the open questions are: 1/input")
    );
}

#[tokio::test]
async fn an_answer_of_another_form_is_an_error_and_the_checkpoint_still_takes_a_right_one() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "delete", json!({"x": 1})), Turn::text("done")]);
    let agent = guarded(&model, &log);
    let (_, checkpoint) = stopped(agent.run("go").await);
    let e = agent.start(resume(checkpoint.clone(), [("1/approval", json!("maybe"))])).await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::InvalidRequest);
    assert!(e.message().contains("the answer has another form"), "{e}");
    assert!(!log.seen().contains(&"delete(1)".to_owned()), "what was not approved did not run");
    finished(agent.start(resume(checkpoint, [("1/approval", json!(true))])).await);
    assert!(log.seen().contains(&"delete(1)".to_owned()));
}

// --- decisions ---

/// Makes the decision `name`: the number of decisions so far.
async fn decide(cx: &RunCx, name: &str, made: &AtomicU32) -> Result<Value> {
    cx.decide(name, async { Ok(json!(made.fetch_add(1, Ordering::SeqCst) + 1)) }).await
}

#[tokio::test]
async fn a_decision_is_not_made_twice_across_a_resume() {
    let (made, model) =
        (Arc::new(AtomicU32::new(0)), ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]));
    let build = || {
        let made = made.clone();
        Agent::builder("a", model.clone()).tool(tool("t", move |req| {
            let made = made.clone();
            async move {
                let (port, name) = (decide(&req.cx, "port", &made).await?, decide(&req.cx, "name", &made).await?);
                req.ask::<bool>("go", json!(null))?;
                Ok(ToolOutput::value(json!([port, name])))
            }
        }))
    };
    let checkpoint = stop(build()).await;
    let end = go_on(build(), checkpoint, [("1/go", json!(true))]).await.expect("goes on");
    assert_eq!(results(&end.history)[0].1, "[1,2]");
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

/// Decides once before each model call.
struct Decides(Arc<AtomicU32>);

#[async_trait]
impl Middleware for Decides {
    async fn before_model(
        &self,
        cx: &RunCx,
        _: &mut agent_core::ModelRequest,
    ) -> Result<Flow<agent_core::ModelResponse>> {
        decide(cx, "route", &self.0).await.map(|_| Flow::Continue)
    }
}

#[tokio::test]
async fn decisions_of_finished_hooks_and_siblings_do_not_stand_in_the_way_of_those_that_are_gone_on_with() {
    let (made, routes) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let model =
        ScriptedModel::new([Turn::calls([("1", "quick", json!({})), ("2", "asks", json!({}))]), Turn::text("done")]);
    let build = || {
        let (quick, asks) = (made.clone(), made.clone());
        Agent::builder("a", model.clone())
            .middleware(Decides(routes.clone()))
            .tool(tool("quick", move |req| {
                let made = quick.clone();
                async move { decide(&req.cx, "quick", &made).await.map(ToolOutput::value) }
            }))
            .tool(tool("asks", move |req| {
                let made = asks.clone();
                async move {
                    let first = decide(&req.cx, "asks", &made).await?;
                    req.ask::<bool>("go", json!(null))?;
                    Ok(ToolOutput::value(first))
                }
            }))
    };
    let checkpoint = stop(build()).await;
    let end = go_on(build(), checkpoint, [("2/go", json!(true))]).await.expect("goes on");
    assert_eq!(results(&end.history), [("1", "1"), ("2", "2")].map(|(id, n)| (id.to_owned(), n.to_owned(), false)));
    assert_eq!((made.load(Ordering::SeqCst), routes.load(Ordering::SeqCst)), (2, 2), "one route per step");
}

// --- semantics of checkpoints ---

#[tokio::test]
async fn a_checkpoint_that_is_gone_on_with_twice_gives_two_runs_that_do_not_touch_each_other() {
    let log = Log::default();
    let turns = [Turn::call("1", "delete", json!({"x": 1})), Turn::text("done"), Turn::text("left alone")];
    let agent = guarded(&ScriptedModel::new(turns), &log);
    let (_, checkpoint) = stopped(agent.run("go").await);
    let yes = finished(agent.start(resume(checkpoint.clone(), [("1/approval", json!(true))])).await);
    let no = finished(agent.start(resume(checkpoint, [("1/approval", json!(false))])).await);
    assert_eq!((yes.answer.as_str(), no.answer.as_str()), ("done", "left alone"));
    assert_eq!((&results(&yes.history)[0].1[..], &results(&no.history)[0].1[..]), ("delete", "Rejected."));
}

#[tokio::test]
async fn a_hook_that_changes_the_end_of_a_suspended_run_into_an_error_leaves_the_checkpoint_in_it() {
    let (log, fail) = (Log::default(), Arc::new(AtomicBool::new(true)));
    let model = ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]);
    let build = || {
        let fail = fail.clone();
        Agent::builder("a", model.clone()).tool(asking("t", &log)).middleware(hooks::after_agent(move |_, _| {
            if fail.swap(false, Ordering::SeqCst) { Err(Error::tool("the disk is full")) } else { Ok(()) }
        }))
    };
    let e = build().build().expect("builds").run("go").await.expect_err("the hook fails");
    assert_eq!(e.context("middleware"), Some("after_agent"));
    let checkpoint = e.checkpoint().expect("the run can go on").clone();
    assert_eq!(ids(&checkpoint), ["1/input"]);
    assert_eq!(go_on(build(), checkpoint, [("1/input", json!("Ada"))]).await.expect("goes on").answer, "done");
}

#[tokio::test]
async fn a_question_of_the_run_in_a_tool_or_in_a_hook_of_its_call_is_refused_with_the_method_to_use() {
    let call = || ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]);
    let in_tool = tool("t", |req: ToolRequest| async move {
        req.cx.ask::<bool>("may", json!({})).map(|may| ToolOutput::text(may.to_string()))
    });
    let in_tool = Agent::builder("a", call()).tool(in_tool);
    let in_hook = hooks::before_tool(|cx, _| cx.ask::<bool>("may", json!({})).map(|_| Flow::Continue));
    let in_hook = Agent::builder("a", call()).tool(noted("t", &Log::default())).middleware(in_hook);
    for builder in [in_tool, in_hook] {
        let error = builder.build().expect("builds").run("go").await.expect_err("it would be the wrong question");
        assert_eq!(error.kind(), ErrorKind::Middleware);
        assert!(error.message().contains("call '1' must be asked with ToolRequest::ask"), "{error}");
    }
}
