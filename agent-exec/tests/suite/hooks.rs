//! Hooks: their order, their permitted changes, and the handling of their errors.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agent_core::{
    AssistantMessage, Chunk, Error, ErrorKind, EventKind, ExitReason, Finished, Flow, History, Journal, MemoryJournal,
    Message, Middleware, ModelNext, ModelRequest, ModelResponse, Retry, RunEnd, RunRequest, ToolBatch, ToolOutput,
    Verdict, async_trait,
    journal::EntryBody,
    middleware::ChunkHook,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};

use crate::common::{Log, Watch, double, finished, gives, hooks, ms, results, slow, tool};

/// Builds an agent with the tool `f` that doubles `x`; its model calls it once and then says
/// "done".
fn agent() -> (AgentBuilder, ScriptedModel) {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    (Agent::builder("a", model.clone()).tool(double("f")), model)
}

/// Adds the items of a test case to an agent.
type With = fn(AgentBuilder) -> AgentBuilder;

async fn run(builder: AgentBuilder) -> Finished {
    finished(builder.build().expect("builds").run("go").await)
}

// --- order ---

// NexAU 28, Haystack 45
#[tokio::test]
async fn hooks_run_outside_in_before_and_inside_out_after_in_every_part_of_a_run() {
    let (builder, _) = agent();
    let outer = HookTrace::new("1");
    run(builder.middleware(outer.clone()).middleware(outer.beside("2"))).await;
    let seen: Vec<_> = outer.seen().into_iter().filter(|line| !line.ends_with("chunk")).collect();
    let model = ["1.before_model", "2.before_model", "1.model>", "2.model>", "2.<model", "1.<model"];
    let model = [&model[..], &["2.after_model", "1.after_model"]].concat();
    let tools = ["1.before_tools", "2.before_tools", "1.before_tool(f)", "2.before_tool(f)", "1.tool>", "2.tool>"];
    let tools = [&tools[..], &["2.<tool", "1.<tool", "2.after_tool(f)", "1.after_tool(f)"]].concat();
    let exit = ["2.after_tools", "1.after_tools"];
    let end = ["2.on_exit(text)", "1.on_exit(text)", "2.after_agent(finished)", "1.after_agent(finished)"];
    let expected = [&["1.before_agent", "2.before_agent"], &model[..], &tools, &exit, &model, &end].concat();
    assert_eq!(seen, expected);
}

// NexAU 28
#[tokio::test]
async fn what_an_inner_hook_made_of_a_result_is_what_the_outer_one_is_given() {
    let (builder, model) = agent();
    let append = |what: &'static str| {
        hooks::after_tool(move |_, _, out| {
            *out = ToolOutput::text(format!("{}-{what}", out.to_text()));
            Ok(())
        })
    };
    let end = run(builder.middleware(append("first")).middleware(append("second"))).await;
    assert_eq!(results(&end.history)[0].1, "6-second-first");
    assert_eq!(model.requests()[1].results()[0].1, "6-second-first");
}

// NexAU 29
#[tokio::test]
async fn an_inner_hook_sees_the_request_as_the_outer_one_left_it() {
    let (builder, _) = agent();
    let log = Log::default();
    let noted = log.clone();
    let adds = hooks::before_model(|_, req| {
        req.messages.push(Message::user("A"))?;
        Ok(Flow::Continue)
    });
    let sees = hooks::before_model(move |_, req| {
        noted.note(req.messages.last().expect("there").text());
        Ok(Flow::Continue)
    });
    run(builder.middleware(adds).middleware(sees)).await;
    assert_eq!(log.seen(), ["A", "A"]);
}

