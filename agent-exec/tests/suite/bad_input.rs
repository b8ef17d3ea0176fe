//! Misbehaving models, tools and hooks, and the reactions to them.

use agent_core::{
    AssistantMessage, Block, Chunk, Error, ErrorKind, Exit, ExitReason, Flow, Journal, MemoryJournal, Message,
    Middleware, ModelRequest, ModelResponse, Result, Retry, RunCx, RunEnd, RunRequest, ToolBatch, ToolOutput,
    ToolRequest, ToolResults, Verdict, async_trait,
    journal::{Entry, EntryBody},
    middleware::ChunkHook,
    run::checkpoint::Phase,
    testing::{ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::{Log, Watch, carried_over, double, fails, finished, gives, hangs, ms, results, roles, tool};

/// Builds an agent with the tool `f` that doubles `x`, on a model with these turns.
fn with_f(turns: impl IntoIterator<Item = Turn>) -> (AgentBuilder, ScriptedModel) {
    let model = ScriptedModel::new(turns);
    (Agent::builder("a", model.clone()).tool(double("f")), model)
}

fn built(builder: AgentBuilder) -> Agent {
    builder.build().expect("builds")
}

fn told<const N: usize>(results: [(&str, &str, bool); N]) -> Vec<(String, String, bool)> {
    results.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed)).to_vec()
}

// --- calls ---

#[tokio::test(start_paused = true)]
async fn whatever_is_wrong_with_a_call_it_is_answered_in_its_place_and_its_siblings_are_not_touched() {
    let log = Log::default();
    let panics = tool("panics", async |_| panic!("a bug at line 42"));
    let bad = tool("fails", async |_| {
        let cause = std::io::Error::other("a stack trace");
        Err(Error::tool("no such city").with_source(cause).with_context("key", "secret"))
    });
    let calls = Turn::calls([
        ("1", "absent", json!({})),
        ("2", "panics", json!({})),
        ("3", "hangs", json!({})),
        ("4", "fails", json!({})),
        ("5", "f", json!({"x": "many"})),
        ("6", "f", json!({"x": 21})),
    ]);
    let (builder, model) = with_f([calls, Turn::text("done")]);
    let hanging = hangs("hangs", &log).with(|options| options.timeout(ms(50)));
    let begun = Instant::now();
    let end = finished(built(builder.tool(panics).tool(hanging).tool(bad)).run("go").await);
    assert_eq!(begun.elapsed(), ms(50));
    assert_eq!(log.seen(), ["3 begins", "3 dropped"]);
    let answers = results(&end.history);
    let (wrong, right): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, _, failed)| *failed);
    assert_eq!(wrong.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
    assert_eq!(right, [&("6".to_owned(), "42".to_owned(), false)]);
    let text = |n: usize| answers[n].1.as_str();
    assert_eq!(text(0), "Tool 'absent' not found. Available tools: f, panics, hangs, fails");
    assert_eq!(text(1), "Tool 'panics' failed unexpectedly.");
    assert_eq!(text(2), "Tool 'hangs' timed out after 50 ms.");
    assert_eq!(text(3), "no such city", "neither the cause nor the facts of an error are for the model");
    assert!(text(4).contains('x'), "{}", text(4));
    model.assert_finished();
}

#[tokio::test]
async fn arguments_that_are_no_json_do_not_make_the_conversation_unfit_for_a_provider() {
    for arguments in ["{\"x\": 21", "{'x': 21}", "not json at all", "[1, 2", "\u{0}", "null", "[]", "\"x\"", ""] {
        let (builder, model) = with_f([Turn::raw_call("1", "f", arguments), Turn::text("done")]);
        let end = finished(built(builder).run("go").await);
        let Some(Message::Assistant(message)) = end.history.get(1) else { panic!("{:?}", end.history) };
        let kept = &message.calls().next().expect("the call").arguments;
        assert!(kept.is_empty() || serde_json::from_str::<Value>(kept).is_ok(), "{arguments:?} was kept as {kept:?}");
        assert_eq!(results(&end.history).len(), 1, "{arguments:?}");
        model.assert_finished();
    }
}

