//! Propagation of the trace context.

use std::sync::{Arc, Mutex};

use agent_core::{ToolOutput, testing::Turn};
use agent_exec::Agent;
use agent_middleware::{Telemetry, telemetry::TraceContext};
use opentelemetry::trace::{SpanId, TraceId};
use proptest::prelude::*;
use serde_json::json;
use tracing::{Instrument, info_span};

use super::{
    recorder::Recorder,
    world::{Named, finished, tool},
};

fn calls(name: &str, turn: Turn) -> Named {
    Named::new(name, [turn, Turn::text("done")])
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_does_is_part_of_its_span_on_tasks_of_its_own_too() {
    let recorder = Recorder::start();
    let works = tool("works", async |_| {
        info_span!("query").in_scope(|| {});
        let task = async { info_span!("upload").in_scope(|| {}) };
        tokio::spawn(task.in_current_span()).await.expect("no panic");
        Ok(ToolOutput::text("ok"))
    });
    let turn = Turn::calls([("a", "works", json!({})), ("b", "works", json!({}))]);
    let agent = Agent::builder("inside", calls("inside", turn)).tool(works).middleware(Telemetry::new());
    finished(agent.build().expect("builds").run("go").await);
    let spans = recorder.spans();
    for name in ["query", "upload"] {
        let all = spans.all(name);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|s| spans.above(s) == Some("execute_tool works")), "{}", spans.tree());
        assert_ne!(all[0].parent_span_id, all[1].parent_span_id, "each call has its own");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_of_a_tools_requests_carry_its_span() {
    let recorder = Recorder::start();
    let sent = Arc::new(Mutex::new(None));
    let out = sent.clone();
    let sends = tool("sends", move |_| {
        let out = out.clone();
        async move {
            *out.lock().expect("lock") = TraceContext::current().map(|trace| trace.to_map());
            Ok(ToolOutput::text("ok"))
        }
    });
    let model = calls("sender", Turn::call("c", "sends", json!({})));
    let agent = Agent::builder("sender", model).tool(sends).middleware(Telemetry::new()).build().expect("builds");
    finished(agent.run("go").await);
    let sent = sent.lock().expect("lock").take().expect("inside a span");
    let spans = recorder.spans();
    let span = &spans.one("execute_tool sends").span_context;
    assert_eq!(sent["traceparent"], format!("00-{}-{}-01", span.trace_id(), span.span_id()));
    assert_eq!(TraceContext::current(), None, "outside there is none");
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_with_the_trace_that_a_request_came_with() {
    let recorder = Recorder::start();
    let headers = [
        ("Content-Type", "text/plain"),
        ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("tracestate", "vendor=1"),
    ];
    let trace = TraceContext::from_pairs(headers).expect("valid");
    let model = Named::new("served", [Turn::text("done")]);
    let agent = Agent::builder("served", model).middleware(Telemetry::new()).build().expect("builds");
    finished(trace.around(agent.run("go")).await);
    let spans = recorder.spans();
    let run = spans.one("invoke_agent served");
    assert_eq!(run.span_context.trace_id(), TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").expect("hex"));
    assert_eq!(run.parent_span_id, SpanId::from_hex("b7ad6b7169203331").expect("hex"));
    assert!(run.parent_span_is_remote);
    assert_eq!(trace.to_map()["tracestate"], "vendor=1");
}

#[tokio::test(start_paused = true)]
async fn two_registrations_over_one_run_make_one_span() {
    let recorder = Recorder::start();
    let helper = Agent::builder("helper", Named::new("twice-small", [Turn::text("hi")])).middleware(Telemetry::new());
    let delegation = agent_middleware::Delegation::new().to("helper", "Helps.", helper.build().expect("builds"));
    let model = calls("twice", Turn::call("c", "delegate", json!({"agent": "helper", "message": "hello"})));
    let agent = Agent::builder("twice", model).middleware(delegation).middleware_for_all(Telemetry::new());
    finished(agent.build().expect("builds").run("go").await);
    let spans = recorder.spans();
    spans.one("invoke_agent helper");
    spans.one("chat twice-small");
}

#[test]
fn headers_that_are_no_trace_are_passed_over() {
    for wrong in [
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ] {
        assert_eq!(TraceContext::from_pairs([("traceparent", wrong)]), None, "{wrong}");
    }
    let newer = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    assert!(TraceContext::from_pairs([("traceparent", newer)]).is_some(), "a newer version says more");
}

proptest! {
    #[test]
    fn what_is_sent_is_what_is_read(trace in 1u128.., span in 1u64.., sampled: bool) {
        let header = format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(sampled));
        let read = TraceContext::from_pairs([("traceparent", header.as_str())]).expect("valid");
        prop_assert_eq!(&read.to_map()["traceparent"], &header);
    }

    #[test]
    fn no_header_makes_it_panic(header in ".{0,80}", state in ".{0,40}") {
        TraceContext::from_pairs([("traceparent", header.as_str()), ("tracestate", state.as_str())]);
    }
}