// Haystack 51 (B)
#[tokio::test(start_paused = true)]
async fn a_retry_is_another_attempt_of_the_same_step() {
    struct Patient;

    #[async_trait]
    impl Middleware for Patient {
        async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> agent_core::Result<ModelResponse> {
            loop {
                match next.run(req.clone()).await {
                    Err(e) if e.is_retryable() => tokio::time::sleep(ms(100)).await,
                    answered => return answered,
                }
            }
        }
    }

    let busy = || Turn::error(|| Error::new(ErrorKind::RateLimited, "slow down").with_retry(Retry::Temporary(None)));
    let model = ScriptedModel::new([busy(), busy(), Turn::text("done")]);
    let trace = HookTrace::new("t");
    let end = run(Agent::builder("a", model.clone()).middleware(Patient).middleware(trace.clone())).await;
    assert_eq!((end.steps, model.calls(), end.usage.calls), (1, 3, 1));
    for (hook, times) in [("before_model", 1), ("model>", 3), ("after_model", 1)] {
        assert_eq!(trace.seen_of(hook).len(), times, "{hook}");
    }
}

// --- answering in the place of the model or a tool ---

// NexAU 31
#[tokio::test]
async fn a_wrap_that_does_not_go_on_answers_without_the_model() {
    struct Canned;

    #[async_trait]
    impl Middleware for Canned {
        async fn wrap_model_call(&self, _: ModelRequest, _: ModelNext<'_>) -> agent_core::Result<ModelResponse> {
            Ok(ModelResponse::new("canned"))
        }
    }

    let (builder, model) = agent();
    let end = run(builder.middleware(Canned)).await;
    assert_eq!((end.answer.as_str(), model.calls(), end.steps), ("canned", 0, 1));
}

#[tokio::test]
async fn after_an_answer_only_the_hooks_outside_of_it_see_it() {
    let (builder, model) = agent();
    let outer = HookTrace::new("outer");
    let cached = hooks::before_model(|_, _| Ok(Flow::Answer(ModelResponse::new("cached"))));
    run(builder.middleware(outer.clone()).middleware(cached).middleware(outer.beside("inner"))).await;
    assert_eq!(outer.seen_of("_model"), ["outer.before_model", "outer.after_model"]);
    assert_eq!(model.calls(), 0);
}

#[tokio::test]
async fn a_tool_call_that_a_hook_answers_does_not_run_and_does_not_count() {
    let (builder, _) = agent();
    let outer = HookTrace::new("outer");
    let deny = hooks::before_tool(|_, req| Ok(Flow::Answer(ToolOutput::error(format!("no {}", req.call.name)))));
    let end = run(builder.middleware(outer.clone()).middleware(deny).middleware(outer.beside("inner"))).await;
    assert_eq!(results(&end.history), [("1".into(), "no f".into(), true)]);
    assert!(end.tool_calls.is_empty());
    assert_eq!(outer.seen_of("_tool("), ["outer.before_tool(f)", "outer.after_tool(f)"]);
}

// --- the calls of a message ---

// Haystack 46
#[tokio::test]
async fn before_tools_may_reorder_edit_answer_drop_and_leave_out_calls_and_results_stay_in_call_order() {
    let ids = ["1", "2", "3", "4", "5"];
    let model = ScriptedModel::new([Turn::calls(ids.map(|id| (id, "f", json!({"x": 1})))), Turn::text("done")]);
    let log = Log::default();
    let noted = log.clone();
    let f = tool("f", move |req| {
        noted.note(format!("{} x={}", req.call.id, req.args["x"]));
        async { Ok(ToolOutput::text("ran")) }
    });
    let arrange = hooks::before_tools(|_, batch| {
        batch.calls.reverse();
        batch.calls[0].request.args = Arc::new(json!({"x": 2}));
        batch.calls[1].answer(ToolOutput::text("known"));
        batch.calls[2].drop_with("too many");
        batch.calls.remove(3);
        Ok(())
    });
    let end = run(Agent::builder("a", model).tool(f).tool_concurrency(1).middleware(arrange)).await;
    let told: Vec<_> = results(&end.history).into_iter().map(|(id, text, _)| format!("{id}: {text}")).collect();
    let dropped = ["2: Not run: a hook dropped the call.", "3: Not run: too many"];
    assert_eq!(told, ["1: ran", dropped[0], dropped[1], "4: known", "5: ran"]);
    assert_eq!(log.seen(), ["5 x=2", "1 x=1"]);
}