#[tokio::test]
async fn calls_with_one_id_are_told_apart_and_each_is_answered() {
    let block = |id: &str, x: u32| Block::tool_call(id, "f", json!({ "x": x }).to_string());
    let message = AssistantMessage::new(vec![block("c", 1), block("c", 2), block("", 3), block("c", 4)]);
    let (builder, model) = with_f([Turn::message(message), Turn::text("done")]);
    let end = finished(built(builder).run("go").await);
    let [first, rest @ ..] = &results(&end.history)[..] else { panic!("no results") };
    assert_eq!(first.0, "c", "the first keeps its id");
    let texts: Vec<_> = rest.iter().map(|(_, text, _)| text.as_str()).collect();
    assert_eq!((first.1.as_str(), texts), ("2", vec!["4", "6", "8"]));
    assert_eq!((end.tool_calls["f"], model.requests()[1].results().len()), (4, 4));
}

#[tokio::test]
async fn an_output_of_fifty_megabytes_is_cut_in_the_conversation_and_whole_in_the_journal() {
    let size = 50 << 20;
    let journal = MemoryJournal::default();
    let huge = tool("huge", move |_| async move { Ok(ToolOutput::text("é".repeat(size / 2))) });
    let (builder, model) = with_f([Turn::call("1", "huge", json!({})), Turn::text("done")]);
    let agent = built(builder.tool(huge).store(journal.clone()).max_tool_output(1001));
    finished(agent.start(RunRequest::user("go").session("s")).await);
    let shown = &model.requests()[1].results()[0].1;
    let note = format!("[Cut: 1001 of {size} bytes shown; the whole result is in the journal.]");
    assert_eq!(*shown, format!("{}\n{note}", "é".repeat(500)), "cut between two characters");
    let entries = journal.read("s", 0, 100).await.expect("reads");
    let whole = |entry: &Entry| match &entry.body {
        EntryBody::ToolFinished { output, .. } => Some(output.to_text().len()),
        _ => None,
    };
    assert_eq!(entries.iter().find_map(|entry| whole(entry)), Some(size));
}

// --- models ---

#[tokio::test]
async fn a_model_that_never_says_anything_is_asked_twice() {
    let (builder, model) = with_f((0..2).map(|_| Turn::text("")));
    let end = finished(built(builder.max_steps(5)).run("go").await);
    assert_eq!((&end.reason, end.steps, roles(&end.history)), (&ExitReason::Empty, 1, vec!["user"]));
    model.assert_finished();
}

// Haystack 52
#[tokio::test]
async fn a_model_error_of_any_kind_carries_where_the_run_stood_and_a_better_model_ends_it_properly() {
    let kinds = [
        ErrorKind::ContextOverflow,
        ErrorKind::RateLimited,
        ErrorKind::Overloaded,
        ErrorKind::Authentication,
        ErrorKind::Quota,
        ErrorKind::InvalidRequest,
        ErrorKind::ContentFiltered,
        ErrorKind::Truncated,
        ErrorKind::Timeout,
        ErrorKind::Transport,
        ErrorKind::Protocol,
        ErrorKind::Provider,
        ErrorKind::Unexpected,
        ErrorKind::Cancelled,
    ];
    for kind in kinds {
        let fail = move || Error::new(kind, "it went wrong").with_retry(Retry::Temporary(Some(ms(7))));
        let call = Turn::call("1", "f", json!({"x": 3}));
        let (builder, _) = with_f([call, Turn::text("half an ans").then_fail(fail)]);
        let e = built(builder).run("go").await.expect_err("fails");
        assert_eq!((e.kind(), e.retry(), e.message()), (kind, Retry::Temporary(Some(ms(7))), "it went wrong"));
        let checkpoint = carried_over(e.checkpoint().expect("a checkpoint"));
        assert_eq!((roles(&checkpoint.history), checkpoint.step), (vec!["user", "assistant", "tool"], 1), "{kind}");
        assert_eq!(checkpoint.phase, Phase::BeforeModel);
        let (builder, model) = with_f([Turn::text("done")]);
        let end = finished(built(builder).start(RunRequest::resume(checkpoint, [])).await);
        assert_eq!((end.answer.as_str(), end.steps, end.tool_calls["f"]), ("done", 2, 1), "{kind}");
        assert_eq!(roles(&end.history), ["user", "assistant", "tool", "assistant"]);
        assert!(model.requests()[0].resumed);
    }
}

