//! Stock tower layers, unchanged, behave as their own documentation says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use agent_core::{
    BoxFuture, Chunk, Error, ErrorKind, EventKind, ModelRequest, ModelResponse, Result, Retry, RunEnd, RunRequest,
    ToolOutput, ToolRequest,
    middleware::Exclusive,
    testing::{HookTrace, ScriptedModel, Turn},
};
use agent_exec::Agent;
use futures::future::join_all;
use serde_json::json;
use tokio::time::Instant;
use tower::{
    Layer, Service, ServiceBuilder, ServiceExt,
    layer::layer_fn,
    limit::{ConcurrencyLimitLayer, RateLimitLayer},
    load_shed::LoadShedLayer,
    retry::{Policy, RetryLayer},
    timeout::TimeoutLayer,
};

use crate::common::{Log, Watch, finished, hooks, ms, results, slow, tool};

/// Retries retryable errors, at most this often.
#[derive(Clone)]
struct Again(u32);

impl Policy<ModelRequest, ModelResponse, Error> for Again {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, req: &mut ModelRequest, result: &mut Result<ModelResponse>) -> Option<Self::Future> {
        let wanted = result.as_ref().is_err_and(Error::is_retryable) && self.0 > 0;
        wanted.then(|| {
            self.0 -= 1;
            req.sink.push(Chunk::Restart).expect("nobody ends the call");
            std::future::ready(())
        })
    }

    fn clone_request(&mut self, req: &ModelRequest) -> Option<ModelRequest> {
        Some(req.clone())
    }
}

impl Policy<ToolRequest, ToolOutput, Error> for Again {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut ToolRequest, result: &mut Result<ToolOutput>) -> Option<Self::Future> {
        (result.is_err() && self.0 > 0).then(|| {
            self.0 -= 1;
            std::future::ready(())
        })
    }

    fn clone_request(&mut self, req: &ToolRequest) -> Option<ToolRequest> {
        Some(req.clone())
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::Truncated, "the stream was cut").with_retry(Retry::Temporary(None))
}

/// Returns three words, one every ten milliseconds, and then the block's end.
fn slow_words() -> Turn {
    Turn::text("a b c").delay(ms(10))
}

async fn run_together(agent: &Agent, runs: usize) -> Vec<Result<RunEnd>> {
    join_all((0..runs).map(|_| agent.run("hi"))).await
}

// --- around model calls ---

#[tokio::test(start_paused = true)]
async fn a_stock_timeout_bounds_the_whole_message_and_keeps_the_taxonomy() {
    // The timeout sees the first word at once; the rest stalls.
    let model = ScriptedModel::new([Turn::text("a b c d e").delay(ms(30))]);
    let agent = Agent::builder("a", model.clone()).model_layer(TimeoutLayer::new(ms(100))).build().expect("builds");
    let begun = Instant::now();
    let e = agent.run("hi").await.expect_err("times out");
    assert_eq!((e.kind(), e.is_retryable()), (ErrorKind::Timeout, true));
    assert_eq!((begun.elapsed(), model.open()), (ms(100), 0), "the call was dropped");
}

#[tokio::test]
async fn a_stock_retry_enters_wraps_again_but_not_hooks() {
    let (outer, watch) = (HookTrace::new("out"), Watch::default());
    let model = ScriptedModel::new([Turn::text("half").then_fail(cut), Turn::text("whole")]);
    let agent = Agent::builder("a", model)
        .middleware(watch.clone())
        .middleware(outer.clone())
        .model_layer(RetryLayer::new(Again(2)))
        .middleware(outer.beside("in"))
        .build()
        .expect("builds");
    assert_eq!(finished(agent.run("hi").await).answer, "whole");
    let mut seen = outer.seen();
    seen.retain(|line| !line.ends_with("chunk"));
    assert_eq!(
        seen,
        [
            "out.before_agent",
            "in.before_agent",
            "out.before_model",
            "in.before_model",
            "out.model>",
            "in.model>",
            "in.<model",
            "in.model>",
            "in.<model",
            "out.<model",
            "in.after_model",
            "out.after_model",
            "in.on_exit(text)",
            "out.on_exit(text)",
            "in.after_agent(finished)",
            "out.after_agent(finished)",
        ]
    );
    let chunks = watch.pick(|kind| match kind {
        EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta),
        EventKind::Chunk(Chunk::Restart) => Some("<restart>".to_owned()),
        _ => None,
    });
    assert_eq!(chunks, ["half", "<restart>", "whole"], "readers are told to drop what the failed try said");
}

