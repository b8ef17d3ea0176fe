//! Cancelling, pausing, steering and stopping a running run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use agent_core::{
    Checkpoint, Exit, ExitReason, Flow, Message, Middleware, ModelRequest, ModelResponse, Result, RunCx, RunRequest,
    ToolBatch, ToolOutput, ToolRequest, ToolResults, Verdict, async_trait,
    run::checkpoint::{CallState, Phase},
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, Run};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::common::{Log, finished, gives, hangs, hooks, ms, results, roles, slow, stopped, tool};

fn start(agent: &Agent) -> Run {
    agent.start(RunRequest::user("go"))
}

async fn resume(agent: &Agent, checkpoint: Checkpoint) -> agent_core::Finished {
    finished(agent.start(RunRequest::resume(checkpoint, [])).await)
}

/// Lets aborted tasks be dropped.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

// --- cancelling ---

#[tokio::test(start_paused = true)]
async fn cancelling_mid_stream_drops_the_call_and_leaves_a_checkpoint_that_goes_on() {
    let model = ScriptedModel::new([Turn::text("a b c d e f").delay(ms(10)), Turn::text("after")]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let run = start(&agent);
    let handle = run.handle();
    let cancel = async {
        sleep(ms(25)).await;
        assert_eq!(model.open(), 1);
        handle.cancel();
    };
    let begun = Instant::now();
    let (kind, checkpoint) = stopped(tokio::join!(run, cancel).0);
    assert_eq!((kind, begun.elapsed(), model.open()), ("cancelled", ms(25), 0));
    assert_eq!(roles(&checkpoint.history), ["user"], "what was half said is not kept");
    let end = resume(&agent, checkpoint).await;
    assert_eq!((end.answer.as_str(), end.steps, roles(&end.history)), ("after", 1, vec!["user", "assistant"]));
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_all_tools_at_once_and_keeps_what_was_done() {
    let log = Log::default();
    let calls = [("1", "quick", json!({})), ("2", "hang", json!({})), ("3", "hang", json!({}))];
    let model = ScriptedModel::new([Turn::calls(calls)]);
    let agent = Agent::builder("a", model)
        .tool(slow("quick", 10, &log))
        .tool(hangs("hang", &log).repeatable())
        .build()
        .expect("builds");
    let run = start(&agent);
    let handle = run.handle();
    let cancel = async {
        sleep(ms(50)).await;
        handle.cancel();
        Instant::now()
    };
    let (end, cancelled_at) = tokio::join!(run, cancel);
    assert!(cancelled_at.elapsed() < ms(100), "{:?}", cancelled_at.elapsed());
    let mut dropped: Vec<_> = log.seen().into_iter().filter(|line| line.ends_with("dropped")).collect();
    dropped.sort();
    assert_eq!(dropped, ["2 dropped", "3 dropped"]);

    let (kind, checkpoint) = stopped(end);
    assert_eq!(kind, "cancelled");
    assert_eq!(roles(&checkpoint.history), ["user"], "a call without an answer is not in the history");
    let Phase::Tools(turn) = &checkpoint.phase else { panic!("another phase: {:?}", checkpoint.phase) };
    let done = turn.calls.iter().map(|call| matches!(call.state, CallState::Done(_)));
    assert_eq!(done.collect::<Vec<_>>(), [true, false, false]);

    let again = Log::default();
    let agent = Agent::builder("a", ScriptedModel::new([Turn::text("done")]))
        .tool(slow("quick", 10, &again))
        .tool(slow("hang", 10, &again).repeatable())
        .build()
        .expect("builds");
    let end = resume(&agent, checkpoint).await;
    assert_eq!(again.seen(), ["2 begins", "3 begins", "2 ends", "3 ends"], "the finished sibling is not run again");
    let told = ["1", "2", "3"].map(|id| (id.to_owned(), id.to_owned(), false));
    assert_eq!(results(&end.history), told, "in call order");
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_a_tool_that_runs_alone() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "hang", json!({}))]);
    let agent = Agent::builder("a", model).tool(hangs("hang", &log)).build().expect("builds");
    let run = start(&agent);
    let handle = run.handle();
    let cancel = async {
        sleep(ms(50)).await;
        handle.cancel();
    };
    let (kind, _) = stopped(tokio::join!(run, cancel).0);
    assert_eq!(kind, "cancelled");
    assert_eq!(log.seen(), ["1 begins", "1 dropped"]);
}