// --- hooks ---

const POINTS: [&str; 10] = [
    "before_agent",
    "before_model",
    "stream_chunk",
    "after_model",
    "before_tools",
    "before_tool",
    "after_tool",
    "after_tools",
    "on_exit",
    "after_agent",
];

/// Fails at one hook point.
struct Fails {
    point: &'static str,
    observer: bool,
}

impl Fails {
    fn at<T>(&self, point: &str, value: T) -> Result<T> {
        if self.point == point { Err(Error::tool(format!("{point} is broken"))) } else { Ok(value) }
    }
}

#[async_trait]
impl Middleware for Fails {
    fn name(&self) -> &str {
        "culprit"
    }

    fn observer(&self) -> bool {
        self.observer
    }

    async fn before_agent(&self, _: &RunCx) -> Result<()> {
        self.at("before_agent", ())
    }

    async fn after_agent(&self, _: &RunCx, _: &mut Result<RunEnd>) -> Result<()> {
        self.at("after_agent", ())
    }

    async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
        self.at("before_model", Flow::Continue)
    }

    async fn after_model(&self, _: &RunCx, _: &mut ModelResponse) -> Result<()> {
        self.at("after_model", ())
    }

    fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
        Some(self)
    }

    async fn before_tools(&self, _: &RunCx, _: &mut ToolBatch) -> Result<()> {
        self.at("before_tools", ())
    }

    async fn after_tools(&self, _: &RunCx, _: &mut ToolResults) -> Result<Verdict> {
        self.at("after_tools", Verdict::Proceed)
    }

    async fn before_tool(&self, _: &RunCx, _: &mut ToolRequest) -> Result<Flow<ToolOutput>> {
        self.at("before_tool", Flow::Continue)
    }

    async fn after_tool(&self, _: &RunCx, _: &ToolRequest, _: &mut ToolOutput) -> Result<()> {
        self.at("after_tool", ())
    }

    async fn on_exit(&self, _: &RunCx, _: &mut Exit) -> Result<Verdict> {
        self.at("on_exit", Verdict::Proceed)
    }
}

impl ChunkHook for Fails {
    fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
        self.at("stream_chunk", Some(chunk))
    }
}

