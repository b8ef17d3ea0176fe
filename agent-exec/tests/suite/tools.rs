//! Tool calls: concurrent, sequential, failing, unknown and cancelled; and the results that the
//! model receives.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agent_core::{
    Error, ErrorKind, EventKind, ExitReason, Media, MemoryJournal, Part, RunRequest, ToolOutput, ToolSpec,
    testing::{HookTrace, ScriptedModel, Turn},
    tool::OutputText,
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::{FnTool, Log, Watch, double, fails, finished, gives, hooks, ms, results, slow, tool};

/// Builds an agent whose model calls these tools in one message, by id and name, and then says
/// "done".
fn calling<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> AgentBuilder {
    let calls = calls.into_iter().map(|(id, name)| (id, name, json!({})));
    Agent::builder("a", ScriptedModel::new([Turn::calls(calls), Turn::text("done")]))
}

async fn run(builder: AgentBuilder) -> agent_core::Finished {
    finished(builder.build().expect("builds").run("go").await)
}

/// Returns the result that the model receives from a tool, and whether it is an error.
async fn told(tool: FnTool) -> (String, bool) {
    let name = agent_core::Tool::spec(&tool).name;
    let end = run(calling([("1", &*name)]).tool(tool)).await;
    let (_, text, is_error) = results(&end.history).remove(0);
    (text, is_error)
}

/// Returns a tool that counts its concurrent calls, and records the peak.
fn crowd(name: &str, millis: u64, peak: &Arc<AtomicUsize>) -> FnTool {
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), peak.clone());
    tool(name, move |_| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(ms(millis)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("ok"))
        }
    })
}

// --- side by side ---

// NexAU 11
#[tokio::test(start_paused = true)]
async fn the_calls_of_one_message_run_together_and_share_a_batch() {
    let log = Log::default();
    let noted = log.clone();
    let sleeper = tool("sleep", move |req| {
        noted.note(format!("{} in batch {}", req.call.id, req.batch));
        async {
            tokio::time::sleep(ms(100)).await;
            Ok(ToolOutput::text("ok"))
        }
    });
    let three = ["1", "2", "3"].map(|id| (id, "sleep", json!({})));
    let model = ScriptedModel::new([Turn::calls(three), Turn::call("4", "sleep", json!({})), Turn::text("done")]);
    let started = Instant::now();
    run(Agent::builder("a", model).tool(sleeper)).await;
    assert_eq!(started.elapsed(), ms(200), "two batches of 100 ms each");
    assert_eq!(log.seen(), ["1 in batch 1", "2 in batch 1", "3 in batch 1", "4 in batch 2"]);
}

// NexAU 12 (B)
#[tokio::test(start_paused = true)]
async fn results_are_in_call_order_whichever_call_is_done_first() {
    let log = Log::default();
    let serial = slow("serial", 10, &log).with(agent_core::ToolOptions::serial);
    let builder = calling([("a", "slow"), ("s", "serial"), ("b", "mid"), ("c", "fast")])
        .tools([("slow", 300), ("mid", 200), ("fast", 100)].map(|(name, t)| Arc::new(slow(name, t, &log)) as _))
        .tool(serial);
    let end = run(builder).await;
    let order: Vec<_> = results(&end.history).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(order, ["a", "s", "b", "c"]);
    let ends: Vec<_> = log.seen().into_iter().filter(|line| line.ends_with("ends")).collect();
    assert_eq!(ends, ["a ends", "s ends", "c ends", "b ends"]);
}

// NexAU 13
#[tokio::test(start_paused = true)]
async fn a_serial_tool_never_runs_beside_another_call() {
    let log = Log::default();
    let builder = calling([("1", "f"), ("2", "serial"), ("3", "f"), ("4", "serial")])
        .tool(slow("f", 50, &log))
        .tool(slow("serial", 50, &log).with(agent_core::ToolOptions::serial));
    run(builder).await;
    let seen = log.seen();
    for id in ["2", "4"] {
        let begins = seen.iter().position(|line| *line == format!("{id} begins")).expect("ran");
        assert_eq!(seen[begins + 1], format!("{id} ends"), "{seen:?}");
    }
}

