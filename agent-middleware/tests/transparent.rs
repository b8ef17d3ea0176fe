//! With its defaults, no middleware changes anything or keeps anything.

mod common;

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantMessage, Block, Chunk, Message, Middleware, Middlewares, ModelRequest, ModelResponse, RunDriver,
    ToolOutput, ToolSpec, Usage, testing::HookTrace,
};
use agent_middleware::{
    Approval, ApprovalConfig, Breakpoints, BreakpointsConfig, CompactionConfig, ContextCompaction, Delegation,
    DelegationConfig, Events, EventsConfig, Limits, LimitsConfig, Logging, LoggingConfig, LongToolOutput,
    PatchToolCalls, PatchToolCallsConfig, PromptCaching, PromptCachingConfig, Reminders, RemindersConfig, Snapshots,
    ToolErrors, ToolRetry, ToolRetryConfig,
};
use common::{begin, call, end, finished, model_stack, root, tool_stack};
use serde_json::json;
use tower::ServiceExt;

/// A middleware and how to look into it.
type Subject = (Arc<dyn Middleware>, Box<dyn Fn() -> String>);

fn subject<M: Middleware + std::fmt::Debug>(middleware: M) -> Subject {
    let middleware = Arc::new(middleware);
    let inside = middleware.clone();
    (middleware, Box::new(move || format!("{inside:?}")))
}

fn all_with_defaults() -> Vec<Subject> {
    vec![
        subject(Events::new()),
        subject(Logging::new()),
        subject(Limits::new()),
        subject(Approval::new()),
        subject(Breakpoints::new()),
        subject(Delegation::new()),
        subject(Snapshots::default()),
        subject(PromptCaching::new()),
        subject(Reminders::new()),
        subject(ToolErrors::new(|_, _| None)),
        subject(ToolRetry::new()),
        subject(PromptCaching::from(PromptCachingConfig::default())),
        subject(Reminders::from(RemindersConfig::default())),
        subject(ToolRetry::from(ToolRetryConfig::default())),
        subject(ContextCompaction::new()),
        subject(LongToolOutput::new()),
        subject(PatchToolCalls::new()),
        subject(ContextCompaction::from_config(CompactionConfig::default()).expect("sound")),
        subject(PatchToolCalls::from(PatchToolCallsConfig::default())),
        subject(Events::from(EventsConfig::default())),
        subject(Logging::from(LoggingConfig::default())),
        subject(Limits::from(LimitsConfig::default())),
        subject(Approval::from(ApprovalConfig::default())),
        subject(Breakpoints::from(BreakpointsConfig::default())),
        subject(Delegation::from(DelegationConfig::default())),
    ]
}

/// Everything that a run under `list` shows: what came in, what went out, what was said meanwhile.
async fn observe(list: &Middlewares, run: &RunDriver) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let cx = run.cx();
    begin(list, cx).await;
    run.push(Message::user("What is 6 x 7?")).expect("fits");
    run.next_step();

    let log = seen.clone();
    let model = model_stack(list, move |req: ModelRequest| {
        let view = format!("{:?} {:?} {:?} {:?} {}", req.system, req.messages, req.tools, req.params, req.stream);
        log.lock().expect("lock").push(view);
        async move {
            let blocks = vec![Block::reasoning("hm"), Block::text("Let me see."), Block::tool_call("c1", "f", "{}")];
            let message = req.sink.collect(AssistantMessage::new(blocks))?;
            Ok(ModelResponse::new(message).with_usage(Usage::new(5, 7)))
        }
    });
    let mut req = ModelRequest::new(cx.clone());
    req.tools = [ToolSpec::new("f", "Does it.", json!({"type": "object"}))].into_iter().collect();
    let log = seen.clone();
    req.sink = req.sink.with_observer(move |chunk: &Chunk| log.lock().expect("lock").push(format!("{chunk:?}")));
    let response = model.oneshot(req).await.expect("answers");

    let log = seen.clone();
    let tool = tool_stack(list, move |req| {
        log.lock().expect("lock").push(format!("{:?} {:?} {}", req.call, req.args, req.resumed));
        async move {
            if &*req.call.id == "c1" {
                Ok(ToolOutput::value(json!({"n": 42})))
            } else {
                Err(agent_core::Error::tool("no"))
            }
        }
    });
    let mut outputs = Vec::new();
    for id in ["c1", "c2"] {
        outputs.push(tool.clone().oneshot(call(cx, id, "f", json!({"x": 1}))).await);
    }
    end(list, cx, finished(cx)).await;

    let mut seen = std::mem::take(&mut *seen.lock().expect("lock"));
    seen.push(format!("{response:?} {outputs:?} {:?} {:?}", cx.history(), cx.stop_requested()));
    seen.push(format!("{:?} {:?} {}", cx.globals().snapshot(), cx.state().snapshot(), run.has_steering()));
    seen.push(format!("{:?} observed: {}", run.take_questions(), cx.emitter().is_observed()));
    seen
}

