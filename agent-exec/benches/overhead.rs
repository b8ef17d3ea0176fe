//! Overhead of the framework: nanoseconds and allocations per step, per tool call and per chunk,
//! with 0, 5 and 20 middlewares, compared to a bare loop that calls the same model and the same
//! tool.
//!
//! The model and the tool answer at once, so all measured time is overhead. Allocations are exact;
//! times are the best of many short batches and only useful for ratios within one run.
//!
//! `cargo bench -p agent-exec --bench overhead`

use std::{alloc::System, hint::black_box, sync::Arc, time::Instant};

use agent_core::{
    AssistantMessage, Block, Chunk, Effect, History, Message, Middleware, Model, ModelInfo, ModelRequest,
    ModelResponse, ModelService, Result, RunRequest, Tool, ToolCall, ToolOptions, ToolOutput, ToolRequest, ToolService,
    ToolSpec, async_trait,
    engine::{ToolHooksLayer, ToolWrapLayer},
    middleware::Middlewares,
    model::Collector,
    testing::{EveryHook, detached_run},
};
use agent_exec::Agent;
use agent_tools::{ArgumentSchema, from_fn};
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, Service, ServiceExt, service_fn};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const STEPS: u32 = 50;
const CHUNKS: u32 = 1000;

/// Calls the tool until the conversation contains `rounds` results, then says `chunks` words.
struct Instantly {
    rounds: usize,
    chunks: u32,
}

#[async_trait]
impl Model for Instantly {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("instantly")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let done = req.messages.len() > self.rounds * 2;
        if !done {
            return Ok(ModelResponse::new(AssistantMessage::new(vec![Block::tool_call("c", "noop", "{}")])));
        }
        let mut collector = Collector::new(&req.sink);
        let words = self.chunks.max(1);
        for _ in 0..words {
            collector.push(Chunk::Text { index: 0, delta: "word ".into() })?;
        }
        let said = "word ".repeat(words as usize);
        Ok(ModelResponse::new(collector.finish(AssistantMessage::from(said.as_str()))))
    }
}

struct Noop;

#[async_trait]
impl Tool for Noop {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("noop", "Does nothing.", json!({"type": "object"}))
    }

    fn options(&self) -> ToolOptions {
        ToolOptions::default().effect(Effect::Pure)
    }

    async fn call(&self, _: ToolRequest) -> Result<ToolOutput> {
        Ok(ToolOutput::text("ok"))
    }
}

/// Arguments of a tool with validation.
#[derive(Deserialize, JsonSchema)]
struct Order {
    article: String,
    count: u32,
    tags: Vec<String>,
}

const ORDER: &str = r#"{"article": "tea", "count": 3, "tags": ["green", "loose"]}"#;

async fn place(order: Order) -> Result<String> {
    Ok(format!("{} of {} ({})", order.count, order.article, order.tags.len()))
}

/// Places this many orders concurrently, then ends.
struct Ordering(usize);

#[async_trait]
impl Model for Ordering {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("ordering")
    }

    async fn call(&self, req: ModelRequest) -> Result<ModelResponse> {
        let calls = if req.messages.len() > 1 { 0 } else { self.0 };
        let blocks = (0..calls).map(|n| Block::tool_call(format!("c{n}"), "place", ORDER)).collect();
        Ok(ModelResponse::new(AssistantMessage::new(blocks)))
    }
}

/// Overrides nothing.
struct Idle;
impl Middleware for Idle {}

/// Measures the best time and the exact allocations of `body`, per each of its `per` operations.
/// Returns the time in nanoseconds.
async fn measure(what: &str, per: u32, mut body: impl AsyncFnMut()) -> f64 {
    body().await;
    let mut best = f64::MAX;
    for _ in 0..100 {
        let start = Instant::now();
        body().await;
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(per));
    }
    let region = Region::new(ALLOCATOR);
    body().await;
    let change = region.change();
    let per = f64::from(per);
    let (count, bytes) = (change.allocations as f64 / per, change.bytes_allocated as f64 / per);
    println!("{what:<62} {best:>8.0} ns {count:>7.1} allocations {bytes:>8.0} B");
    best
}

fn agent(middlewares: usize, busy: bool, rounds: usize, chunks: u32) -> Agent {
    let builder =
        Agent::builder("bench", Instantly { rounds, chunks }).tool(Noop).max_steps(u32::MAX).streaming(chunks > 0);
    let builder =
        (0..middlewares).fold(builder, |b, _| if busy { b.middleware(EveryHook) } else { b.middleware(Idle) });
    builder.build().expect("builds")
}

/// Runs the same model and tool without a framework: only the conversation is stored.
async fn bare(model: &Instantly, tool: &Noop) {
    let mut history = History::default();
    history.push(Message::user("go")).expect("a user message");
    let run = detached_run(History::default());
    loop {
        let mut request = ModelRequest::new(run.cx().clone());
        request.messages = history.clone();
        let response = model.call(request).await.expect("answers");
        if !response.message.has_calls() {
            return;
        }
        let mut results = Vec::new();
        for call in response.message.calls() {
            let output = tool.call(ToolRequest::new(run.cx().clone(), call.clone(), json!({}))).await.expect("runs");
            results.push(output.to_message(call.id.clone(), call.name.clone()));
        }
        history.push_turn(response.message, results).expect("paired");
    }
}

/// A layer that clones its inner service for every call, as retry and `from_fn` must.
#[derive(Clone)]
struct Cloning<S>(S);

