//! Traces of runs that other processes execute.

use std::{future::pending, sync::Arc};

use agent::{
    Agent, Worker,
    journal::{EntryBody, Journal, MemoryJournal},
    middleware::Telemetry,
    testing::Turn,
};
use agent_server::Server;
use agent_store::MemoryQueue;
use http::Method;
use opentelemetry::trace::{SpanId, TraceId, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use tokio::task::JoinHandle;
use tracing_subscriber::layer::SubscriberExt;

use crate::server::support::{Serving, call, frames, support};

/// Starts a worker, until it is aborted.
fn work(name: &str, queue: &MemoryQueue, agent: Agent) -> JoinHandle<()> {
    let worker = Worker::builder(Arc::new(queue.clone())).agent(agent).name(name).build().expect("a worker");
    tokio::spawn(async move {
        let _ = worker.run_until(pending()).await;
    })
}

fn worker_of(span: &SpanData) -> Option<String> {
    span.attributes.iter().find(|kv| kv.key.as_str() == "agent.worker").map(|kv| kv.value.to_string())
}

#[tokio::test]
async fn a_run_is_part_of_the_trace_of_whoever_asked_on_each_worker_that_drives_it() {
    let exporter = InMemorySpanExporter::default();
    let traces = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(traces.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    let (queue, journal) = (MemoryQueue::new(), MemoryJournal::default());
    let agent = |turns: Vec<Turn>| {
        support(turns).middleware(Telemetry::new()).store(journal.clone()).build().expect("an agent")
    };
    let front = support([]).build().expect("an agent");
    let server = Server::builder().agent(front).store(journal.clone()).dispatch(Arc::new(queue.clone()));
    let serving = Serving::new(server).await;
    let client = serving.client();
    let first = work("first", &queue, agent(vec![call("c1", "A-1")]));
    let mut asks =
        client.json(Method::POST, "/api/agents/support/runs", &json!({"input": "Refund A-1.", "session": "s"}));
    let of_caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    asks.headers_mut().insert("traceparent", of_caller.parse().expect("a value"));
    let run = client.answer(asks).await.json();
    let asked = client.rest(&run).await;
    assert_eq!(asked["status"], "waiting", "{asked}");
    first.abort();
    let second = work("second", &queue, agent(vec![Turn::text("Refunded.")]));
    let id = run["run"].as_str().expect("an id");
    let answers = json!({"answers": [{"question": asked["questions"][0]["id"], "allow": true}]});
    assert_eq!(client.post(&format!("/api/runs/{id}/answers"), &answers).await.status, 202);
    let told = frames(&client.get(&format!("/api/runs/{id}/events")).await.text);
    assert_eq!(told.last().expect("an end").data["answer"], "Refunded.");
    second.abort();

    let spans = exporter.get_finished_spans().expect("readable");
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let request = named("POST /api/agents/{agent}/runs")[0];
    assert_eq!(request.span_context.trace_id(), TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").expect("hex"));
    assert_eq!(request.parent_span_id, SpanId::from_hex("b7ad6b7169203331").expect("hex"));
    let runs = named("invoke_agent support");
    assert_eq!(
        runs.iter().map(|run| worker_of(run)).collect::<Vec<_>>(),
        [Some("first".into()), Some("second".into())]
    );
    for run in runs {
        assert_eq!(run.span_context.trace_id(), request.span_context.trace_id());
        assert_eq!(run.parent_span_id, request.span_context.span_id());
    }
    let session = journal.sessions().await.expect("a list").remove(0);
    let entries = journal.read(&session, 0, usize::MAX).await.expect("entries");
    let drivers = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::RunStarted { ids, .. } | EntryBody::RunResumed { ids, .. } => ids.worker.as_deref(),
        _ => None,
    });
    assert_eq!(drivers.collect::<Vec<_>>(), ["first", "second"]);
}
