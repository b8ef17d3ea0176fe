//! Panics in the parts of a run: the run fails, names the panicking part, and ends.

use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use agent_core::{
    Chunk, Error, ErrorKind, Event, Flow, Journal, MemoryJournal, Middleware, Model, ModelInfo, ModelNext,
    ModelRequest, ModelResponse, Result, RunCx, RunRequest, Tool, ToolNext, ToolOutput, ToolRequest, Toolset,
    async_trait,
    journal::{Entry, EntryBody, RunStatus},
    middleware::ChunkHook,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::{Agent, AgentBuilder};
use serde_json::json;
use tower::{layer::layer_fn, service_fn};

use crate::common::{Watch, double, finished, hooks};

/// Panics without printing the message to the test's output.
fn boo() -> ! {
    resume_unwind(Box::new("boo"))
}

/// Builds an agent with the tool `f` that doubles `x`; its model calls it once and then says
/// "done".
fn agent(journal: &MemoryJournal) -> AgentBuilder {
    let model = ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]);
    Agent::builder("a", model).tool(double("f")).store(journal.clone())
}

/// Panics around model calls and around tool calls.
struct Wraps(&'static str);

#[async_trait]
impl Middleware for Wraps {
    fn name(&self) -> &str {
        self.0
    }

    async fn wrap_model_call(&self, req: ModelRequest, next: ModelNext<'_>) -> Result<ModelResponse> {
        if self.0 == "wrap_model_call" { boo() } else { next.run(req).await }
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: ToolNext<'_>) -> Result<ToolOutput> {
        if self.0 == "wrap_tool_call" { boo() } else { next.run(req).await }
    }
}

/// A model, and a tool set, that panics.
struct Panics;

#[async_trait]
impl Model for Panics {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("panics")
    }

    async fn call(&self, _: ModelRequest) -> Result<ModelResponse> {
        boo()
    }
}

#[async_trait]
impl Toolset for Panics {
    async fn tools(&self, _: &RunCx) -> Result<Vec<Arc<dyn Tool>>> {
        boo()
    }
}

