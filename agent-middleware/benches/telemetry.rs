//! Overhead of telemetry per model call and per tool call: without a subscriber, and with spans
//! that are created and dropped.
//!
//! Allocations are exact; times are the best of many short batches and only useful for ratios
//! within one run.
//!
//! `cargo bench -p agent-middleware --features telemetry --bench telemetry`

use std::{alloc::System, hint::black_box, sync::Arc, time::Instant};

use agent_core::{
    AssistantMessage, Error, History, Middleware, ModelRequest, ModelResponse, ModelService, ToolCall, ToolOutput,
    ToolRequest, ToolService, Usage,
    engine::{ModelWrapLayer, ToolWrapLayer},
    middleware::Middlewares,
    testing::detached_run,
};
use agent_middleware::{Telemetry, telemetry::Capture};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, service_fn};
use tracing_subscriber::layer::SubscriberExt;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLS: u32 = 1000;

/// Overrides nothing.
struct Idle;
impl Middleware for Idle {}

async fn measure(what: &str, body: impl AsyncFn()) {
    let batch = async || {
        for _ in 0..CALLS {
            body().await;
        }
    };
    batch().await;
    let mut best = f64::MAX;
    for _ in 0..200 {
        let start = Instant::now();
        batch().await;
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    let region = Region::new(ALLOCATOR);
    batch().await;
    let allocations = region.change().allocations as f64 / f64::from(CALLS);
    println!("{what:<62} {best:>8.0} ns {allocations:>7.1} allocations");
}

async fn step(what: &str, middleware: impl Middleware) {
    let run = detached_run(History::default());
    let list: Middlewares = Arc::new([Arc::new(middleware)]);
    for middleware in list.iter() {
        middleware.before_agent(run.cx()).await.expect("begins");
    }
    let model = ModelService::new(service_fn(|_: ModelRequest| async {
        Ok::<_, Error>(ModelResponse::new(AssistantMessage::from("")).with_usage(Usage::new(10, 1)))
    }));
    let model = ModelService::new(ModelWrapLayer::new(list.clone()).layer(model));
    measure(&format!("model call, {what}"), async || {
        black_box(model.run(ModelRequest::new(run.cx().clone())).await.expect("answers"));
    })
    .await;
    let tool = ToolService::new(service_fn(|_: ToolRequest| async { Ok::<_, Error>(ToolOutput::default()) }));
    let tool = ToolService::new(ToolWrapLayer::new(list).layer(tool));
    let call = Arc::new(ToolCall { id: "c".into(), name: "noop".into(), arguments: "{}".into(), raw: None });
    let args = Arc::new(json!({}));
    measure(&format!("tool call, {what}"), async || {
        black_box(tool.run(ToolRequest::new(run.cx().clone(), call.clone(), args.clone())).await.expect("answers"));
    })
    .await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    step("a middleware that overrides nothing", Idle).await;
    step("telemetry that nobody listens to", Telemetry::new()).await;
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("bench"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    step("telemetry, spans thrown away", Telemetry::new()).await;
    step("telemetry with content, spans thrown away", Telemetry::new().capture(Capture::Spans)).await;
}