#[tokio::test]
async fn a_call_that_a_hook_put_into_the_batch_twice_runs_once() {
    let (log, watch) = (Log::default(), Watch::default());
    let model = ScriptedModel::new([Turn::call("1", "f", json!({})), Turn::text("done")]);
    let twice = hooks::before_tools(|_, batch| {
        let again = batch.calls[0].request.clone();
        batch.calls.extend(ToolBatch::new([again]).calls);
        Ok(())
    });
    let builder = Agent::builder("a", model).tool(slow("f", 0, &log)).middleware(watch.clone()).middleware(twice);
    run(builder).await;
    assert_eq!(log.seen(), ["1 begins", "1 ends"]);
    assert_eq!(watch.answered().len(), 1);
}

// Haystack 47
#[tokio::test]
async fn results_that_a_hook_rewrote_are_what_is_kept_and_seen_and_still_end_the_run() {
    let rewrite = || {
        hooks::after_tools(|_, results| {
            results.results[0].output = ToolOutput::text("rewritten");
            Ok(Verdict::Proceed)
        })
    };
    let (builder, model) = agent();
    let end = run(builder.middleware(rewrite())).await;
    assert_eq!((results(&end.history)[0].1.as_str(), &*model.requests()[1].results()[0].1), ("rewritten", "rewritten"));

    let (builder, _) = agent();
    let end = run(builder.middleware(rewrite()).exit_on(["f"])).await;
    assert_eq!((end.answer.as_str(), end.reason), ("rewritten", ExitReason::Tool("f".into())));
}

#[tokio::test]
async fn after_tools_can_finish_the_run_or_keep_an_exit_tool_from_it() {
    for (verdict, exits, reason) in [
        (Verdict::Finish, vec![], ExitReason::Verdict),
        (Verdict::Again, vec!["f"], ExitReason::Text),
        (Verdict::Proceed, vec!["f"], ExitReason::Tool("f".into())),
    ] {
        let (builder, _) = agent();
        let judge = hooks::after_tools(move |_, _| Ok(verdict));
        assert_eq!(run(builder.middleware(judge).exit_on(exits)).await.reason, reason);
    }
}

// --- leaving ---

// Haystack 48
#[tokio::test]
async fn a_hook_that_always_wants_more_is_bounded_by_the_step_limit() {
    let model = ScriptedModel::new((0..9).map(|i| Turn::text(i.to_string())));
    let trace = HookTrace::new("t");
    let more = hooks::on_exit(|_, _| Ok(Verdict::Again));
    let builder = Agent::builder("a", model.clone()).middleware(trace.clone()).middleware(more).max_steps(3);
    let end = run(builder).await;
    assert_eq!((model.calls(), end.reason, end.answer.as_str()), (3, ExitReason::StepLimit, "2"));
    assert_eq!(trace.seen_of("on_exit").len(), 3, "not at the step limit");
    assert_eq!(trace.seen_of("after_agent"), ["t.after_agent(finished)"]);
}

#[tokio::test]
async fn a_hook_may_change_the_answer_as_the_run_leaves() {
    let (builder, _) = agent();
    let polite = hooks::on_exit(|_, exit| {
        exit.answer.push_str(", thank you");
        Ok(Verdict::Proceed)
    });
    assert_eq!(run(builder.middleware(polite)).await.answer, "done, thank you");
}

// Haystack 49
#[tokio::test]
async fn a_stop_after_a_tool_lets_the_step_complete_and_yields_to_an_end_that_comes_anyway() {
    let ends: [(With, ExitReason); 3] = [
        (|b| b, ExitReason::Stopped("enough".into())),
        (|b| b.exit_on(["f"]), ExitReason::Tool("f".into())),
        (|b| b.max_steps(1), ExitReason::StepLimit),
    ];
    for (limit, reason) in ends {
        let (builder, model) = agent();
        let stop = hooks::after_tool(|cx, _, _| {
            cx.stop("enough");
            Ok(())
        });
        let end = run(limit(builder.middleware(stop))).await;
        assert_eq!((model.calls(), end.history.len(), end.reason), (1, 3, reason));
    }
}

