//! Every name of the conventions for spans and metrics is either used, or listed as unused. Events
//! are in `content` and `told`.

use std::collections::BTreeSet;

use agent_core::RunRequest;
use agent_middleware::{
    Telemetry,
    telemetry::{Capture, TokenMetrics},
};

use super::{
    golden::{AGENT, ASKED, CHAT, CONTENT, TOOL, planner},
    recorder::{Recorder, measured, number},
    world::finished,
};

/// Names missing from the lists per span: kinds of spans, tool attributes, and metrics.
const REST: [&str; 21] = [
    "invoke_agent",
    "chat",
    "execute_tool",
    "error.type",
    "gen_ai.tool.call.result",
    "gen_ai.client.inference.operation.input_tokens",
    "gen_ai.client.inference.operation.output_tokens",
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "gen_ai.client.inference.usage.cache_write.input_tokens",
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.client.inference.usage.reasoning.output_tokens",
    "gen_ai.client.operation.duration",
    "gen_ai.client.operation.time_per_output_chunk",
    "gen_ai.client.operation.time_to_first_chunk",
    "gen_ai.client.token.usage",
    "gen_ai.execute_tool.duration",
    "gen_ai.invoke_agent.duration",
    "gen_ai.invoke_agent.inference_calls",
    "gen_ai.invoke_agent.tool_calls",
    "gen_ai.token.type",
];

/// Unused names; the guide to telemetry explains each.
const NOT_TOLD: [&str; 28] = [
    "create_agent",
    "embeddings",
    "invoke_workflow",
    "plan",
    "retrieval",
    "create_memory",
    "delete_memory",
    "search_memory",
    "update_memory",
    "upsert_memory",
    "gen_ai.agent.description",
    "gen_ai.agent.version",
    "gen_ai.data_source.id",
    "gen_ai.embeddings.dimension.count",
    "gen_ai.memory.query.text",
    "gen_ai.memory.record.count",
    "gen_ai.memory.record.id",
    "gen_ai.memory.records",
    "gen_ai.memory.store.id",
    "gen_ai.retrieval.documents",
    "gen_ai.retrieval.query.text",
    "gen_ai.token.modality",
    "gen_ai.workflow.duration",
    "gen_ai.workflow.name",
    "jsonrpc.request.id",
    "mcp.method.name",
    "server.address",
    "server.port",
];

#[tokio::test(start_paused = true)]
async fn each_name_of_the_conventions_is_told_or_known_not_to_be() {
    let recorder = Recorder::start();
    let telemetry = Telemetry::new().capture(Capture::Spans).token_metrics(TokenMetrics::Both);
    let request = RunRequest::user("What are a and b?").streaming(true).session("s");
    finished(planner("checklist", telemetry).start(request).await);
    let spans = recorder.spans();
    let kinds = spans.0.iter().filter_map(|span| span.name.split(' ').next());
    let attributes = spans.0.iter().flat_map(|span| span.attributes.iter().map(|kv| kv.key.as_str()));
    let mut seen: BTreeSet<String> = kinds.chain(attributes).map(str::to_owned).collect();
    for (label, value) in [
        ("gen_ai.request.model", "checklist"),
        ("gen_ai.agent.name", "checklist-agent"),
        ("gen_ai.tool.name", "lookup"),
        ("gen_ai.tool.name", "broken"),
    ] {
        for series in measured(label, value) {
            seen.insert(series.name);
            seen.extend(series.labels.into_keys());
        }
    }
    let told = [&ASKED[..], &CONTENT, &AGENT, &CHAT, &TOOL, &REST].concat();
    let missing: Vec<_> = told.iter().filter(|name| !seen.contains(**name)).collect();
    let unknown: Vec<_> = NOT_TOLD.iter().filter(|name| seen.contains(**name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}, told all the same: {unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_budget_sets_aside_and_settles_is_told_where_one_limits_the_run() {
    let recorder = Recorder::start();
    let end = finished(planner("limited", Telemetry::new()).start(RunRequest::user("What are a and b?")).await);
    let spans = recorder.spans();
    let chats = spans.all("chat limited");
    for name in ["tokens", "cost_micros"] {
        let settled = number(spans.one("invoke_agent limited-agent"), &format!("agent.budget.settled.{name}"));
        assert_eq!(u64::try_from(settled).ok(), Some(end.tree_usage.total()), "{name}");
        let reserved = chats.iter().map(|chat| number(chat, &format!("agent.budget.reserved.{name}")));
        let reserved: Vec<_> = reserved.collect();
        assert!(reserved.len() == 2 && reserved.iter().all(|most| *most > 100), "{name}: {reserved:?}");
    }
}