impl<S> Service<ModelRequest> for Cloning<S>
where
    S: Service<ModelRequest, Response = ModelResponse, Error = agent_core::Error> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = ModelResponse;
    type Error = agent_core::Error;
    type Future = agent_core::BoxFuture<'static, Result<ModelResponse>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: ModelRequest) -> Self::Future {
        Box::pin(self.0.clone().oneshot(req))
    }
}

async fn steps() {
    println!("--- one step: model call, tool call, history, journal in memory ---");
    let rounds = STEPS as usize - 1;
    measure("bare loop over the same model and tool", STEPS, async || {
        bare(&Instantly { rounds, chunks: 0 }, &Noop).await;
    })
    .await;
    for (kind, busy) in [("that override nothing", false), ("that override every hook", true)] {
        for n in [0, 5, 20] {
            let agent = agent(n, busy, rounds, 0);
            measure(&format!("agent, {n} middlewares {kind}"), STEPS, async || {
                black_box(agent.run("go").await.expect("finishes"));
            })
            .await;
        }
    }
    println!("--- the same step late in a long conversation: the cost must not grow ---");
    for rounds in [10, 100, 1000] {
        let agent = agent(0, false, rounds, 0);
        measure(&format!("agent, mean step of a run of {rounds}"), u32::try_from(rounds).expect("small"), async || {
            black_box(agent.run("go").await.expect("finishes"));
        })
        .await;
    }
}

/// Measures one of many calls in a step: validating the arguments, running the tool, emitting its
/// events and storing its result.
async fn calls() {
    println!("--- one call of a tool whose arguments are checked, among 100 at once ---");
    let alone = measure("the function itself, with its arguments read", 100, async || {
        for _ in 0..100 {
            let order = serde_json::from_str(black_box(ORDER)).expect("an order");
            black_box(place(order).await.expect("places"));
        }
    })
    .await;
    for n in [0, 5, 20] {
        let builder = Agent::builder("bench", Ordering(100)).tool(from_fn(
            "place",
            "Places an order.",
            async |order, _: ToolRequest| place(order).await,
        ));
        let agent = (0..n).fold(builder, |b, _| b.middleware(Idle)).build().expect("builds");
        let call = measure(&format!("agent, {n} middlewares"), 100, async || {
            black_box(agent.run("go").await.expect("finishes"));
        })
        .await;
        println!("{:<62} {:>8.0} ns", "  over the function itself", call - alone);
    }
}

/// Measures the stack around a call, outside of a run: parsing and validating arguments, hooks and
/// wraps, the tool. No journal, no events.
async fn stack() {
    println!("--- one call through validation and the tool stack alone ---");
    let tool = Arc::new(from_fn("place", "Places an order.", async |order, _: ToolRequest| place(order).await));
    let schema = ArgumentSchema::compile(&tool.spec()).expect("compiles");
    let run = detached_run(History::default());
    let request = || {
        let args = schema.parse(black_box(ORDER)).value;
        schema.check(&args, &[]).expect("fits");
        let call = ToolCall { id: "c".into(), name: "place".into(), arguments: ORDER.into(), raw: None };
        ToolRequest::new(run.cx().clone(), call, args)
    };
    let alone = measure("the function itself, with its arguments read", 100, async || {
        for _ in 0..100 {
            let order = serde_json::from_str(black_box(ORDER)).expect("an order");
            black_box(place(order).await.expect("places"));
        }
    })
    .await;
    for n in [0, 5, 20] {
        let list: Middlewares = (0..n).map(|_| Arc::new(Idle) as Arc<dyn Middleware>).collect();
        let called = tool.clone();
        let core = ToolService::new(service_fn(move |req| {
            let tool = called.clone();
            async move { tool.call(req).await }
        }));
        let wraps = ToolService::from_boxed(ToolWrapLayer::new(list.clone()).layer(core));
        let service = ToolService::from_boxed(ToolHooksLayer::new(list, false).layer(wraps));
        let call = measure(&format!("validation and the stack, {n} middlewares"), 100, async || {
            for _ in 0..100 {
                black_box(service.clone().oneshot(request()).await.expect("places"));
            }
        })
        .await;
        println!("{:<62} {:>8.0} ns", "  over the function itself", call - alone);
    }
}

async fn chunks() {
    println!("--- one chunk of a streamed answer, read as an event ---");
    for n in [0, 5, 20] {
        let agent = agent(n, true, 0, CHUNKS);
        measure(&format!("agent, {n} middlewares"), CHUNKS, async || {
            let mut run = agent.start(RunRequest::user("go"));
            let mut seen = 0;
            while run.next().await.is_some() {
                seen += 1;
            }
            black_box((seen, run.await.expect("finishes")));
        })
        .await;
    }
}

async fn layers() {
    println!("--- layers that clone their inner service on every call ---");
    for n in [5, 20] {
        let core = ModelService::new(service_fn(|_: ModelRequest| async {
            Ok::<_, agent_core::Error>(ModelResponse::new(AssistantMessage::from("")))
        }));
        let service = (0..n).fold(core, |inner, _| ModelService::new(Cloning(inner)));
        let run = detached_run(History::default());
        measure(&format!("SharedService, {n} layers"), 1, async || {
            black_box(service.clone().oneshot(ModelRequest::new(run.cx().clone())).await.expect("answers"));
        })
        .await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    steps().await;
    calls().await;
    stack().await;
    chunks().await;
    layers().await;
}