// NexAU 30
#[tokio::test]
async fn after_agent_may_replace_the_end_and_runs_however_the_run_ended() {
    let replaced = hooks::after_agent(|_, end| {
        if let Ok(RunEnd::Finished(finished)) = end {
            finished.answer = "replaced".into();
        }
        Ok(())
    });
    let (builder, _) = agent();
    assert_eq!(run(builder.middleware(replaced)).await.answer, "replaced");

    let ask = || tool("ask", async |req| req.ask::<String>("name", Value::Null).map(ToolOutput::text));
    for (turn, how) in [
        (Turn::error(|| Error::new(ErrorKind::Provider, "boom")), "failed"),
        (Turn::call("1", "ask", json!({})), "interrupted"),
    ] {
        let trace = HookTrace::new("t");
        let builder = Agent::builder("a", ScriptedModel::new([turn])).tool(ask()).middleware(trace.clone());
        let _ = builder.build().expect("builds").run("go").await;
        assert_eq!(trace.seen_of("after_agent"), [format!("t.after_agent({how})")]);
    }
}

#[tokio::test]
async fn after_agent_runs_for_those_whose_before_agent_ran() {
    let (builder, _) = agent();
    let outer = HookTrace::new("outer");
    let refuses = hooks::before_agent(|_| Err(Error::config("not today")));
    let builder = builder.middleware(outer.clone()).middleware(refuses).middleware(outer.beside("inner"));
    builder.build().expect("builds").run("go").await.expect_err("refused");
    assert_eq!(outer.seen(), ["outer.before_agent", "outer.after_agent(failed)"]);
}

// --- views, chunks, events ---

// NexAU 34 (B)
#[tokio::test]
async fn what_a_hook_adds_to_a_request_is_seen_in_that_call_and_kept_nowhere() {
    let (builder, model) = agent();
    let reminder = hooks::before_model(|cx, req| {
        req.messages.push(Message::user(format!("step {}", cx.step())))?;
        Ok(Flow::Continue)
    });
    let end = run(builder.middleware(reminder)).await;
    let reminders = |texts: Vec<String>| texts.into_iter().filter(|t| t.starts_with("step")).collect::<Vec<_>>();
    assert_eq!(reminders(model.requests()[0].texts()), ["step 1"]);
    assert_eq!(reminders(model.requests()[1].texts()), ["step 2"]);
    assert_eq!(reminders(end.history.iter().map(Message::text).collect()), [""; 0]);
}

// NexAU 35
#[tokio::test]
async fn a_history_that_a_hook_replaces_is_written_once_and_is_the_sessions_from_then_on() {
    let journal = MemoryJournal::default();
    let model = ScriptedModel::new([Turn::text("one"), Turn::text("two")]);
    let once = std::sync::Once::new();
    let compact = hooks::before_model(move |cx, _| {
        once.call_once(|| {
            let summary = History::from_messages([Message::user("summary")]).expect("paired");
            cx.replace_history(summary, "compact_auto");
        });
        Ok(Flow::Continue)
    });
    let agent = Agent::builder("a", model.clone()).store(journal.clone()).middleware(compact).build().expect("builds");
    let request = || RunRequest::user("go").session("s");
    finished(agent.start(request()).await);
    let end = finished(agent.start(request()).await);
    let texts: Vec<_> = end.history.iter().map(Message::text).collect();
    assert_eq!(texts, ["summary", "one", "go", "two"]);
    assert_eq!(model.requests()[0].texts(), ["go"], "a call that is under way keeps its view");

    let entries = journal.read("s", 0, usize::MAX).await.expect("reads");
    let replaced = entries.iter().filter(|e| matches!(e.body, EntryBody::HistoryReplaced { .. }));
    assert_eq!(replaced.count(), 1);
}

