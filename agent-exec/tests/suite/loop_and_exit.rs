//! The loop and its exits. External control of a run is tested in `control.rs`, persistence of
//! sessions in `sessions.rs`.

use agent_core::{
    AssistantMessage, Block, Error, ErrorKind, EventKind, ExitReason, FinishReason, Finished, MemoryJournal, Message,
    ModelInfo, RunEnd, RunRequest, Verdict,
    journal::RunStatus,
    message::{Origin, Raw, ServerCall},
    testing::{HookTrace, ScriptedModel, Turn},
    tool::WebSearch,
};
use agent_exec::{Agent, AgentBuilder};
use agent_tools::{Finish, Structured};
use serde_json::json;

use crate::common::{Watch, double, fails, finished, hooks, ms, results, roles, stopped, tool};

/// Builds an agent with the tool `f` that doubles `x`, on a model with these turns.
fn with_f(turns: impl IntoIterator<Item = Turn>) -> (AgentBuilder, ScriptedModel) {
    let model = ScriptedModel::new(turns);
    (Agent::builder("a", model.clone()).tool(double("f")), model)
}

/// Returns a call of `f` with `x` = 3.
fn call(id: &str) -> Turn {
    Turn::call(id, "f", json!({"x": 3}))
}

async fn run(builder: AgentBuilder) -> Finished {
    finished(builder.build().expect("builds").run("go").await)
}

// --- texts ---

// Haystack 1, 17, NexAU 1
#[tokio::test]
async fn a_text_is_one_step_and_the_system_prompt_is_seen_but_not_part_of_the_history() {
    let model = ScriptedModel::new([Turn::text("hello")]);
    let end = run(Agent::builder("a", model.clone()).system("Be kind.")).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("hello", 1, &ExitReason::Text));
    assert_eq!(roles(&end.history), ["user", "assistant"]);
    assert_eq!(model.requests()[0].system.as_deref(), Some("Be kind."));
    model.assert_finished();
}

// Haystack 8, 10
#[tokio::test]
async fn a_message_that_says_nothing_is_no_answer_and_not_kept_while_there_are_tools() {
    let (builder, model) = with_f([Turn::text(""), Turn::text("ok")]);
    let end = run(builder).await;
    assert_eq!((end.answer.as_str(), end.steps), ("ok", 1), "the step's model call was tried again");
    assert_eq!(roles(&end.history), ["user", "assistant"], "providers refuse an empty message");
    model.assert_finished();
}

#[tokio::test]
async fn a_model_that_says_nothing_twice_ends_the_run_as_empty_and_a_hook_may_go_on() {
    let silent = || [Turn::text(""), Turn::text("")];
    let (builder, model) = with_f(silent().into_iter().chain([Turn::text("never asked for")]));
    let watch = Watch::default();
    let end = run(builder.middleware(watch.clone())).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("", 1, &ExitReason::Empty));
    assert_eq!((model.calls(), roles(&end.history)), (2, vec!["user"]));
    assert_eq!(watch.warnings(), ["the model said nothing: it is asked once more"]);

    let (builder, model) = with_f(silent().into_iter().chain([Turn::text("ok")]));
    let nudge = hooks::on_exit(|cx, exit| match exit.reason {
        ExitReason::Empty => cx.steer(Message::user("Please answer.")).map(|()| Verdict::Again),
        _ => Ok(Verdict::Proceed),
    });
    let end = run(builder.middleware(nudge)).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("ok", 2, &ExitReason::Text));
    assert_eq!(model.requests()[2].texts(), ["go", "Please answer."]);
    model.assert_finished();
}

// --- incomplete turns ---

/// Returns a turn in which a provider's tool is running.
fn at_work(blocks: impl IntoIterator<Item = Block>) -> Turn {
    let raw = Raw::from_value(Origin::new("wire", "provider", "model"), &json!({"type": "search"}));
    let searching = Block::Server(ServerCall::new("s1", "web_search", raw));
    let blocks = blocks.into_iter().chain([searching]).collect();
    Turn::message(AssistantMessage::new(blocks)).finish(FinishReason::Paused)
}