#[tokio::test]
async fn a_stock_retry_gives_up_when_its_policy_does_and_the_last_error_is_the_runs() {
    let model = ScriptedModel::new((0..3).map(|_| Turn::error(cut)));
    let agent = Agent::builder("a", model.clone()).model_layer(RetryLayer::new(Again(2))).build().expect("builds");
    assert_eq!(agent.run("hi").await.expect_err("fails").kind(), ErrorKind::Truncated);
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn a_stock_concurrency_limit_holds_for_whole_messages_and_across_runs() {
    let model = ScriptedModel::new((0..6).map(|_| slow_words()));
    let agent = Agent::builder("a", model.clone()).model_layer(ConcurrencyLimitLayer::new(2)).build().expect("builds");
    let begun = Instant::now();
    run_together(&agent, 6).await.into_iter().for_each(|end| drop(finished(end)));
    assert_eq!((model.peak(), begun.elapsed()), (2, ms(120)), "three rounds of forty milliseconds");
}

#[tokio::test(start_paused = true)]
async fn readiness_crosses_the_erased_boundary_so_that_stock_load_shed_sheds() {
    let model = ScriptedModel::new([slow_words()]);
    let agent = Agent::builder("a", model.clone())
        .model_layer(LoadShedLayer::new())
        .model_layer(ConcurrencyLimitLayer::new(1))
        .build()
        .expect("builds");
    let ends = run_together(&agent, 3).await;
    let shed: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
    assert_eq!(shed.iter().map(Error::kind).collect::<Vec<_>>(), [ErrorKind::Overloaded; 2]);
    assert!(shed.iter().all(Error::is_retryable));
    model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn a_service_builder_with_buffer_and_rate_limit_applies_as_one_layer_and_keeps_own_errors() {
    let refused = || Error::new(ErrorKind::Quota, "no credit").with_context("account", "7");
    let model = ScriptedModel::new((0..3).map(|_| Turn::text("ok")).chain([Turn::error(refused)]));
    // A rate limit cannot be cloned; the buffer makes it cloneable.
    let layer = ServiceBuilder::new().buffer(8).rate_limit(2, Duration::from_secs(1)).into_inner();
    let agent = Agent::builder("a", model.clone()).model_layer(layer).build().expect("builds");
    let begun = Instant::now();
    for _ in 0..3 {
        finished(agent.run("hi").await);
    }
    assert!(begun.elapsed() >= Duration::from_secs(1), "the third call waited for the next period");
    let e = agent.run("hi").await.expect_err("refused");
    assert_eq!((e.kind(), e.context("account")), (ErrorKind::Quota, Some("7")));
}

/// Logs when a call enters and when it leaves.
#[derive(Clone)]
struct Noting<S>(S, Log, &'static str);

impl<S: Service<R>, R> Service<R> for Noting<S>
where
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, req: R) -> Self::Future {
        let (call, log, name) = (self.0.call(req), self.1.clone(), self.2);
        log.note(format!("{name}>"));
        Box::pin(async move {
            let result = call.await;
            log.note(format!("<{name}"));
            result
        })
    }
}

fn noting<S>(log: &Log, name: &'static str) -> impl Layer<S, Service = Noting<S>> + Clone + use<S> {
    let log = log.clone();
    layer_fn(move |inner| Noting(inner, log.clone(), name))
}

/// A middleware that logs its wraps in the same log as the layers.
struct Wraps(Log, &'static str);

#[agent_core::async_trait]
impl agent_core::Middleware for Wraps {
    async fn wrap_model_call(&self, req: ModelRequest, next: agent_core::ModelNext<'_>) -> Result<ModelResponse> {
        self.0.note(format!("{}>", self.1));
        let result = next.run(req).await;
        self.0.note(format!("<{}", self.1));
        result
    }

    async fn wrap_tool_call(&self, req: ToolRequest, next: agent_core::ToolNext<'_>) -> Result<ToolOutput> {
        self.0.note(format!("{}>", self.1));
        let result = next.run(req).await;
        self.0.note(format!("<{}", self.1));
        result
    }
}

#[tokio::test]
async fn wraps_and_layers_stand_in_the_order_in_which_they_were_registered() {
    let log = Log::default();
    let model = ScriptedModel::new([Turn::call("c", "t", json!({})), Turn::text("done")]);
    let agent = Agent::builder("a", model)
        .tool(tool("t", async |_| Ok(ToolOutput::text("ok"))))
        .middleware(Wraps(log.clone(), "1"))
        .model_layer(noting(&log, "2m"))
        .tool_layer(noting(&log, "2t"))
        .middleware(Wraps(log.clone(), "3"))
        .middleware(Wraps(log.clone(), "4"))
        .model_layer(noting(&log, "5m"))
        .tool_layer(noting(&log, "5t"))
        .build()
        .expect("builds");
    finished(agent.run("go").await);
    let model_call = ["1>", "2m>", "3>", "4>", "5m>", "<5m", "<4", "<3", "<2m", "<1"];
    let tool_call = ["1>", "2t>", "3>", "4>", "5t>", "<5t", "<4", "<3", "<2t", "<1"];
    assert_eq!(log.seen(), [model_call, tool_call, model_call].concat());
}

/// A layer whose author knows nothing of hooks: it only sees the request.
#[derive(Clone)]
struct Shout<S>(S);

impl<S: Service<ModelRequest>> Service<ModelRequest> for Shout<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut req: ModelRequest) -> S::Future {
        req.sink = req.sink.with(|chunk| {
            Ok(Some(match chunk {
                Chunk::Text { index, delta } => Chunk::Text { index, delta: delta.to_uppercase() },
                other => other,
            }))
        });
        self.0.call(req)
    }
}