// NexAU 32
#[tokio::test]
async fn a_chunk_that_a_hook_drops_is_neither_in_the_events_nor_in_the_answer() {
    struct Censor;

    #[async_trait]
    impl Middleware for Censor {
        fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
            Some(self)
        }
    }

    impl ChunkHook for Censor {
        fn stream_chunk(&self, _: &agent_core::RunCx, chunk: Chunk) -> agent_core::Result<Option<Chunk>> {
            Ok(Some(chunk).filter(|c| !matches!(c, Chunk::Text { delta, .. } if delta.starts_with("secret"))))
        }
    }

    for streaming in [true, false] {
        let watch = Watch::default();
        let model = ScriptedModel::new([Turn::text("the secret word")]);
        let builder = Agent::builder("a", model).streaming(streaming).middleware(watch.clone()).middleware(Censor);
        let end = run(builder).await;
        let said = watch.pick(|kind| match kind {
            EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta),
            _ => None,
        });
        assert_eq!((end.answer.as_str(), said.concat().as_str()), ("the word", "the word"));
        assert_eq!(end.history.last().expect("there").text(), "the word");
    }
}

#[tokio::test]
async fn where_nobody_has_a_chunk_hook_no_chunk_is_made_of_an_answer_that_came_whole() {
    struct Looks(bool);

    #[async_trait]
    impl Middleware for Looks {
        fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
            self.0.then_some(self)
        }

        async fn wrap_model_call(
            &self,
            req: agent_core::ModelRequest,
            next: agent_core::ModelNext<'_>,
        ) -> agent_core::Result<agent_core::ModelResponse> {
            assert_eq!(req.sink.is_idle(), !self.0);
            next.run(req).await
        }
    }

    impl ChunkHook for Looks {
        fn stream_chunk(&self, _: &agent_core::RunCx, chunk: Chunk) -> agent_core::Result<Option<Chunk>> {
            Ok(Some(chunk))
        }
    }

    for hears in [false, true] {
        let builder = Agent::builder("a", ScriptedModel::new([Turn::text("hello")])).middleware(Looks(hears));
        assert_eq!(run(builder).await.answer, "hello");
    }
}

// NexAU 36 (B)
#[tokio::test]
async fn every_sink_gets_every_event_in_the_same_order() {
    let (builder, _) = agent();
    let (one, two) = (Watch::default(), Watch::default());
    run(builder.middleware(one.clone()).middleware(two.clone())).await;
    let kinds = one.pick(|kind| match kind {
        EventKind::StepStarted { step } => Some(format!("step {step}")),
        EventKind::ModelAnswered { step, .. } => Some(format!("answer {step}")),
        EventKind::ToolStarted { call_id, .. } => Some(format!("tool {call_id}")),
        EventKind::ToolAnswered { call_id, .. } => Some(format!("result {call_id}")),
        EventKind::RunEnded { .. } => Some("end".to_owned()),
        _ => None,
    });
    assert_eq!(kinds, ["step 1", "answer 1", "tool 1", "result 1", "step 2", "answer 2", "end"]);
    assert_eq!(one.events(), two.events());
    assert!(one.events().is_sorted_by_key(|event| event.position));
}

// --- an answer of a hook is treated like the model's ---

#[tokio::test]
async fn a_hook_that_puts_calls_into_an_answer_has_them_run() {
    let model = ScriptedModel::new([Turn::text("nothing to do"), Turn::text("done")]);
    let first = AtomicU32::new(0);
    let plan = hooks::after_model(move |_, res| {
        if first.fetch_add(1, Ordering::SeqCst) == 0 {
            res.message = AssistantMessage::new(vec![agent_core::Block::tool_call("h1", "f", "{}")]);
        }
        Ok(())
    });
    let end = run(Agent::builder("a", model).tool(gives("f", json!("ran"))).middleware(plan)).await;
    assert_eq!(results(&end.history), [("h1".into(), "ran".into(), false)]);
}