#[tokio::test]
async fn a_model_that_paused_is_asked_again_with_what_it_said_and_is_not_silent() {
    let (builder, model) =
        with_f([at_work([Block::text("I look it up.")]), at_work([]), Turn::text("Nothing is new.")]);
    let watch = Watch::default();
    let end = run(builder.middleware(watch.clone())).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("Nothing is new.", 3, &ExitReason::Text));
    assert_eq!(roles(&end.history), ["user", "assistant", "assistant", "assistant"]);
    assert_eq!(model.requests()[2].messages.len(), 3, "each pause goes back to the provider");
    assert!(watch.warnings().is_empty());
    model.assert_finished();
}

#[tokio::test]
async fn a_pause_is_not_an_answer_of_the_wrong_form() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let form = Structured::from_schema("number", schema).expect("a schema");
    let model = ScriptedModel::new([at_work([Block::text("I look it up.")]), Turn::text(r#"{"n":7}"#)]);
    let end = run(Agent::builder("a", model.clone()).middleware(form)).await;
    assert_eq!((end.answer.as_str(), end.steps, model.calls()), (r#"{"n":7}"#, 2, 2));
}

#[tokio::test]
async fn a_model_that_pauses_without_end_is_stopped_by_the_steps_that_a_run_may_take() {
    let builder = Agent::builder("a", ScriptedModel::new((0..9).map(|_| at_work([])))).max_steps(3);
    let end = run(builder).await;
    assert_eq!((end.steps, end.reason), (3, ExitReason::StepLimit));
}

#[tokio::test]
async fn a_tool_of_the_provider_is_offered_beside_the_own_ones_and_no_two_have_one_name() {
    let (builder, model) = with_f([Turn::text("ok")]);
    run(builder.server_tool(WebSearch::new())).await;
    assert_eq!(model.requests()[0].tools, ["f", "web_search"]);

    let twice = Agent::builder("a", ScriptedModel::new([])).tool(double("web_search")).server_tool(WebSearch::new());
    let error = twice.build().expect_err("two of one name");
    assert!(error.message().contains("two tools are named 'web_search'"), "{error}");
    let blind = ScriptedModel::new([]).with_info(ModelInfo::new("m").without_tools());
    let error = Agent::builder("a", blind).server_tool(WebSearch::new()).build().expect_err("no tools");
    assert!(error.message().contains("tools"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cut_off_between_two_empty_answers_does_not_ask_a_third_time() {
    for from_journal in [false, true] {
        let journal = MemoryJournal::default();
        let agent = |model: &ScriptedModel| {
            let agent = Agent::builder("a", model.clone()).tool(double("f")).store(journal.clone());
            agent.build().expect("builds")
        };
        let first = ScriptedModel::new([Turn::text(""), Turn::text("never").delay(ms(1_000))]);
        let run = agent(&first).start(RunRequest::user("go").session("s"));
        let handle = run.handle();
        let cancelled = async {
            tokio::time::sleep(ms(500)).await;
            handle.cancel();
        };
        let request = match from_journal {
            false => RunRequest::resume(stopped(tokio::join!(run, cancelled).0).1, []),
            true => {
                assert!(tokio::time::timeout(ms(500), run).await.is_err(), "its process died");
                RunRequest::recover("s", [])
            }
        };
        assert_eq!(first.calls(), 2);
        let again = ScriptedModel::new([Turn::text("")]);
        let end = finished(agent(&again).start(request).await);
        assert_eq!((&end.reason, end.steps), (&ExitReason::Empty, 1), "from the journal: {from_journal}");
        again.assert_finished();
    }
}

#[tokio::test]
async fn a_message_that_says_nothing_is_asked_for_once_more_without_tools_too() {
    let thinking = || Turn::message(agent_core::AssistantMessage::new(vec![agent_core::Block::reasoning("hm")]));
    for silent in [Turn::text(""), thinking()] {
        let end = run(Agent::builder("a", ScriptedModel::new([silent.clone(), Turn::text("Four.")]))).await;
        assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("Four.", 1, &ExitReason::Text));
        let end = run(Agent::builder("a", ScriptedModel::new([silent.clone(), silent]))).await;
        assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("", 1, &ExitReason::Empty));
    }
}

#[tokio::test]
async fn the_words_of_a_refusal_are_the_answer_of_the_run() {
    let origin = agent_core::message::Origin::new("w", "p", "m");
    let refusal = serde_json::json!({"type": "refusal", "refusal": "I cannot help with that."});
    let raw = agent_core::message::Raw::from_value(origin, &refusal);
    let refuses = Turn::message(agent_core::AssistantMessage::new(vec![agent_core::Block::Other(raw)]));
    let end = run(Agent::builder("a", ScriptedModel::new([refuses.finish(FinishReason::ContentFilter)]))).await;
    assert_eq!((end.answer.as_str(), end.reason), ("I cannot help with that.", ExitReason::ContentFilter));
}

// Haystack 9
#[tokio::test]
async fn an_answer_cut_at_the_token_limit_or_withheld_ends_the_run_with_that_reason() {
    for (text, finish, reason) in [
        ("par", FinishReason::Length, ExitReason::Length),
        ("", FinishReason::ContentFilter, ExitReason::ContentFilter),
    ] {
        let (builder, _) = with_f([Turn::text(text).finish(finish)]);
        let end = run(builder).await;
        assert_eq!((end.answer.as_str(), end.steps, end.reason), (text, 1, reason));
    }
}

#[tokio::test]
async fn a_run_in_which_only_the_system_speaks_is_warned_of_and_the_model_is_asked_all_the_same() {
    for (messages, warnings) in [(vec![], 1), (vec![Message::system("Begin.")], 1), (vec![Message::user("go")], 0)] {
        let (watch, model) = (Watch::default(), ScriptedModel::new([Turn::text("hello")]));
        let agent = Agent::builder("a", model).system("Be kind.").middleware(watch.clone()).build().expect("builds");
        assert_eq!(finished(agent.start(RunRequest::new(messages)).await).answer, "hello");
        assert_eq!(watch.warnings().len(), warnings, "{:?}", watch.warnings());
    }
}

// Haystack 16
#[tokio::test]
async fn a_text_ends_the_run_even_if_only_a_tool_is_named_as_its_end() {
    let (builder, _) = with_f([Turn::text("no tool")]);
    assert_eq!(run(builder.exit_on(["f"])).await.reason, ExitReason::Text);
}

// --- tool calls ---

// Haystack 2, NexAU 2
#[tokio::test]
async fn a_tool_call_and_then_a_text_are_two_steps_and_four_messages() {
    let (builder, model) = with_f([call("a"), Turn::text("done")]);
    let end = run(builder).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("done", 2, &ExitReason::Text));
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(end.tool_calls["f"], 1);
    let second = &model.requests()[1];
    assert_eq!(second.roles(), ["user", "assistant", "tool"]);
    let asked: Vec<_> = second.messages[1].as_assistant().expect("asked").calls().map(|c| c.id.to_string()).collect();
    assert_eq!((asked, second.results()), (vec!["a".to_owned()], vec![("a".to_owned(), "6".to_owned())]));
    model.assert_finished();
}

// Haystack 3
#[tokio::test]
async fn an_exit_tool_ends_the_run_with_its_result() {
    let (builder, model) = with_f([call("a")]);
    let end = run(builder.exit_on(["f"])).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("6", 1, &ExitReason::Tool("f".into())));
    assert_eq!(roles(&end.history), ["user", "assistant", "tool"]);
    model.assert_finished();
}

// NexAU 20 (B)
#[tokio::test]
async fn the_answer_of_an_exit_tool_is_its_text_without_quotes_and_json_where_it_is_structured() {
    for (value, answer) in [(json!({"a": 1}), r#"{"a":1}"#), (json!("A done"), "A done"), (json!({"result": "x"}), "x")]
    {
        let model = ScriptedModel::new([Turn::call("a", "finish", json!({}))]);
        let end = run(Agent::builder("a", model).tool(crate::common::gives("finish", value)).exit_on(["finish"])).await;
        assert_eq!(end.answer, answer);
    }
}

#[tokio::test]
async fn finish_ends_the_run_with_its_result_once_it_is_called_as_it_should_be() {
    let model = ScriptedModel::new([
        Turn::call("a", "finish", json!({})),
        Turn::call("b", "finish", json!({"result": "All three files are renamed."})),
    ]);
    let end = run(Agent::builder("a", model.clone()).tool(Finish::new()).exit_on(["finish"])).await;
    assert_eq!(
        (end.answer.as_str(), &end.reason),
        ("All three files are renamed.", &ExitReason::Tool("finish".into()))
    );
    let told = &model.requests()[1].results()[0].1;
    assert!(told.contains("'result'"), "the model is told what is missing: {told}");
    model.assert_finished();
}

// Haystack 4, NexAU 21 (B)
#[tokio::test]
async fn an_exit_tool_that_fails_does_not_end_the_run() {
    let failing = [
        fails("finish", "not yet"),
        crate::common::gives("finish", json!({"status": "error", "error": "not yet"})),
        tool("finish", async |_| panic!("not yet")),
    ];
    for finish in failing {
        let model = ScriptedModel::new([Turn::call("a", "finish", json!({})), Turn::text("sorry")]);
        let end = run(Agent::builder("a", model.clone()).tool(finish).exit_on(["finish"])).await;
        assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("sorry", 2, &ExitReason::Text));
        assert!(results(&end.history)[0].2, "the model was told of the failure");
        model.assert_finished();
    }
}

// Haystack 5, 6, 7
#[tokio::test]
async fn of_several_exit_tools_the_first_called_ends_the_run_unless_one_of_them_failed() {
    for (called, exits, reason) in [
        (["f", "bad"], vec!["f", "bad"], None),
        (["f", "bad"], vec!["f"], Some("f")),
        (["g", "f"], vec!["f", "g"], Some("g")),
    ] {
        let turn = Turn::calls([("1", called[0], json!({"x": 1})), ("2", called[1], json!({"x": 1}))]);
        let (builder, _) = with_f([turn, Turn::text("text")]);
        let end = run(builder.tool(double("g")).tool(fails("bad", "no")).exit_on(exits)).await;
        assert_eq!(end.reason, reason.map_or(ExitReason::Text, |name| ExitReason::Tool(name.into())));
    }
}

// --- limits ---

// Haystack 11, NexAU 3 (B)
#[tokio::test]
async fn a_step_limit_of_n_is_n_model_calls_and_n_batches_and_a_warning() {
    for n in [1, 2, 5] {
        let (builder, model) = with_f((0..10).map(|i| call(&i.to_string())));
        let (watch, trace) = (Watch::default(), HookTrace::new("t"));
        let end = run(builder.max_steps(n).middleware(watch.clone()).middleware(trace.clone())).await;
        assert_eq!((end.steps, &end.reason), (n, &ExitReason::StepLimit));
        assert_eq!((model.calls(), trace.seen_of("before_tools").len()), (n as usize, n as usize));
        assert_eq!(end.history.last().expect("there").role(), "tool");
        assert_eq!(watch.warnings(), [format!("the step limit of {n} is reached")]);
    }
}

// Haystack 12 (B)
#[tokio::test]
async fn at_the_step_limit_a_final_answer_without_tools_can_be_asked_for() {
    let (builder, model) = with_f([call("a"), call("b"), Turn::text("so far: 6")]);
    let end = run(builder.max_steps(2).final_answer(true)).await;
    assert_eq!((end.answer.as_str(), end.steps, &end.reason), ("so far: 6", 3, &ExitReason::StepLimit));
    assert_eq!(end.history.last().expect("there").role(), "assistant");
    assert!(model.requests()[2].tools.is_empty());
    model.assert_finished();
}

#[tokio::test]
async fn a_final_answer_that_calls_a_tool_all_the_same_is_kept_without_the_call() {
    let (builder, _) = with_f([call("a"), Turn::text("enough").and_call("b", "f", json!({"x": 1}))]);
    let end = run(builder.max_steps(1).final_answer(true)).await;
    assert_eq!((end.answer.as_str(), end.tool_calls["f"]), ("enough", 1));
    assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"]);
}

// Haystack 13
#[tokio::test]
async fn a_step_limit_of_zero_calls_nobody_and_leaves_the_messages() {
    let (builder, model) = with_f([]);
    let end = run(builder.max_steps(0)).await;
    assert_eq!((model.calls(), end.steps, end.reason), (0, 0, ExitReason::StepLimit));
    assert_eq!(roles(&end.history), ["user"]);
}

// --- stopping ---

// NexAU 4
#[tokio::test]
async fn a_run_stopped_before_its_loop_began_calls_no_model_and_still_leaves_its_middlewares() {
    let (builder, model) = with_f([]);
    let trace = HookTrace::new("t");
    let stop = hooks::before_agent(|cx| {
        cx.stop("enough");
        Ok(())
    });
    let end = run(builder.middleware(trace.clone()).middleware(stop)).await;
    assert_eq!((model.calls(), end.steps, end.reason), (0, 0, ExitReason::Stopped("enough".into())));
    assert_eq!(trace.seen(), ["t.before_agent", "t.after_agent(finished)"]);
}

// --- failing ---

// NexAU 6
#[tokio::test]
async fn a_request_too_large_for_the_model_fails_with_the_providers_word() {
    let model = ScriptedModel::new([Turn::error(|| Error::new(ErrorKind::ContextOverflow, "too long"))])
        .with_info(ModelInfo::new("small").with_context_window(1));
    let e = Agent::builder("a", model.clone()).build().expect("builds").run("go").await.expect_err("overflows");
    assert_eq!((e.kind(), model.calls()), (ErrorKind::ContextOverflow, 1), "the model was asked, not an estimate");
}

// NexAU 7
#[tokio::test]
async fn a_model_error_fails_the_run_and_leaves_no_trace_in_the_conversation() {
    let (builder, _) = with_f([Turn::error(|| Error::new(ErrorKind::Provider, "boom"))]);
    let watch = Watch::default();
    let agent = builder.middleware(watch.clone()).build().expect("builds");
    let e = agent.run("go").await.expect_err("fails");
    assert_eq!((e.kind(), e.message()), (ErrorKind::Provider, "boom"));
    let checkpoint = e.checkpoint().expect("a failed run says where it stood");
    assert_eq!((roles(&checkpoint.history), checkpoint.step), (vec!["user"], 0));
    let ends = watch.pick(|kind| match kind {
        EventKind::RunEnded { status, error, .. } => Some((status, error)),
        _ => None,
    });
    assert_eq!(ends, [(RunStatus::Failed, Some("provider: boom".to_owned()))]);
}

// NexAU 8 (B)
#[tokio::test]
async fn an_error_handler_can_give_an_answer_and_the_failure_is_still_reported() {
    let (builder, _) = with_f([Turn::error(|| Error::new(ErrorKind::Provider, "boom"))]);
    let watch = Watch::default();
    let handler = hooks::after_agent(|cx, end| {
        if end.is_err() {
            let sorry = Finished::new((**cx.ids()).clone(), "sorry", ExitReason::Verdict, cx.history());
            *end = Ok(RunEnd::Finished(Box::new(sorry)));
        }
        Ok(())
    });
    assert_eq!(run(builder.middleware(watch.clone()).middleware(handler)).await.answer, "sorry");
    let ends = watch.pick(|kind| match kind {
        EventKind::RunEnded { status, error, .. } => Some((status, error)),
        _ => None,
    });
    assert_eq!(ends, [(RunStatus::Finished(ExitReason::Verdict), Some("provider: boom".to_owned()))]);
}

// Haystack 52 (B)
#[tokio::test]
async fn a_failed_run_goes_on_from_its_error_with_a_model_that_works() {
    let (builder, _) = with_f([call("a"), Turn::error(|| Error::new(ErrorKind::Provider, "boom"))]);
    let e = builder.build().expect("builds").run("go").await.expect_err("fails");
    let checkpoint = e.checkpoint().expect("carried").clone();
    assert_eq!(roles(&checkpoint.history), ["user", "assistant", "tool"]);
    let (builder, model) = with_f([Turn::text("done")]);
    let end = builder.build().expect("builds").start(RunRequest::resume(checkpoint, [])).await;
    let end = finished(end);
    assert_eq!((end.answer.as_str(), end.history.len(), end.steps), ("done", 4, 2));
    model.assert_finished();
}

// --- verdicts of hooks ---

// NexAU 9
#[tokio::test]
async fn a_hook_that_takes_back_all_calls_can_have_the_model_asked_again() {
    for again in [true, false] {
        let (builder, model) = with_f([Turn::text("let me").and_call("a", "f", json!({"x": 1})), Turn::text("done")]);
        let guard = hooks::after_model(move |cx, res| {
            if res.message.has_calls() {
                let said = res.message.text();
                res.message = AssistantMessage::from(said.as_str());
                if again {
                    res.verdict = Verdict::Again;
                    cx.steer(Message::user("not that tool"))?;
                }
            }
            Ok(())
        });
        let end = run(builder.middleware(guard)).await;
        assert_eq!(end.answer, if again { "done" } else { "let me" });
        assert_eq!((model.calls(), end.tool_calls.len()), (if again { 2 } else { 1 }, 0));
        if again {
            assert_eq!(model.requests()[1].texts(), ["go", "let me", "not that tool"]);
        }
    }
}

#[tokio::test]
async fn a_run_that_a_hook_finishes_with_calls_pending_answers_them_without_running_them() {
    let (builder, _) = with_f([Turn::text("let me").and_call("a", "f", json!({"x": 1}))]);
    let watch = Watch::default();
    let enough = hooks::after_model(|_, res| {
        res.verdict = Verdict::Finish;
        Ok(())
    });
    let end = run(builder.middleware(watch.clone()).middleware(enough)).await;
    assert_eq!((end.answer.as_str(), &end.reason, end.tool_calls.len()), ("let me", &ExitReason::Verdict, 0));
    let refused = [("a".to_owned(), "Not run: the run was finished.".to_owned(), true)];
    assert_eq!((results(&end.history), watch.answered()), (refused.to_vec(), refused.to_vec()));
}

// --- several runs ---

#[tokio::test]
async fn the_answer_at_a_limit_is_a_text_of_this_run_and_not_of_an_earlier_one() {
    for (first, answer) in [(call("b"), ""), (Turn::text("so far").and_call("b", "f", json!({"x": 1})), "so far")] {
        let (builder, _) = with_f([Turn::text("earlier"), first, call("c")]);
        let agent = builder.max_steps(2).store(MemoryJournal::default()).build().expect("builds");
        let request = || RunRequest::user("go").session("s");
        assert_eq!(finished(agent.start(request()).await).answer, "earlier");
        let end = finished(agent.start(request()).await);
        assert_eq!((end.answer.as_str(), end.reason), (answer, ExitReason::StepLimit));
    }
}