// NexAU 13 (B), Haystack 38
#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_the_agent_allows() {
    for (limit, elapsed) in [(1, 600), (2, 300), (4, 200), (6, 100)] {
        let peak = Arc::default();
        let ids = ["1", "2", "3", "4", "5", "6"];
        let started = Instant::now();
        run(calling(ids.map(|id| (id, "f"))).tool(crowd("f", 100, &peak)).tool_concurrency(limit)).await;
        assert_eq!((peak.load(Ordering::SeqCst), started.elapsed()), (limit, ms(elapsed)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_tool_holds_over_all_runs_and_leaves_other_tools_alone() {
    let (peak, log) = (Arc::default(), Log::default());
    let model = ScriptedModel::new(
        (0..2).map(|_| Turn::calls([("1", "narrow", json!({})), ("2", "narrow", json!({})), ("3", "wide", json!({}))])),
    );
    let agent = Agent::builder("a", model)
        .tool(crowd("narrow", 100, &peak).with(|o| o.concurrency(1)))
        .tool(slow("wide", 100, &log))
        .max_steps(1)
        .build()
        .expect("builds");
    let started = Instant::now();
    let (one, two) = tokio::join!(agent.run("go"), agent.run("go"));
    assert_eq!((finished(one).tool_calls["narrow"], finished(two).tool_calls["narrow"]), (2, 2));
    assert_eq!((peak.load(Ordering::SeqCst), started.elapsed()), (1, ms(400)));
    assert_eq!(log.seen().iter().filter(|line| line.ends_with("begins")).count(), 2);
}

// --- failing ---

// NexAU 14, Haystack 33 (B)
#[tokio::test]
async fn an_unknown_tool_is_told_in_its_place_with_the_names_there_are() {
    let watch = Watch::default();
    let end = run(calling([("1", "ghost"), ("2", "g")]).tool(gives("g", json!("ok"))).middleware(watch.clone())).await;
    let ghost = ("1".to_owned(), "Tool 'ghost' not found. Available tools: g".to_owned(), true);
    assert_eq!(results(&end.history), [ghost.clone(), ("2".into(), "ok".into(), false)]);
    assert!(watch.answered().contains(&ghost));
    assert_eq!(end.tool_calls.into_keys().collect::<Vec<_>>(), ["g"], "what does not exist was not run");
}

// NexAU 15 (B), Haystack 35
#[tokio::test]
async fn a_failing_tool_is_an_error_result_without_cause_or_context_and_hooks_and_events_see_it() {
    let (watch, trace) = (Watch::default(), HookTrace::new("t"));
    let broken = tool("f", async |_| {
        let cause = std::io::Error::other("at src/db.rs:42");
        Err(Error::tool("no such table").with_context("dsn", "user:pass").with_source(cause))
    });
    let end = run(calling([("1", "f")]).tool(broken).middleware(watch.clone()).middleware(trace.clone())).await;
    let told = vec![("1".to_owned(), "no such table".to_owned(), true)];
    assert_eq!((results(&end.history), watch.answered()), (told.clone(), told));
    assert_eq!(trace.seen_of("after_tool("), ["t.after_tool(f)"]);
}

// NexAU 15 (B)
#[tokio::test]
async fn a_tool_that_panics_is_an_error_result_without_the_panics_text() {
    let panics = tool("f", async |_| panic!("secret detail"));
    assert_eq!(told(panics).await, ("Tool 'f' failed unexpectedly.".to_owned(), true));
}

// Haystack 39 (B)
#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_answered_at_its_timeout_and_its_siblings_go_on() {
    let log = Log::default();
    let started = Instant::now();
    let hangs = slow("hangs", 1_000_000, &log).with(|o| o.timeout(ms(50)));
    let end = run(calling([("1", "hangs"), ("2", "f")]).tool(hangs).tool(slow("f", 80, &log))).await;
    assert_eq!(started.elapsed(), ms(80));
    let told = results(&end.history);
    assert_eq!(told[0], ("1".into(), "Tool 'hangs' timed out after 50 ms.".into(), true));
    assert_eq!(told[1], ("2".into(), "2".into(), false));
}

// Haystack 39 (B)
#[tokio::test(start_paused = true)]
async fn a_call_that_was_waiting_for_its_turn_when_the_run_was_cancelled_never_begins() {
    let log = Log::default();
    let patient = slow("f", 100, &log).with(|mut o| {
        o.cancel_grace = ms(1000);
        o
    });
    let agent = calling([("1", "f"), ("2", "f")]).tool(patient).tool_concurrency(1).build().expect("builds");
    let run = agent.start(RunRequest::user("go"));
    let handle = run.handle();
    let (end, ()) = tokio::join!(run, async {
        tokio::time::sleep(ms(50)).await;
        handle.cancel();
    });
    assert_eq!(end.expect("not failed").as_str(), "cancelled");
    assert_eq!(log.seen(), ["1 begins", "1 ends"], "the first used its grace");
}

// Haystack 35 (B)
#[tokio::test(start_paused = true)]
async fn a_failure_can_be_made_to_end_the_run_and_then_says_which_siblings_are_done() {
    let log = Log::default();
    let builder = calling([("1", "f"), ("2", "bad"), ("3", "f")]).tool(slow("f", 100, &log)).tool(fails("bad", "no"));
    let e = builder.raise_tool_errors().build().expect("builds").run("go").await.expect_err("raised");
    assert_eq!((e.kind(), e.message(), e.context("completed")), (ErrorKind::Tool, "no", Some("1, 3")));
    assert_eq!(log.seen().len(), 4, "the siblings were not cut off");
}

// Haystack 33
#[tokio::test(start_paused = true)]
async fn an_unknown_tool_can_be_made_to_end_the_run_when_its_siblings_are_done() {
    let log = Log::default();
    let builder = calling([("1", "f"), ("2", "ghost")]).tool(slow("f", 100, &log)).raise_tool_errors();
    let e = builder.build().expect("builds").run("go").await.expect_err("raised");
    assert_eq!(e.message(), "Tool 'ghost' not found. Available tools: f");
    assert_eq!((e.context("completed"), log.seen().len()), (Some("1"), 2));
}

#[tokio::test]
async fn a_failed_run_that_goes_on_runs_only_what_was_not_done() {
    let (works, log) = (Arc::new(AtomicUsize::new(0)), Log::default());
    let shaky = {
        let works = works.clone();
        tool("shaky", move |_| {
            let first = works.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if first { Err(Error::tool("no")) } else { Ok(ToolOutput::text("now")) } }
        })
    };
    let builder = calling([("1", "f"), ("2", "shaky")])
        .tool(slow("f", 0, &log))
        .tool(shaky.with(|o| o.effect(agent_core::Effect::Idempotent)))
        .raise_tool_errors();
    let agent = builder.build().expect("builds");
    let e = agent.run("go").await.expect_err("raised");
    let end = finished(agent.start(RunRequest::resume(e.checkpoint().expect("carried").clone(), [])).await);
    assert_eq!(results(&end.history), [("1".into(), "1".into(), false), ("2".into(), "now".into(), false)]);
    assert_eq!(log.seen(), ["1 begins", "1 ends"], "never twice");
}

#[tokio::test]
async fn a_hook_that_fails_after_the_tools_does_not_make_them_run_again() {
    let (log, calls) = (Log::default(), AtomicUsize::new(0));
    let fails_once = hooks::after_tools(move |_, _| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::new(ErrorKind::Store, "full")),
        _ => Ok(Default::default()),
    });
    let trace = HookTrace::new("t");
    let builder = calling([("1", "f")]).tool(slow("f", 0, &log)).middleware(fails_once).middleware(trace.clone());
    let agent = builder.build().expect("builds");
    let e = agent.run("go").await.expect_err("the hook fails");
    assert_eq!(e.context("middleware"), Some("after_tools"));
    let end = finished(agent.start(RunRequest::resume(e.checkpoint().expect("carried").clone(), [])).await);
    assert_eq!((end.answer.as_str(), results(&end.history).len()), ("done", 1));
    assert_eq!(log.seen(), ["1 begins", "1 ends"], "never twice");
    assert_eq!(trace.seen_of("before_tools").len(), 1, "nor are the calls prepared again");
}

