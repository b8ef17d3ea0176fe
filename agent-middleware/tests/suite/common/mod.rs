//! Runs without an executor, and the stacks that an executor would compose.

#![allow(dead_code, reason = "every test binary uses another part")]

use std::sync::{Arc, LazyLock};

use agent_core::{
    ExitReason, Finished, GlobalStorage, History, MemoryJournal, Middleware, ModelRequest, ModelResponse, ModelService,
    Result, RunCx, RunEnd, RunIds, State, ToolCall, ToolOutput, ToolRequest, ToolService,
    engine::{
        Emitter, EngineCx, EngineKey, EventHub, ModelHooksLayer, ModelWrapLayer, RunDriver, RunLog, RunParts,
        ToolHooksLayer, ToolWrapLayer,
    },
    journal::EntryBody,
    middleware::Middlewares,
    run::checkpoint::ChildRun,
};
use serde_json::Value;
use tower::{Layer, service_fn};

static KEY: LazyLock<EngineKey> = LazyLock::new(EngineKey::new);

/// Returns the executor's view of a run of these tests.
pub(crate) fn engine(cx: &RunCx) -> EngineCx<'_> {
    KEY.open(cx).expect("these tests made it")
}

/// Returns a list of one middleware.
pub(crate) fn alone(middleware: impl Middleware) -> Middlewares {
    Arc::new([Arc::new(middleware)])
}

/// Creates a root run; `edit` may change its parts.
pub(crate) fn root(edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    run_of(RunIds::root("main", "s"), GlobalStorage::default(), edit)
}

/// Creates a run of `ids` with this storage.
pub(crate) fn run_of(ids: RunIds, globals: GlobalStorage, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    on_a_fresh_journal(ids, globals, edit)
}

/// Creates the same run in another process, with an empty history.
pub(crate) fn restarted(run: &RunDriver, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    restarted_with(run, History::default(), edit)
}

/// Creates the same run in another process, with this history: shared storage passes through JSON.
pub(crate) fn restarted_with(run: &RunDriver, history: History, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    let (cx, step) = (run.cx(), run.cx().step());
    let json = serde_json::to_string(&cx.globals().snapshot()).expect("serialises");
    let globals = GlobalStorage::restore(serde_json::from_str(&json).expect("parses"));
    let mut left = engine(cx).log().at_rest();
    left.history = history;
    on_a_fresh_journal((**cx.ids()).clone(), globals, |parts| {
        parts.step = step;
        parts.log.adopt(&left);
        edit(parts);
    })
}

/// Creates a child run of `above`.
pub(crate) fn below(above: &RunCx, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    let ids = Arc::new(above.ids().child("helper", None, None));
    let emitter =
        Emitter::new(ids.clone(), engine(above).emitter().hub().clone(), Some(engine(above).emitter().clone()));
    let (log, run) = (engine(above).log(), ids.run_id.clone());
    log.record(EntryBody::linked(ChildRun::new("call".into(), "helper", run)));
    let state = State::default();
    let log = log.child(ids.clone(), log.writer().expect("under way"), emitter.clone(), state.clone());
    build(ids, emitter, log, state, above.globals().clone(), edit)
}

fn on_a_fresh_journal(ids: RunIds, globals: GlobalStorage, edit: impl FnOnce(&mut RunParts)) -> RunDriver {
    let journal = MemoryJournal::default();
    let writer = journal.open_now(&ids.session, &ids.agent_id).expect("a fresh journal is free");
    let journal = Arc::new(journal);
    let (ids, state) = (Arc::new(ids), State::default());
    let emitter = Emitter::new(ids.clone(), EventHub::new(journal.clone(), ids.session.clone()), None);
    let log = RunLog::new(ids.clone(), journal, writer, emitter.clone(), state.clone(), globals.clone());
    build(ids, emitter, log, state, globals, edit)
}

fn build(
    ids: Arc<RunIds>,
    emitter: Emitter,
    log: RunLog,
    state: State,
    globals: GlobalStorage,
    edit: impl FnOnce(&mut RunParts),
) -> RunDriver {
    let mut parts = RunParts::new(ids, emitter, log);
    (parts.state, parts.globals, parts.key) = (state, globals, Some(*KEY));
    edit(&mut parts);
    RunDriver::new(parts)
}

/// Composes the model stack as an executor would.
pub(crate) fn model_stack<F, Fut>(list: &Middlewares, model: F) -> ModelService
where
    F: Fn(ModelRequest) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<ModelResponse>> + Send + 'static,
{
    let wraps = ModelWrapLayer::new(list.clone()).layer(ModelService::new(service_fn(model)));
    ModelService::from_boxed(ModelHooksLayer::new(list.clone()).layer(ModelService::from_boxed(wraps)))
}

/// Composes the tool stack as an executor would.
pub(crate) fn tool_stack<F, Fut>(list: &Middlewares, tool: F) -> ToolService
where
    F: Fn(ToolRequest) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput>> + Send + 'static,
{
    let wraps = ToolWrapLayer::new(list.clone()).layer(ToolService::new(service_fn(tool)));
    ToolService::from_boxed(ToolHooksLayer::new(list.clone(), false).layer(ToolService::from_boxed(wraps)))
}

/// Runs the `before_agent` hooks.
pub(crate) async fn begin(list: &Middlewares, cx: &RunCx) {
    for m in list.iter() {
        m.before_agent(cx).await.expect("begins");
    }
}

/// Runs the `after_agent` hooks on this end.
pub(crate) async fn end(list: &Middlewares, cx: &RunCx, mut end: Result<RunEnd>) {
    for m in list.iter().rev() {
        m.after_agent(cx, &mut end).await.expect("ends");
    }
}

/// Returns the end of a run that said "done".
pub(crate) fn finished(cx: &RunCx) -> Result<RunEnd> {
    let finished = Finished::new((**cx.ids()).clone(), "done", ExitReason::Text, cx.history());
    Ok(RunEnd::Finished(Box::new(finished)))
}

/// Runs a future in a property test, which cannot be async itself.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("starts").block_on(future)
}

/// Creates a tool call.
pub(crate) fn call(cx: &RunCx, id: &str, tool: &str, args: Value) -> ToolRequest {
    let call = ToolCall { id: id.into(), name: tool.into(), arguments: args.to_string(), raw: None };
    ToolRequest::new(cx.clone(), call, args)
}