#[tokio::test]
async fn what_a_hand_written_layer_does_to_chunks_is_in_the_message_and_before_the_hooks_see_them() {
    let watch = Watch::default();
    let seen_by_hook = Log::default();
    let log = seen_by_hook.clone();
    let agent = Agent::builder("a", ScriptedModel::new([Turn::text("the answer")]))
        .middleware(watch.clone())
        .middleware(hooks::stream_chunk(move |_, chunk| {
            if let Chunk::Text { delta, .. } = &chunk {
                log.note(delta);
            }
            Ok(Some(chunk))
        }))
        .model_layer(layer_fn(Shout))
        .build()
        .expect("builds");
    assert_eq!(finished(agent.run("hi").await).answer, "THE ANSWER");
    assert_eq!(seen_by_hook.seen(), ["THE ", "ANSWER"]);
    let shown = watch.pick(|kind| match kind {
        EventKind::Chunk(Chunk::Text { delta, .. }) => Some(delta),
        _ => None,
    });
    assert_eq!(shown, ["THE ", "ANSWER"]);
}

// --- around tool calls ---

#[tokio::test(start_paused = true)]
async fn a_stock_timeout_bounds_each_tool_call_and_the_model_is_told() {
    let log = Log::default();
    let model =
        ScriptedModel::new([Turn::calls([("1", "slow", json!({})), ("2", "quick", json!({}))]), Turn::text("done")]);
    let agent = Agent::builder("a", model)
        .tool(slow("slow", 60_000, &log))
        .tool(slow("quick", 10, &log))
        .tool_layer(TimeoutLayer::new(ms(50)))
        .build()
        .expect("builds");
    let begun = Instant::now();
    let end = finished(agent.run("go").await);
    assert_eq!(begun.elapsed(), ms(50));
    let told = [("1", "request timed out", true), ("2", "2", false)];
    assert_eq!(results(&end.history), told.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed)));
    assert_eq!(log.seen(), ["1 begins", "2 begins", "2 ends"]);
}