#[tokio::test]
async fn what_a_tool_gives_when_it_hears_of_the_cancellation_is_kept() {
    let stops = tool("stops", async |request: ToolRequest| {
        request.cx.cancellation().cancelled().await;
        Ok(ToolOutput::text("half done"))
    });
    let model = ScriptedModel::new([Turn::call("1", "stops", json!({}))]);
    let run = start(&Agent::builder("a", model).tool(stops).build().expect("builds"));
    let handle = run.handle();
    let cancel = async {
        settle().await;
        handle.cancel();
    };
    let (kind, checkpoint) = stopped(tokio::join!(run, cancel).0);
    assert_eq!(kind, "cancelled");
    assert_eq!(results(&checkpoint.history), [("1".to_owned(), "half done".to_owned(), false)]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_calls_nobody_and_unwinds() {
    let (model, trace) = (ScriptedModel::new([Turn::text("later")]), HookTrace::new("h"));
    let agent = Agent::builder("a", model.clone()).middleware(trace.clone()).build().expect("builds");
    let run = start(&agent);
    run.handle().cancel();
    let (kind, checkpoint) = stopped(run.await);
    assert_eq!((kind, model.calls()), ("cancelled", 0));
    assert_eq!(trace.seen(), ["h.before_agent", "h.after_agent(cancelled)"]);
    assert_eq!(resume(&agent, checkpoint).await.answer, "later");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_drops_its_tools_and_its_model_call() {
    let log = Log::default();
    let both = Turn::calls([("1", "hang", json!({})), ("2", "hang", json!({}))]);
    let model = ScriptedModel::new([both]);
    let agent = Agent::builder("a", model).tool(hangs("hang", &log)).build().expect("builds");
    assert!(tokio::time::timeout(ms(10), start(&agent)).await.is_err(), "it hangs");
    settle().await;
    let mut seen = log.seen();
    seen.sort();
    assert_eq!(seen, ["1 begins", "1 dropped", "2 begins", "2 dropped"]);

    let model = ScriptedModel::new([Turn::text("slow").delay(ms(60_000))]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    assert!(tokio::time::timeout(ms(10), start(&agent)).await.is_err(), "it is slow");
    assert_eq!((model.calls(), model.open()), (1, 0));
}

/// Hangs at one hook point.
struct Hangs(&'static str);

impl Hangs {
    async fn at<T: Default>(&self, point: &str) -> Result<T> {
        if self.0 == point { std::future::pending().await } else { Ok(T::default()) }
    }
}

#[async_trait]
impl Middleware for Hangs {
    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        self.at("before_agent").await
    }

    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        self.at("before_model").await
    }

    async fn after_model(&self, _: &RunCx, _: &mut ModelResponse) -> Result<()> {
        self.at("after_model").await
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        self.at("before_tools").await
    }

    async fn before_tool(&self, _: &RunCx, _: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        self.at("before_tool").await
    }

    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        self.at("after_tool").await
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        self.at("after_tools").await
    }

    async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
        self.at("on_exit").await
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_does_not_wait_for_a_hook_and_nothing_that_was_done_is_done_again() {
    let points = [
        "before_agent",
        "before_model",
        "after_model",
        "before_tools",
        "before_tool",
        "after_tool",
        "after_tools",
        "on_exit",
    ];
    for point in points {
        let log = Log::default();
        let call = || Turn::call("1", "t", json!({}));
        let builder = |turns: Vec<Turn>| Agent::builder("a", ScriptedModel::new(turns)).tool(slow("t", 1, &log));
        let hanging = builder(vec![call(), Turn::text("done")]).middleware(Hangs(point)).build().expect("builds");
        let run = start(&hanging);
        let handle = run.handle();
        let cancel = async {
            sleep(ms(50)).await;
            handle.cancel();
        };
        let begun = Instant::now();
        let (kind, checkpoint) = stopped(tokio::join!(run, cancel).0);
        assert_eq!((kind, begun.elapsed()), ("cancelled", ms(50)), "{point}");
        let asks_again = matches!(point, "before_agent" | "before_model");
        let turns = asks_again.then(call).into_iter().chain([Turn::text("done")]);
        let agent = builder(turns.collect()).build().expect("builds");
        let end = finished(agent.start(RunRequest::resume(checkpoint, []).allow_changed_agent()).await);
        assert_eq!((end.answer.as_str(), end.tool_calls["t"]), ("done", 1), "{point}");
        assert_eq!(log.seen(), ["1 begins", "1 ends"], "{point}");
    }
}

// --- pausing ---

#[tokio::test]
async fn a_pause_takes_effect_at_the_next_boundary_and_the_run_goes_on_from_there() {
    let pausing = tool("pausing", async |req: ToolRequest| {
        req.cx.pause();
        Ok(ToolOutput::text("done before the pause"))
    });
    let model = ScriptedModel::new([Turn::call("1", "pausing", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(pausing).build().expect("builds");
    let (kind, checkpoint) = stopped(start(&agent).await);
    assert_eq!((kind, model.calls(), checkpoint.step), ("paused", 1, 1));
    assert_eq!(roles(&checkpoint.history), ["user", "assistant", "tool"]);
    let end = resume(&agent, checkpoint).await;
    assert_eq!((end.answer.as_str(), end.steps, end.tool_calls["pausing"]), ("done", 2, 1));
    model.assert_finished();
}

#[tokio::test]
async fn a_pause_during_the_model_call_keeps_the_answer_and_runs_no_tool_yet() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]);
    let pause_once = AtomicBool::new(true);
    let agent = Agent::builder("a", model.clone())
        .tool(slow("t", 0, &log))
        .middleware(hooks::after_model(move |cx, _| {
            if pause_once.swap(false, Ordering::SeqCst) {
                cx.pause();
            }
            Ok(())
        }))
        .build()
        .expect("builds");
    let (kind, checkpoint) = stopped(start(&agent).await);
    assert_eq!((kind, log.seen().len()), ("paused", 0));
    assert!(matches!(&checkpoint.phase, Phase::Tools(turn) if turn.calls[0].state == CallState::Todo));
    assert_eq!(resume(&agent, checkpoint).await.answer, "done");
    assert_eq!(log.seen(), ["1 begins", "1 ends"]);
    assert_eq!(model.calls(), 2, "the model was not asked again for the step that it had answered");
}

#[tokio::test]
async fn a_run_that_is_paused_before_it_begins_calls_nobody() {
    let model = ScriptedModel::new([Turn::text("later")]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let run = start(&agent);
    run.handle().pause();
    let (kind, checkpoint) = stopped(run.await);
    assert_eq!((kind, model.calls()), ("paused", 0));
    assert_eq!(resume(&agent, checkpoint).await.answer, "later");
}

// --- steering ---

#[tokio::test(start_paused = true)]
async fn steering_arrives_before_the_next_model_call_and_in_order() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("1", "t", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(slow("t", 50, &log)).build().expect("builds");
    let run = start(&agent);
    let handle = run.handle();
    let steer = async {
        sleep(ms(20)).await;
        handle.steer(Message::user("be brief")).expect("accepted");
        handle.steer(Message::user("and kind")).expect("accepted");
    };
    let end = finished(tokio::join!(run, steer).0);
    assert_eq!(model.requests()[1].texts(), ["go", "", "1", "be brief", "and kind"]);
    assert_eq!(end.history.len(), 6, "steering is kept");
}

#[tokio::test]
async fn steering_keeps_a_finishing_run_going() {
    let (steer_once, trace) = (AtomicBool::new(true), HookTrace::new("h"));
    let model = ScriptedModel::new([Turn::text("first"), Turn::text("second")]);
    let agent = Agent::builder("a", model.clone())
        .middleware(trace.clone())
        .middleware(hooks::after_model(move |cx, _| {
            if steer_once.swap(false, Ordering::SeqCst) {
                cx.steer(Message::user("and then?"))?;
            }
            Ok(())
        }))
        .build()
        .expect("builds");
    let end = finished(start(&agent).await);
    assert_eq!((end.answer.as_str(), end.steps), ("second", 2));
    assert_eq!(model.requests()[1].texts(), ["go", "first", "and then?"]);
    assert_eq!(trace.seen_of("after_agent").len(), 1);
}

#[tokio::test]
async fn a_handle_works_before_the_run_is_polled() {
    let model = ScriptedModel::new([Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let run = start(&agent);
    let handle = run.handle();
    handle.steer(Message::user("quickly")).expect("accepted");
    assert_eq!(model.calls(), 0, "nothing happens until the run is polled");
    finished(run.await);
    assert_eq!(model.requests()[0].texts(), ["go", "quickly"]);
    assert!(!handle.cancellation().is_cancelled());
}

#[tokio::test]
async fn steering_that_comes_while_the_run_pauses_is_not_lost() {
    let pausing = tool("pausing", async |req: ToolRequest| {
        req.cx.pause();
        req.cx.steer(Message::user("one more thing"))?;
        Ok(ToolOutput::text("ok"))
    });
    let model = ScriptedModel::new([Turn::call("1", "pausing", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model.clone()).tool(pausing).build().expect("builds");
    let (_, checkpoint) = stopped(start(&agent).await);
    resume(&agent, checkpoint).await;
    assert_eq!(model.requests()[1].texts(), ["go", "", "ok", "one more thing"]);
}

// --- stopping ---

#[tokio::test]
async fn a_tool_that_stops_the_run_lets_the_step_end_and_nobody_is_called_after_it() {
    let stopping = tool("stopping", async |req: ToolRequest| {
        req.cx.stop("enough");
        req.cx.stop("never mind");
        Ok(ToolOutput::text("ok"))
    });
    let trace = HookTrace::new("h");
    let calls = [("1", "stopping", json!({})), ("2", "other", json!({}))];
    let model = ScriptedModel::new([Turn::text("on it").and_call("1", "stopping", json!({})), Turn::calls(calls)]);
    let agent = Agent::builder("a", model.clone())
        .tool(stopping)
        .tool(gives("other", json!("ok")))
        .middleware(trace.clone())
        .build()
        .expect("builds");
    let end = finished(start(&agent).await);
    assert_eq!(end.reason, ExitReason::Stopped("enough".to_owned()), "the first reason is kept");
    assert_eq!((end.answer.as_str(), end.steps, model.calls()), ("on it", 1, 1));
    assert_eq!(roles(&end.history), ["user", "assistant", "tool"]);
    assert!(trace.seen_of("on_exit").is_empty(), "nobody is asked whether a stopped run may end");
    assert_eq!(trace.seen_of("after_agent"), ["h.after_agent(finished)"]);
}

#[tokio::test]
async fn a_hook_that_stops_the_run_before_the_model_call_prevents_it() {
    let (trace, model) = (HookTrace::new("in"), ScriptedModel::new([]));
    let agent = Agent::builder("a", model.clone())
        .middleware(hooks::before_model(|cx, _| {
            cx.stop("not today");
            Ok(Flow::Continue)
        }))
        .middleware(trace.clone())
        .build()
        .expect("builds");
    let end = finished(start(&agent).await);
    assert_eq!(end.reason, ExitReason::Stopped("not today".to_owned()));
    assert_eq!((end.steps, model.calls()), (0, 0));
    assert_eq!(trace.seen_of("model"), ["in.before_model"], "hooks further in still ran");
}

#[tokio::test]
async fn what_is_asked_of_one_run_does_not_touch_another_of_the_same_agent() {
    let model = ScriptedModel::new([Turn::text("done")]);
    let agent = Arc::new(Agent::builder("a", model.clone()).build().expect("builds"));
    let (cancelled, other) = (start(&agent), start(&agent));
    cancelled.handle().cancel();
    cancelled.handle().pause();
    cancelled.handle().steer(Message::user("?")).expect("accepted");
    assert_eq!(stopped(cancelled.await).0, "cancelled");
    assert_eq!(finished(other.await).answer, "done");
    assert_eq!(model.requests()[0].texts(), ["go"]);
}

#[tokio::test]
async fn runs_that_never_wait_take_turns() {
    let log = Log::default();
    let calling = |name: &'static str| {
        let noted = log.clone();
        let note = tool("note", move |_| {
            noted.note(name);
            async { Ok(ToolOutput::text("noted")) }
        });
        let call = |id: &str| Turn::call(id, "note", json!({}));
        let model = ScriptedModel::new([call("1"), call("2"), call("3"), Turn::text("done")]);
        Agent::builder(name, model).tool(note).build().expect("builds")
    };
    let (a, b) = (calling("a"), calling("b"));
    let runs = tokio::join!(tokio::spawn(start(&a)), tokio::spawn(start(&b)));
    finished(runs.0.expect("no panic"));
    finished(runs.1.expect("no panic"));
    assert_eq!(log.seen(), ["a", "b", "a", "b", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_moved_to_another_task_hears_that_it_is_cancelled() {
    let agent = Agent::builder("a", ScriptedModel::new([Turn::text("late").delay(ms(1_000))])).build().expect("builds");
    let (begun, mut run) = (Instant::now(), start(&agent));
    let handle = run.handle();
    assert!(futures::poll!(&mut run).is_pending());
    let moved = tokio::spawn(run);
    settle().await;
    handle.cancel();
    assert_eq!(stopped(moved.await.expect("no panic")).0, "cancelled");
    assert_eq!(begun.elapsed(), ms(0));
}