// --- ids ---

// NexAU 22 (B)
#[tokio::test]
async fn calls_that_share_an_id_are_told_apart_in_the_message_and_in_the_results() {
    let watch = Watch::default();
    let turn = Turn::calls([("dup", "f", json!({"x": 1})), ("dup", "f", json!({"x": 2})), ("", "f", json!({"x": 3}))]);
    let model = ScriptedModel::new([turn, Turn::text("done")]);
    let end = run(Agent::builder("a", model).tool(double("f")).middleware(watch.clone())).await;
    let message = end.history.get(1).and_then(|m| m.as_assistant()).expect("calls");
    let ids: Vec<_> = message.calls().map(|call| call.id.to_string()).collect();
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    let told: Vec<_> = results(&end.history);
    assert_eq!(told.iter().map(|(id, ..)| id.clone()).collect::<Vec<_>>(), ids);
    assert_eq!(told.iter().map(|(_, text, _)| text.as_str()).collect::<Vec<_>>(), ["2", "4", "6"]);
    assert_eq!(watch.answered().len(), 3);
}

// --- rendering of results ---

// NexAU 23, 24, Haystack 32
#[tokio::test]
async fn a_value_is_told_as_the_text_that_says_most_with_least() {
    for (value, text) in [
        (json!("hi"), "hi"),
        (json!(true), "true"),
        (Value::Null, "null"),
        (json!([1, 2, 3]), "[1,2,3]"),
        (json!({"face": "🙂"}), r#"{"face":"🙂"}"#),
        (json!({"content": "x"}), "x"),
        (json!({"content": "x", "returnDisplay": "<b>x</b>"}), "x"),
        (json!({"status": "ok", "stdout": "a\nb"}), "- status: ok\n\na\nb"),
        (json!({"status": "error", "stdout": "a", "stderr": "boom"}), "- status: error\n- stdout: a\n\nboom"),
    ] {
        let failed = value["status"] == "error";
        assert_eq!(told(gives("f", value)).await, (text.to_owned(), failed));
    }
}

// NexAU 23
#[tokio::test]
async fn what_is_for_people_is_kept_in_the_value_and_not_told() {
    let watch = Watch::default();
    let shown = json!({"content": "x", "returnDisplay": "<b>x</b>"});
    run(calling([("1", "f")]).tool(gives("f", shown.clone())).middleware(watch.clone())).await;
    let values = watch.pick(|kind| match kind {
        EventKind::ToolAnswered { output, .. } => output.as_value().cloned(),
        _ => None,
    });
    assert_eq!(values, [shown]);
}

// Haystack 31
#[tokio::test]
async fn a_tool_says_which_part_of_its_value_is_told_and_how() {
    let weather = || gives("f", json!({"weather": "sunny", "temperature": 25}));
    let field = |source: &str, render| OutputText::Field { source: Some(source.into()), render };
    let shout: agent_core::tool::Render =
        Arc::new(|v: &Value| Ok(vec![v.as_str().unwrap_or("?").to_uppercase().into()]));
    let both = OutputText::Fields(vec![("weather".into(), "weather".into()), ("temp".into(), "temperature".into())]);
    for (as_told, text) in [
        (field("weather", None), "sunny"),
        (field("weather", Some(shout)), "SUNNY"),
        (both, r#"{"weather": "sunny", "temp": "25"}"#),
    ] {
        assert_eq!(told(weather().with(|o| o.text(as_told))).await, (text.to_owned(), false));
    }
}

// Haystack 30 (B)
#[tokio::test]
async fn a_rendering_that_fails_or_panics_is_an_error_result_and_the_run_goes_on() {
    let failing: agent_core::tool::Render = Arc::new(|_: &Value| Err(Error::tool("cannot be shown")));
    let panicking: agent_core::tool::Render = Arc::new(|_: &Value| panic!("oops"));
    for (render, text) in [(failing, "cannot be shown"), (panicking, "Tool 'f' failed unexpectedly.")] {
        let shown = OutputText::Field { source: None, render: Some(render) };
        assert_eq!(told(gives("f", json!(1)).with(|o| o.text(shown))).await, (text.to_owned(), true));
    }
}

// NexAU 25, Haystack 31
#[tokio::test]
async fn an_image_reaches_the_model_as_it_is_even_where_the_text_beside_it_is_cut() {
    let image = Part::Image(Media::base64("aGk=".repeat(100), "image/png"));
    let parts = vec![Part::text("x".repeat(50)), image.clone()];
    let shows = tool("f", move |_| {
        let parts = parts.clone();
        async { Ok(ToolOutput::parts(parts)) }
    });
    let model = ScriptedModel::new([Turn::call("1", "f", json!({})), Turn::text("done")]);
    run(Agent::builder("a", model.clone()).tool(shows).max_tool_output(10)).await;
    let seen = model.requests()[1].messages[2].as_tool().expect("the result").parts().to_vec();
    assert_eq!(seen[0].as_text(), Some(&*"x".repeat(10)));
    assert_eq!(seen[1], image);
    assert!(seen[2].as_text().is_some_and(|note| note.contains("10 of 50 bytes")), "{seen:?}");
}

// --- selection of tools ---

// Haystack 40
#[tokio::test]
async fn a_run_may_choose_among_the_tools_or_bring_its_own() {
    let model =
        ScriptedModel::new([Turn::text("1"), Turn::text("2"), Turn::call("1", "g", json!({})), Turn::text("3")]);
    let agent = Agent::builder("a", model.clone()).tool(double("f")).tool(double("g")).build().expect("builds");
    finished(agent.run("all").await);
    finished(agent.start(RunRequest::user("one").tools_named(["f"])).await);
    let own = RunRequest::user("own").tools(vec![Arc::new(gives("g", json!("mine")))]);
    let end = finished(agent.start(own).await);
    let offered: Vec<_> = model.requests().into_iter().map(|seen| seen.tools).collect();
    assert_eq!(offered, [vec!["f", "g"], vec!["f"], vec!["g"], vec!["g"]]);
    assert_eq!(results(&end.history)[0].1, "mine");
}

#[tokio::test]
async fn a_run_may_bring_tools_beside_the_agents_but_none_of_the_same_name() {
    let calls = Turn::calls([("1", "f", json!({"x": 1})), ("2", "g", json!({}))]);
    let model = ScriptedModel::new([calls, Turn::text("done"), Turn::text("alone")]);
    let agent = Agent::builder("a", model.clone()).tool(double("f")).build().expect("builds");
    let brings = |name: &'static str| RunRequest::user("go").more_tools(vec![Arc::new(gives(name, json!("mine")))]);
    let end = finished(agent.start(brings("g")).await);
    assert_eq!(results(&end.history).iter().map(|(_, text, _)| &**text).collect::<Vec<_>>(), ["2", "mine"]);
    finished(agent.run("the next run has the agent's alone").await);
    assert_eq!(
        model.requests().into_iter().map(|seen| seen.tools).collect::<Vec<_>>(),
        [vec!["f", "g"], vec!["f", "g"], vec!["f"]]
    );
    let refused = agent.start(brings("f")).await.expect_err("the name is taken");
    assert!(refused.message().contains("two tools are named 'f'"), "{refused}");
}

// Haystack 40
#[tokio::test]
async fn a_tool_that_was_not_chosen_is_unknown_to_the_run() {
    let model = ScriptedModel::new([Turn::call("1", "g", json!({"x": 1})), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(double("f")).tool(double("g")).build().expect("builds");
    let end = finished(agent.start(RunRequest::user("go").tools_named(["f"])).await);
    assert_eq!(results(&end.history)[0].1, "Tool 'g' not found. Available tools: f");
}

// Haystack 15, 40, 41
#[tokio::test]
async fn tools_that_a_run_cannot_have_are_refused_before_the_model_is_called() {
    let refusal = async |builder: AgentBuilder, request: RunRequest| {
        let e = builder.build().expect("builds").start(request).await.expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::Config);
        e.message().to_owned()
    };
    let agent = || Agent::builder("a", ScriptedModel::new([]));
    let own = |names: &[&str]| RunRequest::user("go").tools(names.iter().map(|n| Arc::new(double(n)) as _).collect());
    let named = || RunRequest::user("go").tools_named(["zz"]);
    let without_tools = ScriptedModel::new([]).with_info(agent_core::ModelInfo::new("old").without_tools());

    let message = refusal(agent().tool(double("f")).tool(double("g")), named()).await;
    assert_eq!(message, "tool 'zz' is not among the agent's; valid: f, g");
    assert!(refusal(agent(), named()).await.contains("no tools were configured"));
    assert_eq!(refusal(agent(), own(&["f", "f"])).await, "two tools are named 'f': rename one");
    assert!(refusal(Agent::builder("a", without_tools), own(&["f"])).await.contains("model 'old' takes no tools"));
}

#[tokio::test]
async fn a_run_that_is_refused_for_its_tools_leaves_nothing_in_its_session() {
    let model = ScriptedModel::new([Turn::text("done")]);
    let agent = Agent::builder("a", model).store(MemoryJournal::default()).build().expect("builds");
    finished(agent.start(RunRequest::user("the first").session("s")).await);
    let own = |names: &[&str]| names.iter().map(|n| Arc::new(double(n)) as _).collect();
    let refused = agent.start(RunRequest::user("the second").session("s").tools(own(&["f", "f"]))).await;
    assert!(refused.expect_err("is refused").message().contains("two tools are named 'f'"));
    assert_eq!(agent.unfinished("s").await.expect("reads"), None);
    let session = agent.sessions().expect("has a store").named("s", "a");
    assert_eq!(session.runs().await.expect("reads").len(), 1);
}

#[tokio::test]
async fn the_names_and_descriptions_of_the_tools_are_what_the_model_is_offered() {
    let spec: ToolSpec = agent_core::Tool::spec(&double("f"));
    let model = ScriptedModel::new([Turn::text("hi")]);
    let offered = Log::default();
    let noted = offered.clone();
    let look = hooks::before_model(move |_, req| {
        noted.note(serde_json::to_string(&req.tools[0]).expect("JSON"));
        Ok(agent_core::Flow::Continue)
    });
    let end = run(Agent::builder("a", model).tool(double("f")).middleware(look)).await;
    assert_eq!(offered.seen(), [serde_json::to_string(&spec).expect("JSON")]);
    assert_eq!(end.reason, ExitReason::Text);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_all_calls_of_a_message_run_at_once() {
    let log = Log::default();
    let calls = ["1", "2", "3"].map(|id| (id, "slow", json!({})));
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool(slow("slow", 100, &log)).tool_concurrency(usize::MAX);
    let start = Instant::now();
    finished(agent.build().expect("builds").run("go").await);
    assert_eq!(start.elapsed(), ms(100));
}

#[tokio::test]
async fn a_layer_is_told_what_repeating_a_call_would_do() {
    let log = Log::default();
    let noted = log.clone();
    let look = agent_middleware::before_tool_fn("look", move |_, req| {
        noted.note(format!("{} {:?}", req.call.name, req.effect));
        Ok(agent_core::Flow::Continue)
    });
    let calls = [("1", "pure", json!({"x": 1})), ("2", "unsaid", json!({"x": 1}))];
    let model = ScriptedModel::new([Turn::calls(calls), Turn::text("done")]);
    let agent = Agent::builder("a", model).tool_concurrency(1).middleware(look);
    run(agent.tool(double("pure").with(|options| options.effect(agent_core::Effect::Pure))).tool(double("unsaid")))
        .await;
    assert_eq!(log.seen(), ["pure Pure", "unsaid AtMostOnce"]);
}