fn culprit(point: &'static str, observer: bool) -> (AgentBuilder, ScriptedModel, Watch) {
    let watch = Watch::default();
    let (builder, model) = with_f([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    (builder.middleware(watch.clone()).middleware(Fails { point, observer }), model, watch)
}

#[tokio::test]
async fn a_hook_that_fails_fails_the_run_and_is_named() {
    for point in POINTS {
        let e = built(culprit(point, false).0).run("go").await.expect_err(point);
        assert_eq!((e.kind(), e.context("middleware")), (ErrorKind::Tool, Some("culprit")), "{point}");
        assert_eq!(e.message(), format!("{point} is broken"));
    }
}

#[tokio::test]
async fn a_run_that_a_hook_failed_goes_on_without_the_hook_and_nothing_that_was_done_is_done_again() {
    // The run had ended when `after_agent` failed, so that there is nothing to resume.
    for point in POINTS.into_iter().filter(|point| *point != "after_agent") {
        let e = built(culprit(point, false).0).run("go").await.expect_err(point);
        let checkpoint = carried_over(e.checkpoint().expect("a checkpoint"));
        let ran_before = matches!(point, "after_tool" | "after_tools" | "on_exit");
        let log = Log::default();
        let noted = log.clone();
        let f = tool("f", move |_| {
            noted.note("f runs");
            async { Ok(ToolOutput::text("6")) }
        });
        let call = Turn::call("1", "f", json!({"x": 3}));
        let asks_again = matches!(point, "before_agent" | "before_model" | "stream_chunk");
        let turns = asks_again.then_some(call).into_iter().chain([Turn::text("done")]);
        let agent = built(Agent::builder("a", ScriptedModel::new(turns)).tool(f));
        let end = finished(agent.start(RunRequest::resume(checkpoint, []).allow_changed_agent()).await);
        assert_eq!((end.answer.as_str(), end.tool_calls["f"]), ("done", 1), "{point}");
        assert_eq!(log.seen().len(), usize::from(!ran_before), "{point}");
        assert_eq!(results(&end.history), told([("1", "6", false)]), "{point}");
    }
}

#[tokio::test]
async fn an_observer_that_fails_is_reported_and_the_run_goes_on() {
    for point in POINTS {
        let (builder, model, watch) = culprit(point, true);
        let end = finished(built(builder).run("go").await);
        assert_eq!((end.answer.as_str(), results(&end.history)), ("done", told([("1", "6", false)])), "{point}");
        let warnings = watch.warnings();
        let wanted = format!("tool: {point} is broken (middleware: culprit)");
        assert!(!warnings.is_empty() && warnings.iter().all(|warning| *warning == wanted), "{point}: {warnings:?}");
        model.assert_finished();
    }
}

#[tokio::test]
async fn a_hook_that_takes_results_away_fails_the_run_and_not_the_history() {
    let hook = crate::common::hooks::after_tools(|_, results| {
        results.results.clear();
        Ok(Verdict::Proceed)
    });
    let (builder, _) = with_f([Turn::call("1", "f", json!({"x": 3}))]);
    let e = built(builder.middleware(hook)).run("go").await.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::History);
    let checkpoint = e.checkpoint().expect("a checkpoint");
    assert_eq!(roles(&checkpoint.history), ["user"]);
    assert!(matches!(&checkpoint.phase, Phase::Tools(turn) if turn.open_calls().next().is_none()), "nothing is lost");
}

#[tokio::test]
async fn with_raised_errors_the_siblings_of_a_failing_tool_are_kept_in_the_checkpoint() {
    let calls = [("1", "f", json!({"x": 1})), ("2", "bad", json!({})), ("3", "good", json!({}))];
    let (builder, _) = with_f([Turn::calls(calls)]);
    let agent = builder.tool(fails("bad", "no such city")).tool(gives("good", json!("good"))).raise_tool_errors();
    let e = built(agent).run("go").await.expect_err("raised");
    assert_eq!((e.kind(), e.message()), (ErrorKind::Tool, "no such city"));
    assert_eq!(e.context("completed"), Some("1, 3"));
    let Phase::Tools(turn) = &e.checkpoint().expect("a checkpoint").phase else { panic!("another phase") };
    assert_eq!(turn.open_calls().collect::<Vec<_>>(), ["2"]);
}

#[tokio::test]
async fn a_layer_that_panics_fails_the_run_and_not_the_results_of_its_siblings() {
    let panics = tower::util::MapRequestLayer::new(|request: ToolRequest| {
        assert_ne!(&*request.call.name, "good", "a bug at line 42");
        request
    });
    for hooked in [false, true] {
        let (builder, _) = with_f([Turn::calls([("1", "f", json!({"x": 1})), ("2", "good", json!({}))])]);
        let mut builder = builder.tool(gives("good", json!("good"))).tool_layer(panics.clone());
        if hooked {
            builder = builder.middleware(crate::common::hooks::after_tools(|_, _| Ok(Verdict::Proceed)));
        }
        let e = built(builder).run("go").await.expect_err("a bug");
        assert_eq!((e.kind(), e.context("completed")), (ErrorKind::Middleware, Some("1")), "hooked: {hooked}");
        assert!(e.message().starts_with("the layer 'MapRequestLayer"), "{e}");
    }
}
