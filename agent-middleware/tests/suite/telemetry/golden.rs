//! Every applicable name of the conventions, on one run that uses every feature.

use std::time::Duration;

use agent_core::{
    Budget, Caps, EventKind, Finished, ModelParams, OutputFormat, RunRequest, Usage, model::PriceTable, testing::Turn,
};
use agent_exec::Agent;
use agent_middleware::{
    Delegation, Telemetry,
    telemetry::{Capture, TokenMetrics},
};
use futures::StreamExt;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;
use serde_json::json;

use super::{
    recorder::{Recorder, Series, attribute, measured, names, number},
    world::{Named, broken, finished, lookup, used},
};

/// Request attributes on the spans of runs and model calls.
pub(crate) const ASKED: [&str; 11] = [
    "gen_ai.output.type",
    "gen_ai.request.choice.count",
    "gen_ai.request.frequency_penalty",
    "gen_ai.request.max_tokens",
    "gen_ai.request.model",
    "gen_ai.request.presence_penalty",
    "gen_ai.request.seed",
    "gen_ai.request.stop_sequences",
    "gen_ai.request.temperature",
    "gen_ai.request.top_k",
    "gen_ai.request.top_p",
];

/// Captured content of them, if enabled.
pub(crate) const CONTENT: [&str; 4] =
    ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"];

/// Further attributes of a run's span.
pub(crate) const AGENT: [&str; 17] = [
    "agent.budget.settled.cost_micros",
    "agent.budget.settled.tokens",
    "agent.exit_reason",
    "agent.outcome",
    "agent.run.id",
    "agent.run.steps",
    "gen_ai.agent.id",
    "gen_ai.agent.name",
    "gen_ai.aggregated_usage.cache_creation.input_tokens",
    "gen_ai.aggregated_usage.cache_read.input_tokens",
    "gen_ai.aggregated_usage.input_tokens",
    "gen_ai.aggregated_usage.output_tokens",
    "gen_ai.aggregated_usage.reasoning.output_tokens",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.response.finish_reasons",
];

/// Further attributes of a model call's span.
pub(crate) const CHAT: [&str; 16] = [
    "agent.budget.reserved.cost_micros",
    "agent.budget.reserved.tokens",
    "agent.step",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.stream",
    "gen_ai.response.finish_reasons",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.response.time_to_first_chunk",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
];

/// Attributes of a tool call's span, whatever its result.
pub(crate) const TOOL: [&str; 7] = [
    "agent.step",
    "gen_ai.operation.name",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.id",
    "gen_ai.tool.description",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
];

struct OneDollarPerMillion;

impl PriceTable for OneDollarPerMillion {
    fn cost(&self, _: &str, usage: &Usage) -> Option<u64> {
        Some(usage.total())
    }
}

fn params() -> ModelParams {
    let mut params = ModelParams::default().temperature(0.5).max_tokens(100).extra("top_k", 40).extra("n", 2);
    params = params.output(OutputFormat::json());
    (params.top_p, params.seed, params.stop) = (Some(0.9), Some(7), vec!["END".into()]);
    params.extra("frequency_penalty", 0.1).extra("presence_penalty", 0.2)
}

/// Builds a planner that calls three tools concurrently, one that fails and one that is an agent,
/// and then streams an answer.
pub(crate) fn planner(name: &str, telemetry: Telemetry) -> Agent {
    let helper = Named::new(
        &format!("{name}-small"),
        [Turn::call("h1", "lookup", json!({"key": "b"})).usage(used(30, 6)), Turn::text("It is b.").usage(used(40, 8))],
    );
    let helper = Agent::builder("helper", helper).tool(lookup()).build().expect("builds");
    let calls = [
        ("c1", "lookup", json!({"key": "a"})),
        ("c2", "broken", json!({})),
        ("c3", "delegate", json!({"agent": "helper", "message": "look b up"})),
    ];
    let slowly = Duration::from_millis(10);
    let caps = Caps::default().tokens(1_000_000).cost(1_000_000);
    let budget = Budget::builder().caps(caps).prices(OneDollarPerMillion);
    let model = Named::new(
        name,
        [Turn::calls(calls).usage(used(10, 2)), Turn::text("a and b").usage(used(20, 4)).delay(slowly)],
    );
    Agent::builder(format!("{name}-agent"), model)
        .system("Plan.")
        .params(params())
        .budget(budget.build().expect("has prices"))
        .tool(lookup())
        .tool(broken())
        .middleware(Delegation::new().to("helper", "Looks things up.", helper))
        .middleware_for_all(telemetry)
        .build()
        .expect("builds")
}

