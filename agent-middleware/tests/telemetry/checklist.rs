//! Every name of the conventions for spans and metrics: each is told, or known not to be. Events are in `content` and `told`.

use std::{collections::BTreeSet, time::Duration};

use agent_core::{Budget, Caps, ModelParams, OutputFormat, RunRequest, testing::Turn};
use agent_exec::Agent;
use agent_middleware::{Capture, Delegation, Telemetry, TokenMetrics};
use serde_json::json;

use crate::{
    recorder::{Recorder, measured, number},
    world::{Named, broken, finished, lookup, used},
};

const TOLD: [&str; 63] = [
    // spans
    "invoke_agent",
    "chat",
    "execute_tool",
    // what runs and calls are
    "error.type",
    "gen_ai.agent.id",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.output.type",
    "gen_ai.provider.name",
    "gen_ai.tool.call.id",
    "gen_ai.tool.description",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    // what is asked for
    "gen_ai.request.choice.count",
    "gen_ai.request.frequency_penalty",
    "gen_ai.request.max_tokens",
    "gen_ai.request.model",
    "gen_ai.request.presence_penalty",
    "gen_ai.request.seed",
    "gen_ai.request.stop_sequences",
    "gen_ai.request.stream",
    "gen_ai.request.temperature",
    "gen_ai.request.top_k",
    "gen_ai.request.top_p",
    // what comes back
    "gen_ai.response.finish_reasons",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    // content
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.tool.definitions",
    // metrics
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
    // names of this crate's own
    "agent.budget.reserved.cost_micros",
    "agent.budget.reserved.tokens",
    "agent.budget.settled.cost_micros",
    "agent.budget.settled.tokens",
    "agent.outcome",
    "agent.run.steps",
    "agent.step",
];

/// What nothing here knows or does; the guide to telemetry says why of each.
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

fn agent(name: &str, telemetry: Telemetry) -> Agent {
    let calls = [("c1", "lookup", json!({"key": "a"})), ("c2", "broken", json!({}))];
    let turns = [
        Turn::calls(calls).usage(used(10, 2)),
        Turn::text("a and b").usage(used(20, 4)).delay(Duration::from_millis(10)),
    ];
    let mut params = ModelParams::default().temperature(0.5).max_tokens(100).output(OutputFormat::json());
    (params.top_p, params.seed, params.stop) = (Some(0.9), Some(7), vec!["END".into()]);
    let params = params.extra("top_k", 40).extra("n", 2).extra("frequency_penalty", 0.1).extra("presence_penalty", 0.2);
    let helper = Agent::builder("helper", Named::new("small", [])).build().expect("builds");
    Agent::builder(name, Named::new(name, turns))
        .system("Plan.")
        .params(params)
        .budget(Budget::new(Caps::default().tokens(1_000_000)))
        .tool(lookup())
        .tool(broken())
        .middleware(Delegation::new().to("helper", "Looks things up.", helper))
        .middleware_for_all(telemetry)
        .build()
        .expect("builds")
}

#[tokio::test(start_paused = true)]
async fn each_name_of_the_conventions_is_told_or_known_not_to_be() {
    let recorder = Recorder::start();
    let telemetry = Telemetry::new().capture(Capture::Spans).token_metrics(TokenMetrics::Both);
    let request = RunRequest::user("What are a and b?").streaming(true).session("s");
    finished(agent("checklist", telemetry).start(request).await);
    let spans = recorder.spans();
    let kinds = spans.0.iter().filter_map(|span| span.name.split(' ').next());
    let attributes = spans.0.iter().flat_map(|span| span.attributes.iter().map(|kv| kv.key.as_str()));
    let mut seen: BTreeSet<String> = kinds.chain(attributes).map(str::to_owned).collect();
    for (label, value) in [
        ("gen_ai.request.model", "checklist"),
        ("gen_ai.agent.name", "checklist"),
        ("gen_ai.tool.name", "lookup"),
        ("gen_ai.tool.name", "broken"),
    ] {
        for series in measured(label, value) {
            seen.insert(series.name);
            seen.extend(series.labels.into_keys());
        }
    }
    let missing: Vec<_> = TOLD.iter().filter(|name| !seen.contains(**name)).collect();
    let unknown: Vec<_> = NOT_TOLD.iter().filter(|name| seen.contains(**name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}, told all the same: {unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_budget_sets_aside_and_settles_is_told_where_one_limits_the_run() {
    let recorder = Recorder::start();
    let end = finished(agent("limited", Telemetry::new()).start(RunRequest::user("What are a and b?")).await);
    let spans = recorder.spans();
    let settled = number(spans.one("invoke_agent limited"), "agent.budget.settled.tokens");
    assert_eq!(u64::try_from(settled).ok(), Some(end.tree_usage.total()));
    let reserved = spans.all("chat limited").into_iter().map(|chat| number(chat, "agent.budget.reserved.tokens"));
    assert!(reserved.clone().count() == 2 && reserved.clone().all(|tokens| tokens > 100), "{reserved:?}");
}