/// Returns the error of a run whose agent has the parts that `add` adds, after checking that the
/// run has ended for everybody: the hooks that it entered, its journal, and a process that resumes
/// it.
async fn failure(who: &str, add: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Error {
    let (journal, trace) = (MemoryJournal::default(), HookTrace::new("outer"));
    let panicking = add(agent(&journal).middleware(trace.clone())).build().expect("builds");
    let e = panicking.start(RunRequest::user("go").session("s")).await.expect_err(who);
    let what_it_said = std::error::Error::source(&e).map(ToString::to_string);
    assert_eq!(what_it_said.as_deref(), Some("boo"), "{who}: for logs");
    trace.assert_times("outer.after_agent(failed)", 1);
    let entries = journal.read("s", 0, 1_000).await.expect("reads");
    let end = |entry: &Entry| match &entry.body {
        EntryBody::RunEnded { status, .. } => Some(status.clone()),
        _ => None,
    };
    assert_eq!(entries.last().and_then(|last| end(last)), Some(RunStatus::Failed), "{who}");
    assert_eq!(e.checkpoint().is_some(), who != "after_agent", "{who}: a run that was finished stands nowhere");
    if let Some(checkpoint) = e.checkpoint().cloned() {
        let model = match checkpoint.step {
            0 => ScriptedModel::new([Turn::call("1", "f", json!({"x": 3})), Turn::text("done")]),
            _ => ScriptedModel::new([Turn::text("done")]),
        };
        let goes_on = Agent::builder("a", model).tool(double("f")).store(journal.clone()).build().expect("builds");
        let end = finished(goes_on.start(RunRequest::resume(checkpoint, []).allow_changed_agent()).await);
        assert_eq!(end.answer, "done", "{who}");
    }
    e
}

#[tokio::test]
async fn a_panic_in_any_hook_is_an_error_that_names_the_middleware_and_ends_the_run_properly() {
    type Add = fn(AgentBuilder) -> AgentBuilder;
    let panicking: [(&str, Add); 12] = [
        ("before_agent", |b| b.middleware(hooks::before_agent(|_| boo()))),
        ("after_agent", |b| b.middleware(hooks::after_agent(|_, _| boo()))),
        ("before_model", |b| b.middleware(hooks::before_model(|_, _| boo()))),
        ("after_model", |b| b.middleware(hooks::after_model(|_, _| boo()))),
        ("wrap_model_call", |b| b.middleware(Wraps("wrap_model_call"))),
        ("stream_chunk", |b| b.middleware(hooks::stream_chunk(|_, _| boo()))),
        ("before_tools", |b| b.middleware(hooks::before_tools(|_, _| boo()))),
        ("after_tools", |b| b.middleware(hooks::after_tools(|_, _| boo()))),
        ("before_tool", |b| b.middleware(hooks::before_tool(|_, _| boo()))),
        ("after_tool", |b| b.middleware(hooks::after_tool(|_, _, _| boo()))),
        ("wrap_tool_call", |b| b.middleware(Wraps("wrap_tool_call"))),
        ("on_exit", |b| b.middleware(hooks::on_exit(|_, _| boo()))),
    ];
    for (name, add) in panicking {
        let e = failure(name, add).await;
        let told = (e.kind(), e.message(), e.context("middleware"));
        assert_eq!(told, (ErrorKind::Middleware, "a hook panicked", Some(name)));
    }
}

#[tokio::test]
async fn a_panic_in_a_model_a_tool_set_or_a_layer_is_an_error_that_says_where() {
    let layer = || layer_fn(|_| service_fn(async |_: ModelRequest| -> Result<ModelResponse> { boo() }));
    for (e, who) in [
        (failure("model", |b| b.model(Panics)).await, "the model"),
        (failure("set", |b| b.toolset(Panics)).await, "a tool set"),
    ] {
        assert_eq!((e.kind(), e.message()), (ErrorKind::Unexpected, &*format!("{who} panicked")));
    }
    let e = failure("layer", |b| b.model_layer(layer()).middleware(HookTrace::new("inner"))).await;
    assert!(e.kind() == ErrorKind::Middleware && e.message().starts_with("the layer 'LayerFn"), "{e}");
    assert_eq!(e.context("middleware"), None, "no middleware is to blame");
}

#[tokio::test]
async fn a_panic_in_an_observer_is_reported_and_changes_nothing() {
    struct Observer;

    #[async_trait]
    impl Middleware for Observer {
        fn name(&self) -> &str {
            "observer"
        }
        fn observer(&self) -> bool {
            true
        }
        async fn before_model(&self, _: &RunCx, _: &mut ModelRequest) -> Result<Flow<ModelResponse>> {
            boo()
        }
        fn chunk_hook(&self) -> Option<&dyn ChunkHook> {
            Some(self)
        }
    }

    impl ChunkHook for Observer {
        fn stream_chunk(&self, _: &RunCx, chunk: Chunk) -> Result<Option<Chunk>> {
            if matches!(chunk, Chunk::Text { .. }) { boo() } else { Ok(Some(chunk)) }
        }
    }

    let watch = Watch::default();
    let watched = agent(&MemoryJournal::default()).middleware(watch.clone()).middleware(Observer);
    assert_eq!(finished(watched.build().expect("builds").run("go").await).answer, "done");
    assert_eq!(watch.warnings(), ["middleware: a hook panicked (middleware: observer)"; 3]);
}

#[tokio::test]
async fn a_sink_that_panics_gets_no_more_events_and_harms_nobody() {
    let (events, watch) = (Arc::new(AtomicUsize::new(0)), Watch::default());
    let seen = events.clone();
    let attaches = hooks::before_agent(move |cx| {
        let seen = seen.clone();
        cx.attach(Arc::new(move |_: &Event| {
            seen.fetch_add(1, Ordering::Relaxed);
            boo()
        }));
        Ok(())
    });
    let agent = agent(&MemoryJournal::default()).middleware(attaches).middleware(watch.clone());
    assert_eq!(finished(agent.build().expect("builds").run("go").await).answer, "done");
    assert_eq!(events.load(Ordering::Relaxed), 1);
    assert_eq!(watch.warnings(), ["an event sink panicked: it gets no more events"]);
}

#[tokio::test]
async fn a_task_beside_a_run_that_panics_is_reported_and_harms_nobody() {
    let watch = Watch::default();
    let spawns = hooks::before_agent(|cx| cx.spawn(async { boo() }));
    let turns = [Turn::text("done").delay(std::time::Duration::from_millis(1))];
    let agent = Agent::builder("a", ScriptedModel::new(turns)).middleware(watch.clone()).middleware(spawns);
    assert_eq!(finished(agent.build().expect("builds").run("go").await).answer, "done");
    let warnings = watch.warnings();
    assert!(matches!(&warnings[..], [told] if told.contains("a task beside the run panicked")), "{warnings:?}");
}