/// Runs the agent, and returns its end and the usage in the journal.
async fn run(agent: &Agent) -> (Finished, Usage) {
    let mut run = agent.start(RunRequest::user("What are a and b?").streaming(true).session("session-1"));
    let mut journalled = Usage::default();
    while let Some(event) = run.next().await {
        if let EventKind::RunEnded { usage, .. } = event.kind {
            journalled += usage;
        }
    }
    (finished(run.await), journalled)
}

#[tokio::test(start_paused = true)]
async fn the_spans_of_a_run_lie_where_they_happened_and_tools_at_once_are_siblings() {
    let recorder = Recorder::start();
    run(&planner("shape", Telemetry::new())).await;
    let spans = recorder.spans();
    let (root, sub) = (spans.one("invoke_agent shape-agent"), spans.one("invoke_agent helper"));
    assert_eq!(spans.above(root), None);
    assert_eq!(spans.above(sub), Some("execute_tool delegate"));
    for tool in ["execute_tool broken", "execute_tool delegate"] {
        assert_eq!(spans.above(spans.one(tool)), Some("invoke_agent shape-agent"), "{}", spans.tree());
    }
    let above = |name| spans.all(name).into_iter().map(|span| spans.above(span).expect("one")).collect::<Vec<_>>();
    assert_eq!(above("chat shape"), ["invoke_agent shape-agent"; 2]);
    assert_eq!(above("chat shape-small"), ["invoke_agent helper"; 2]);
    let mut lookups = above("execute_tool lookup");
    lookups.sort_unstable();
    assert_eq!(lookups, ["invoke_agent helper", "invoke_agent shape-agent"]);
    assert_eq!(spans.0.len(), 10, "{}", spans.tree());
    let trace = root.span_context.trace_id();
    assert!(spans.0.iter().all(|span| span.span_context.trace_id() == trace));
    assert!(spans.0.iter().all(|span| root.start_time <= span.start_time && span.end_time <= root.end_time));
    let kind = |name| spans.all(name)[0].span_kind.clone();
    assert_eq!(
        [kind("chat shape"), kind("invoke_agent helper"), kind("execute_tool broken")],
        [SpanKind::Client, SpanKind::Internal, SpanKind::Internal]
    );
}

// Haystack 75
#[tokio::test(start_paused = true)]
async fn a_step_may_have_a_span_and_its_calls_lie_below_it_side_by_side() {
    let recorder = Recorder::start();
    run(&planner("stepwise", Telemetry::new().steps())).await;
    let spans = recorder.spans();
    let steps = |run: &str| {
        let steps = spans.0.iter().filter(|span| span.name.starts_with("agent_step") && spans.above(span) == Some(run));
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|step| step.start_time);
        steps
    };
    let below = |step: &SpanData| {
        let below = spans.0.iter().filter(|span| span.parent_span_id == step.span_context.span_id());
        let mut names: Vec<_> = below.map(|span| span.name.as_ref()).collect();
        names.sort_unstable();
        names
    };
    let [first, second] = steps("invoke_agent stepwise-agent")[..] else { panic!("{}", spans.tree()) };
    let calls = ["chat stepwise", "execute_tool broken", "execute_tool delegate", "execute_tool lookup"];
    assert_eq!((below(first), below(second)), (calls.to_vec(), vec!["chat stepwise"]));
    assert_eq!((attribute(first, "agent.step").as_deref(), second.name.as_ref()), (Some("1"), "agent_step 2"));
    assert!(
        spans
            .0
            .iter()
            .filter(|s| s.parent_span_id == first.span_context.span_id())
            .all(|s| s.end_time <= first.end_time)
    );
    assert!(first.end_time <= second.start_time, "a step ends where the next one begins");
    let [first, second] = steps("invoke_agent helper")[..] else { panic!("{}", spans.tree()) };
    assert_eq!(below(first), ["chat stepwise-small", "execute_tool lookup"]);
    assert_eq!(below(second), ["chat stepwise-small"]);
    assert_eq!(spans.above(spans.one("invoke_agent helper")), Some("execute_tool delegate"));
    assert_eq!(spans.0.len(), 14, "{}", spans.tree());
}