#[tokio::test]
async fn a_retry_around_a_tool_sees_its_errors_while_the_model_is_told_an_output() {
    let (tries, trace) = (Arc::new(AtomicU32::new(0)), HookTrace::new("h"));
    let counted = tries.clone();
    let flaky = tool("flaky", move |_| {
        let n = counted.fetch_add(1, Ordering::SeqCst) + 1;
        // The first call fails permanently, the second one only at its first attempt.
        async move { if n <= 4 { Err(Error::tool(format!("down ({n})"))) } else { Ok(ToolOutput::text("up")) } }
    });
    let call = |id| Turn::call(id, "flaky", json!({}));
    let model = ScriptedModel::new([call("1"), call("2"), Turn::text("done")]);
    let agent = Agent::builder("a", model)
        .tool(flaky)
        .middleware(trace.clone())
        .tool_layer(RetryLayer::new(Again(2)))
        .build()
        .expect("builds");
    let end = finished(agent.run("go").await);
    let told = [("1", "down (3)", true), ("2", "up", false)];
    assert_eq!(results(&end.history), told.map(|(id, text, failed)| (id.to_owned(), text.to_owned(), failed)));
    assert_eq!(trace.seen_of("before_tool(").len(), 2, "hooks run once per call");
    assert_eq!(end.tool_calls["flaky"], 2, "a call counts once however often it was tried");
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_a_tool_layer_is_each_tools_own_and_shared_by_all_runs() {
    let log = Log::default();
    let both = || Turn::calls([("1", "db", json!({})), ("2", "web", json!({}))]);
    let model = ScriptedModel::new([both(), both(), Turn::text("done"), Turn::text("done")]);
    let agent = Agent::builder("a", model)
        .tool(slow("db", 50, &log))
        .tool(slow("web", 50, &log))
        .tool_layer(ConcurrencyLimitLayer::new(1))
        .build()
        .expect("builds");
    let begun = Instant::now();
    run_together(&agent, 2).await.into_iter().for_each(|end| drop(finished(end)));
    assert_eq!(begun.elapsed(), ms(100), "one run's calls stand beside each other, the other run's wait for them");
}

// --- an agent as a service ---

#[tokio::test(start_paused = true)]
async fn an_agent_is_a_service_that_stock_layers_bound() {
    let model = ScriptedModel::new([Turn::text("slow").delay(Duration::from_secs(60))]);
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let service = ServiceBuilder::new().concurrency_limit(4).timeout(Duration::from_secs(1)).service(agent);
    let e = service.oneshot(RunRequest::user("hi")).await.expect_err("times out");
    assert_eq!((Error::from_boxed(e).kind(), model.open()), (ErrorKind::Timeout, 0), "the run was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_around_an_agent_holds_for_whole_runs() {
    let model = ScriptedModel::new((0..3).map(|_| slow_words()));
    let agent = Agent::builder("a", model.clone()).build().expect("builds");
    let service = ServiceBuilder::new().concurrency_limit(1).service(agent);
    let begun = Instant::now();
    let ends = join_all((0..3).map(|_| service.clone().oneshot(RunRequest::user("hi")))).await;
    ends.into_iter().for_each(|end| drop(finished(end)));
    assert_eq!((model.peak(), begun.elapsed()), (1, ms(120)));
}

#[tokio::test(start_paused = true)]
async fn a_layer_whose_service_is_not_clone_limits_all_calls_of_the_agent() {
    let began = Instant::now();
    let limit = Exclusive::new(RateLimitLayer::new(2, Duration::from_secs(60)));
    let model = ScriptedModel::new((0..5).map(|_| Turn::text("hello")));
    let agent = Agent::builder("limited", model.clone()).model_layer(limit).build().expect("builds");
    for end in run_together(&agent, 5).await {
        assert_eq!(finished(end).answer, "hello");
    }
    assert_eq!((model.calls(), began.elapsed().as_secs() / 60), (5, 2), "two calls a minute");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_while_it_waits_for_an_exclusive_service_blocks_nobody() {
    let limit = Exclusive::new(RateLimitLayer::new(1, Duration::from_secs(60)));
    let model = ScriptedModel::new((0..3).map(|_| Turn::text("hello")));
    let agent = Agent::builder("limited", model.clone()).model_layer(limit).build().expect("builds");
    finished(agent.run("hi").await);
    for _ in 0..2 {
        tokio::time::timeout(ms(5), async { agent.run("hi").await }).await.expect_err("it waits for the next minute");
    }
    assert_eq!(finished(agent.run("hi").await).answer, "hello");
}
