//! Spans end however their run ends, with its outcome.

use std::time::Duration;

use agent_core::{Error, ErrorKind, RunEnd, RunRequest, testing::Turn};
use agent_exec::{Agent, AgentBuilder, testing::Conformance};
use agent_middleware::{Telemetry, telemetry::Capture};
use opentelemetry::{logs::Severity, trace::Status};
use serde_json::json;

use super::{
    recorder::{Recorder, attribute, fields, measured, severity},
    world::{FnTool, Named, tool},
};

fn agent(name: &str, turns: impl IntoIterator<Item = Turn>) -> AgentBuilder {
    Agent::builder(name, Named::new(name, turns)).middleware(Telemetry::new())
}

fn asks() -> FnTool {
    tool("asks", async |req| {
        let sure: bool = req.ask("sure", json!({}))?;
        Ok(agent_core::ToolOutput::text(if sure { "done" } else { "not done" }))
    })
}

fn hangs() -> FnTool {
    tool("hangs", async |_| std::future::pending().await)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_an_answer_has_not_failed() {
    let recorder = Recorder::start();
    let agent = agent("waits", [Turn::call("c", "asks", json!({}))]).tool(asks()).build().expect("builds");
    assert!(matches!(agent.run("go").await, Ok(RunEnd::Interrupted(_))));
    let spans = recorder.spans();
    for (name, outcome) in [("invoke_agent waits", "interrupted"), ("execute_tool asks", "interrupted")] {
        let span = spans.one(name);
        assert_eq!(attribute(span, "agent.outcome").as_deref(), Some(outcome), "{name}");
        assert_eq!((attribute(span, "error.type"), &span.status), (None, &Status::Unset), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_its_spans_with_those_of_the_tools_it_cut_off() {
    let recorder = Recorder::start();
    let agent = agent("cancelled", [Turn::call("c", "hangs", json!({}))]).tool(hangs()).build().expect("builds");
    let run = agent.start(RunRequest::user("go"));
    let handle = run.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.cancel();
    });
    assert!(matches!(run.await, Ok(RunEnd::Cancelled(_))));
    let spans = recorder.spans();
    for name in ["invoke_agent cancelled", "execute_tool hangs"] {
        let span = spans.one(name);
        assert_eq!(attribute(span, "agent.outcome").as_deref(), Some("cancelled"), "{name}");
        assert_eq!((attribute(span, "error.type"), &span.status), (None, &Status::Unset), "{name}");
    }
    let tools = measured("gen_ai.tool.name", "hangs");
    assert!(tools.iter().any(|s| s.name == "gen_ai.execute_tool.duration"), "the time it took is counted");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_ends_its_spans_at_once() {
    let recorder = Recorder::start();
    let agent = agent("dropped", [Turn::call("c", "hangs", json!({}))]).tool(hangs()).build().expect("builds");
    let run = tokio::time::timeout(Duration::from_secs(1), agent.run("go")).await;
    assert!(run.is_err());
    let spans = recorder.spans();
    assert_eq!(attribute(spans.one("invoke_agent dropped"), "agent.outcome").as_deref(), Some("dropped"));
    assert_eq!(attribute(spans.one("execute_tool hangs"), "agent.outcome").as_deref(), Some("cancelled"));
    assert_eq!(spans.above(spans.one("execute_tool hangs")), Some("invoke_agent dropped"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_model_call_is_told_by_its_class_and_as_an_event() {
    let recorder = Recorder::start();
    let refuse = || Error::new(ErrorKind::RateLimited, "slow down, key sk-123");
    let telemetry = Telemetry::new().redact(|text| text.replace("sk-123", "[key]"));
    let telemetry = telemetry.token_metrics(agent_middleware::telemetry::TokenMetrics::Split);
    let builder = Agent::builder("fails", Named::new("fails", [Turn::error(refuse)])).middleware(telemetry);
    builder.build().expect("builds").run("go").await.expect_err("the model is not there");
    let spans = recorder.spans();
    for name in ["invoke_agent fails", "chat fails"] {
        let span = spans.one(name);
        assert_eq!(attribute(span, "error.type").as_deref(), Some("rate_limited"), "{name}");
        assert_eq!(span.status, Status::error("rate limited: slow down, key [key]"), "{name}");
    }
    let [event] = &recorder.events("gen_ai.client.operation.exception")[..] else { panic!("one event") };
    assert_eq!(severity(event), Severity::Warn);
    let fields = fields(event);
    assert_eq!(fields["exception.type"], "rate_limited");
    assert_eq!(fields["exception.message"], "rate limited: slow down, key [key]");
    let of = event.trace_context().expect("of a span");
    assert_eq!(of.span_id, spans.one("chat fails").span_context.span_id());

    let calls = measured("gen_ai.request.model", "fails");
    assert!(calls.iter().all(|s| s.labels["error.type"] == "rate_limited"));
    let used = calls.iter().find(|s| s.name == "gen_ai.client.inference.usage.input_tokens").expect("counted as 0");
    assert_eq!(used.sum, 0.0);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_inside_a_retry_has_a_span() {
    use agent_middleware::ToolRetry;
    let recorder = Recorder::start();
    let flaky = {
        let tried = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        tool("flaky", move |_| {
            let again = tried.swap(true, std::sync::atomic::Ordering::Relaxed);
            async move {
                let busy = || Error::new(ErrorKind::Overloaded, "busy").with_retry(agent_core::Retry::Temporary(None));
                if again { Ok(agent_core::ToolOutput::text("ok")) } else { Err(busy()) }
            }
        })
    };
    let model = Named::new("retries", [Turn::call("c", "flaky", json!({})), Turn::text("done")]);
    let agent = Agent::builder("retries", model).tool(flaky).middleware(ToolRetry::new()).middleware(Telemetry::new());
    agent.build().expect("builds").run("go").await.expect("finishes");
    let spans = recorder.spans();
    let errors: Vec<_> = spans.all("execute_tool flaky").into_iter().map(|s| attribute(s, "error.type")).collect();
    assert_eq!(errors, [Some("overloaded".to_owned()), None]);
}

#[tokio::test(start_paused = true)]
async fn it_stands_what_every_middleware_must_and_changes_nothing() {
    let _recorder = Recorder::start();
    for capture in [Capture::Off, Capture::Spans, Capture::Events] {
        let check = Conformance::new(move || Telemetry::new().capture(capture));
        let check = check.observe(|telemetry| format!("{telemetry:?}")).transparent().check().await;
        check.unwrap_or_else(|e| panic!("{capture:?}: {e}"));
    }
}

#[test]
fn logging_inside_telemetry_is_refused_with_what_to_do() {
    let builder = Agent::builder("order", Named::new("order", []));
    let stack = builder.middleware(Telemetry::new()).middleware(agent_middleware::Logging::new());
    let refused = stack.build().expect_err("the order is wrong").to_string();
    assert!(refused.contains("telemetry") && refused.contains("logging"), "{refused}");
}