#[tokio::test(start_paused = true)]
async fn every_attribute_of_the_conventions_is_there_by_its_name() {
    let recorder = Recorder::start();
    run(&planner("names", Telemetry::new().capture(Capture::Spans))).await;
    let spans = recorder.spans();
    let sorted = |parts: &[&[&'static str]]| {
        let mut all = parts.concat();
        all.sort_unstable();
        all
    };

    assert_eq!(names(spans.one("invoke_agent names-agent")), sorted(&[&AGENT, &ASKED, &CONTENT]));

    assert_eq!(names(spans.all("chat names")[1]), sorted(&[&CHAT, &ASKED, &CONTENT]));

    assert_eq!(names(spans.all("execute_tool lookup")[0]), sorted(&[&TOOL, &["gen_ai.tool.call.result"]]));
    assert_eq!(names(spans.one("execute_tool broken")), sorted(&[&TOOL, &["error.type"]]));
}

#[tokio::test(start_paused = true)]
async fn attributes_have_the_values_of_the_conventions() {
    let recorder = Recorder::start();
    run(&planner("values", Telemetry::new())).await;
    let spans = recorder.spans();
    let chat = spans.all("chat values")[1];
    let is = |name: &str, value: &str| assert_eq!(attribute(chat, name).as_deref(), Some(value), "{name}");
    is("gen_ai.operation.name", "chat");
    is("gen_ai.provider.name", "gcp.gemini");
    is("gen_ai.request.model", "values");
    is("gen_ai.response.model", "values-001");
    is("gen_ai.response.id", "response-2");
    is("gen_ai.conversation.id", "session-1");
    is("gen_ai.response.finish_reasons", r#"["stop"]"#);
    is("gen_ai.request.stop_sequences", r#"["END"]"#);
    is("gen_ai.usage.input_tokens", "140"); // including tokens read from and written to the cache
    is("gen_ai.usage.cache_read.input_tokens", "100");
    is("gen_ai.usage.cache_creation.input_tokens", "20");
    is("gen_ai.usage.output_tokens", "4");
    is("gen_ai.usage.reasoning.output_tokens", "3");
    is("gen_ai.response.time_to_first_chunk", "0.01");
    assert_eq!(
        attribute(spans.all("chat values")[0], "gen_ai.response.finish_reasons").expect("set"),
        r#"["tool_call"]"#
    );

    let broken = spans.one("execute_tool broken");
    assert_eq!(attribute(broken, "error.type").as_deref(), Some("tool"));
    assert_eq!(broken.status, Status::error("tool"), "what a tool says is content");
    assert_eq!(attribute(spans.one("invoke_agent values-agent"), "agent.outcome").as_deref(), Some("finished"));
    assert_eq!(chat.status, Status::Unset);
}

#[tokio::test(start_paused = true)]
async fn tokens_on_chat_spans_add_up_to_what_the_journal_says_was_used() {
    let recorder = Recorder::start();
    let (finished, journalled) = run(&planner("sum", Telemetry::new())).await;
    let spans = recorder.spans();
    let chats: Vec<_> = spans.0.iter().filter(|span| span.name.starts_with("chat ")).collect();
    let sum = |name: &str| chats.iter().map(|span| u64::try_from(number(span, name)).expect("a count")).sum::<u64>();
    assert_eq!(chats.len() as u64, journalled.calls);
    assert_eq!(sum("gen_ai.usage.input_tokens"), journalled.prompt());
    assert_eq!(sum("gen_ai.usage.output_tokens"), journalled.output);
    assert_eq!(sum("gen_ai.usage.cache_read.input_tokens"), journalled.cached);
    assert_eq!(sum("gen_ai.usage.cache_creation.input_tokens"), journalled.cache_write);
    assert_eq!(sum("gen_ai.usage.reasoning.output_tokens"), journalled.reasoning);
    assert_eq!(journalled, finished.tree_usage);
    let others = spans.0.iter().filter(|span| !span.name.starts_with("chat "));
    assert!(others.flat_map(names).all(|name| !name.starts_with("gen_ai.usage.")), "or they would be added twice");
    let root = spans.one("invoke_agent sum-agent");
    assert_eq!(number(root, "gen_ai.aggregated_usage.output_tokens") as u64, journalled.output);
}

fn of<'a>(all: &'a [Series], name: &str) -> Vec<&'a Series> {
    all.iter().filter(|series| series.name == name).collect()
}

#[tokio::test(start_paused = true)]
async fn both_generations_of_metrics_have_their_names_units_and_borders() {
    let _recorder = Recorder::start();
    run(&planner("metrics", Telemetry::new().token_metrics(TokenMetrics::Both))).await;
    let calls = measured("gen_ai.request.model", "metrics");
    let duration = of(&calls, "gen_ai.client.operation.duration");
    assert_eq!((duration[0].unit.as_str(), duration[0].count), ("s", 2));
    assert_eq!((duration[0].bounds[0], duration[0].bounds[13], duration[0].bounds.len()), (0.01, 81.92, 14));
    let labels: Vec<_> = duration[0].labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let wanted = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "gcp.gemini"),
        ("gen_ai.request.model", "metrics"),
        ("gen_ai.response.model", "metrics-001"),
    ];
    assert_eq!(labels, wanted);

    let tokens = of(&calls, "gen_ai.client.token.usage");
    let sum = |kind: &str| tokens.iter().find(|s| s.labels["gen_ai.token.type"] == kind).expect("there").sum;
    assert_eq!((sum("input"), sum("output")), (270.0, 6.0));
    assert_eq!((tokens[0].bounds[1], tokens[0].bounds[13], tokens[0].unit.as_str()), (4.0, 67_108_864.0, "{token}"));

    let total = |name: &str| of(&calls, name).iter().map(|s| s.sum).sum::<f64>();
    assert_eq!(total("gen_ai.client.inference.usage.input_tokens"), 270.0);
    assert_eq!(total("gen_ai.client.inference.usage.cache_read.input_tokens"), 200.0);
    assert_eq!(total("gen_ai.client.inference.usage.cache_write.input_tokens"), 40.0);
    assert_eq!(total("gen_ai.client.inference.usage.output_tokens"), 6.0);
    assert_eq!(total("gen_ai.client.inference.usage.reasoning.output_tokens"), 6.0);
    assert_eq!(total("gen_ai.client.inference.operation.input_tokens"), 270.0);
    assert_eq!(total("gen_ai.client.inference.operation.output_tokens"), 6.0);

    // "a ", "and ", "b" come 10 ms apart in the second answer; the first one comes at once.
    assert_eq!(total("gen_ai.client.operation.time_to_first_chunk"), 0.01);
    assert!(of(&calls, "gen_ai.client.operation.time_per_output_chunk")[0].count >= 2);

    let runs = measured("gen_ai.agent.name", "metrics-agent");
    assert_eq!(of(&runs, "gen_ai.invoke_agent.duration")[0].unit, "s");
    let (models, tools) =
        (of(&runs, "gen_ai.invoke_agent.inference_calls"), of(&runs, "gen_ai.invoke_agent.tool_calls"));
    assert_eq!((models[0].sum, tools[0].sum, models[0].unit.as_str()), (2.0, 3.0, "1"));

    let failed = measured("gen_ai.tool.name", "broken");
    assert!(of(&failed, "gen_ai.execute_tool.duration").iter().all(|s| s.labels["error.type"] == "tool"));
}

#[tokio::test(start_paused = true)]
async fn only_the_wanted_generation_of_metrics_is_reported() {
    let _recorder = Recorder::start();
    run(&planner("current", Telemetry::new())).await;
    run(&planner("split", Telemetry::new().token_metrics(TokenMetrics::Split))).await;
    let has = |model: &str, part: &str| {
        measured("gen_ai.request.model", model).iter().any(|series| series.name.contains(part))
    };
    assert!(has("current", "token.usage") && !has("current", "inference.usage"));
    assert!(has("split", "inference.usage") && !has("split", "token.usage"));
}