#[tokio::test]
async fn a_middleware_with_its_defaults_changes_nothing() {
    let none: Middlewares = Arc::new([]);
    let plain = observe(&none, &root(|_| {})).await;
    assert!(plain.len() > 10, "{plain:#?}");
    for (middleware, _) in all_with_defaults() {
        let name = middleware.name().to_owned();
        assert!(middleware.tools().is_empty() && middleware.sub_agents().is_empty(), "{name}");
        let list: Middlewares = Arc::new([middleware]);
        assert_eq!(observe(&list, &root(|_| {})).await, plain, "{name}");
    }
    let together: Middlewares = all_with_defaults().into_iter().map(|(m, _)| m).collect();
    assert_eq!(observe(&together, &root(|_| {})).await, plain);
}

#[tokio::test]
async fn a_middleware_with_its_defaults_disturbs_no_neighbour() {
    let trace = |subjects: Vec<Arc<dyn Middleware>>| async move {
        let outer = HookTrace::new("outer");
        let list: Vec<Arc<dyn Middleware>> =
            [vec![Arc::new(outer.clone()) as _], subjects, vec![Arc::new(outer.beside("inner")) as _]].concat();
        observe(&list.into(), &root(|_| {})).await;
        outer.seen()
    };
    let plain = trace(Vec::new()).await;
    let among = trace(all_with_defaults().into_iter().map(|(m, _)| m).collect()).await;
    assert_eq!(among, plain);
}

#[tokio::test]
async fn a_middleware_keeps_nothing_of_a_run_that_ended() {
    let busy: Vec<Subject> = vec![
        subject(Events::new().on(|_| {})),
        subject(Logging::new().content(10).arguments(10)),
        subject(Reminders::new().steps(9).tokens()),
        subject(agent_middleware::RuntimeEnvironment::new()),
        subject(agent_middleware::TodoList::new()),
        subject(Limits::new().model_calls(9).tool_calls(9).tokens(999).wall_time(std::time::Duration::from_secs(9))),
        subject(Approval::new().ask("*").decide_with(|_, _| async { Ok(agent_middleware::Decision::approve()) })),
    ];
    for (middleware, inside) in all_with_defaults().into_iter().chain(busy) {
        let (name, before) = (middleware.name().to_owned(), inside());
        let list: Middlewares = Arc::new([middleware]);
        let run = root(|_| {});
        observe(&list, &run).await;
        assert_eq!(inside(), before, "{name}");
        assert!(run.cx().globals().snapshot().is_empty(), "{name}");
        let ids = Arc::downgrade(run.cx().ids());
        drop(run);
        assert!(ids.upgrade().is_none(), "{name} holds on to the run");
    }
}

#[tokio::test]
async fn the_comparison_itself_sees_a_difference() {
    let none: Middlewares = Arc::new([]);
    let plain = observe(&none, &root(|_| {})).await;
    let note: Arc<dyn Middleware> = Arc::new(agent_middleware::after_tool_fn("tag", |_, _, out| {
        out.content_mut().clear();
        Ok(())
    }));
    let list: Middlewares = Arc::new([note]);
    assert_ne!(observe(&list, &root(|_| {})).await, plain);
}
